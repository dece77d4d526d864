import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, Placer } from './algorithm.ts';
import { byRank } from './by-rank.ts';
import { decide, groupState, mixWord, SALT } from './decision-hash.ts';
import { DomainRule } from './domain-rule.ts';
import { domainOf, placeableNodes } from './domains.ts';
import { murmur128 } from './key-hash.ts';
import { logUnit } from './logarithm.ts';
import type { Topology, TopologyNode } from './topology.ts';

/** Draws that one rank may fail before it goes to the rendezvous order; as in Ceph. */
const MAX_TRIES = 50;

/** What a bucket holds: a node, or a bucket of nodes. */
interface Item {
  /** Of equal straws the item of the lower id is drawn. */
  readonly id: number;
  readonly mixed: number;
  readonly weight: number;
  readonly node?: NodeId;
  readonly items?: readonly Item[];
}

function leavesOf(nodes: readonly TopologyNode[]): Item[] {
  return nodes.map(({ id, weight }) => ({ id, mixed: mixWord(id), weight, node: id })).sort((a, b) => a.id - b.id);
}

/** Sets the ids of buckets apart from those of nodes. */
const BUCKET = 0x8000_0000;

function bucketOf(id: number, nodes: readonly TopologyNode[]): Item {
  const weight = nodes.reduce((sum, node) => sum + node.weight, 0);
  return { id, mixed: mixWord(id ^ BUCKET), weight, items: leavesOf(nodes) };
}

/** One bucket for each domain, or for each sub-cluster of a topology that names no domain. */
function bucketsOf(topology: Topology): Item[] {
  if (topology.domain === undefined) {
    const parts = topology.subclusters.map(({ id, nodes }) => ({
      id,
      nodes: nodes.filter(({ weight }) => weight > 0),
    }));
    return parts
      .filter(({ nodes }) => nodes.length > 0)
      .map(({ id, nodes }) => bucketOf(id, nodes))
      .sort((a, b) => a.id - b.id);
  }
  const text = new TextEncoder();
  const byDomain = Map.groupBy(placeableNodes(topology), (node) => domainOf(topology, node));
  return [...byDomain]
    .map(([domain, nodes]) => bucketOf(murmur128(text.encode(domain))[0], nodes))
    .sort((a, b) => a.id - b.id || a.items![0]!.id - b.items![0]!.id);
}

/** The item with the longest straw: ln(u) / weight. */
function draw(items: readonly Item[], state: number, trial: number): Item | undefined {
  let best: Item | undefined;
  let longest = -Infinity;
  for (const item of items) {
    const straw = logUnit(decide(state, item.mixed, SALT.FIRST_TRIAL + trial)) / item.weight;
    if (straw > longest) {
      longest = straw;
      best = item;
    }
  }
  return best;
}

/** "First n": the trial is the rank, and one more after each failure of that rank. */
function firstN(topology: Topology, items: readonly Item[], rule?: DomainRule): Placer {
  return byRank(
    topology,
    (group, rank, free): NodeId | undefined => {
      const state = groupState(topology.seed, group);
      for (let trial = rank; trial < rank + MAX_TRIES; trial++) {
        let item = draw(items, state, trial);
        if (item?.items !== undefined) item = draw(item.items, state, trial);
        if (item?.node !== undefined && free(item.node)) return item.node;
      }
      return undefined;
    },
    rule,
  );
}

/**
 * CRUSH with straw2 over one bucket of all nodes. A draw that meets a node of the list is repeated, which is what moves more
 * than it must when something changes. Where Ceph gives up and answers short, the rest follows the rendezvous order.
 *
 * Cost: one hash and one logarithm per node, copy and try.
 * Source: Weil, Brandt, Miller and Maltzahn, "CRUSH: Controlled, Scalable, Decentralized Placement of Replicated Data",
 * SC 2006; straw2 as in Ceph, with 32 bits of hash instead of 16.
 */
export const STRAW2: PlacementAlgorithm = {
  name: 'straw2',
  version: 1,
  supports: {
    order: 'prefix',
    domains: false,
    exactReweight: false,
    exactGrowth: false,
    weights: true,
    fractionalWeights: true,
    unevenSubclusters: true,
    wideSubclusters: 'none',
    stores: 'nothing',
    lookup: true,
  },
  prepare: (topology) => firstN(topology, leavesOf(placeableNodes(topology))),
};

/**
 * CRUSH with straw2 on two levels: a domain, then a node in it. A draw is also repeated when its domain holds a copy while
 * others with a free node hold fewer. Without a domain label the upper level is the sub-clusters, and any may hold several.
 *
 * Cost and source as `STRAW2`, for the buckets and the nodes of one.
 */
export const STRAW2_TREE: PlacementAlgorithm = {
  ...STRAW2,
  name: 'straw2-tree',
  supports: { ...STRAW2.supports, domains: true },
  prepare: (topology) =>
    firstN(topology, bucketsOf(topology), topology.domain === undefined ? undefined : new DomainRule(topology)),
};
