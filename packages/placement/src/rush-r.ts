import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, Placer } from './algorithm.ts';
import { decide, groupState, SALT, streamDraw } from './decision-hash.ts';
import { type Layer, layersOf } from './layers.ts';
import { logUnit } from './logarithm.ts';
import type { Topology } from './topology.ts';

interface Candidate {
  readonly id: NodeId;
  readonly score: number;
}

/** How many of `left` copies go to this layer: a hypergeometric draw, at least what the layers below cannot take. */
function share(layer: Layer, state: number, left: number): number {
  if (layer.nodesBelow === 0) return left;
  const must = Math.max(0, left - layer.nodesBelow);
  const start = decide(state, layer.mixed, SALT.SUBCLUSTER);
  let here = layer.weight - must * layer.nodeWeight;
  let total = layer.weightBelow + here;
  let taken = must;
  for (let draw = 0; draw < left - must; draw++) {
    const unit = (streamDraw(start, draw) + 0.5) / 4_294_967_296;
    if (taken < layer.nodes.length && unit * total < here) {
      taken += 1;
      here -= layer.nodeWeight;
    }
    total -= layer.nodeWeight;
  }
  return taken;
}

/** Which nodes of a layer take its `count` copies: more copies must keep the nodes of fewer. */
type Inside<Chosen> = (layer: Layer, state: number, count: number) => Chosen[];

/** The walk from the newest sub-cluster to the oldest. */
function walk<Chosen>(topology: Topology, inside: Inside<Chosen>): (group: number, count: number) => Chosen[] {
  const layers = layersOf(topology);
  return (group, count) => {
    const state = groupState(topology.seed, group);
    const chosen: Chosen[] = [];
    for (const layer of layers) {
      const left = count - chosen.length;
      if (left === 0) break;
      const taken = share(layer, state, left);
      if (taken > 0) chosen.push(...inside(layer, state, taken));
    }
    return chosen;
  };
}

function byScore(a: Candidate, b: Candidate): number {
  return b.score - a.score || a.id - b.id;
}

/** The nodes of the best rendezvous scores. */
function bestOf(layer: Layer, state: number, count: number): Candidate[] {
  const candidates = layer.nodes.map((node) => ({
    id: node.id,
    score: logUnit(decide(state, node.mixed, SALT.NODE)) / node.weight,
  }));
  return candidates.sort(byScore).slice(0, count);
}

/** The first draws of a partial shuffle: what was drawn is swapped to the end. */
function shuffled(layer: Layer, state: number, count: number): NodeId[] {
  const start = decide(state, layer.mixed, SALT.SHUFFLE);
  const nodes = layer.nodes.map((node) => node.id);
  const drawn: NodeId[] = [];
  for (let last = nodes.length - 1; drawn.length < count; last--) {
    const at = Math.floor((streamDraw(start, drawn.length) / 4_294_967_296) * (last + 1));
    drawn.push(nodes[at]!);
    nodes[at] = nodes[last]!;
  }
  return drawn;
}

function prepare(topology: Topology): Placer {
  const choose = walk(topology, bestOf);
  // the walk meets newer sub-clusters first; the score gives rank 0 to a node that keeps it when others come and go
  return (group, count) =>
    choose(group, count)
      .sort(byScore)
      .map((candidate) => candidate.id);
}

/**
 * RUSH_R with stable ids and weighted rendezvous inside each sub-cluster. The walk goes from the newest sub-cluster to the
 * oldest and draws how many copies each takes, so the load is proportional to weight. More copies keep the members of
 * fewer (nested sets), not their order.
 *
 * Differences from the papers: streams are seeded by sub-cluster id, not by index, so that dropping an empty sub-cluster
 * moves nothing; nodes inside are chosen by score, not by a shuffle, so that a lost node moves half as much.
 * Source: Honicky and Miller, "Replication Under Scalable Hashing", IPDPS 2004.
 */
export const RUSH_R: PlacementAlgorithm = {
  name: 'rush-r',
  version: 1,
  supports: {
    order: 'nested',
    domains: false,
    exactReweight: false,
    exactGrowth: true,
    weights: true,
    fractionalWeights: true,
    unevenSubclusters: false,
    wideSubclusters: 'none',
    stores: 'nothing',
    lookup: true,
  },
  prepare,
};

/**
 * RUSH_R as published: nodes inside a sub-cluster by a partial shuffle, the list in the order of the walk, newest sub-cluster
 * first. Streams are seeded by sub-cluster id here as well.
 *
 * Cost: linear in the sub-clusters.
 * Source: Honicky and Miller, "Replication Under Scalable Hashing", IPDPS 2004.
 */
export const RUSH_R_SHUFFLE: PlacementAlgorithm = {
  ...RUSH_R,
  name: 'rush-r-shuffle',
  prepare: (topology) => walk(topology, shuffled),
};
