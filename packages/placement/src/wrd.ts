import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, Placer } from './algorithm.ts';
import { decide, groupState, mixWord, SALT } from './decision-hash.ts';
import { calibrate } from './calibrate.ts';
import { domainOf, placeableNodes } from './domains.ts';
import { logUnit } from './logarithm.ts';
import { type Topology, type TopologyNode, UNIT_FACTOR } from './topology.ts';

/** The nodes of a topology as columns, in the order of their ids, so that of equal scores the lower id comes first. */
interface Columns {
  readonly ids: readonly NodeId[];
  readonly mixed: Int32Array;
  /** weight · factor. */
  readonly shares: Float64Array;
  readonly domains: Uint32Array;
  readonly domainCount: number;
}

/** What a node's score is divided by: its weight times the factor of its domain. */
export function shareOf(topology: Topology, node: TopologyNode): number {
  return node.weight * (topology.factors?.[domainOf(topology, node)] ?? UNIT_FACTOR);
}

/** A node's score in a group: the highest win. */
export function scoreOf(state: number, mixedId: number, share: number): number {
  return logUnit(decide(state, mixedId, SALT.NODE)) / share;
}

function columnsOf(topology: Topology): Columns {
  const nodes = placeableNodes(topology).toSorted((a, b) => a.id - b.id);
  const numbers = new Map<string, number>();
  const domains = new Uint32Array(nodes.length);
  const shares = new Float64Array(nodes.length);
  const mixed = new Int32Array(nodes.length);
  for (const [i, node] of nodes.entries()) {
    const domain = domainOf(topology, node);
    let number = numbers.get(domain);
    if (number === undefined) numbers.set(domain, (number = numbers.size));
    domains[i] = number;
    shares[i] = shareOf(topology, node);
    mixed[i] = mixWord(node.id);
  }
  return { ids: nodes.map((node) => node.id), mixed, shares, domains, domainCount: numbers.size };
}

/** More than any logarithm errs: what is certainly below a score stays so whatever the rounding. */
const SLACK = 1e-12;

/**
 * Whether a node may score `least` or more, without a logarithm: ln u ≤ u − 1. The two are close where u is close to 1, which is
 * where winners are, so of 500 nodes some 20 are left to be scored.
 */
export function mayReach(least: number, hash: number, share: number): boolean {
  return (hash + 0.5) / 4_294_967_296 - 1 + SLACK >= least * share;
}

/**
 * Pass 1 alone, enough while there are domains for all copies: the best node of each domain, the best of those first.
 */
function onePerDomain(columns: Columns, state: number, count: number): number[] {
  const { mixed, shares, domains } = columns;
  const best: number[] = [];
  const scores: number[] = [];
  let least = -Infinity;
  for (let i = 0; i < mixed.length; i++) {
    const hash = decide(state, mixed[i]!, SALT.NODE);
    if (!mayReach(least, hash, shares[i]!)) continue;
    const score = logUnit(hash) / shares[i]!;
    // of equal scores the lower index stays ahead, which is the lower id
    if (score <= least) continue;
    let at = best.findIndex((other) => domains[other] === domains[i]);
    if (at === -1) at = best.length < count ? best.length : count - 1;
    else if (score <= scores[at]!) continue;
    for (; at > 0 && score > scores[at - 1]!; at--) {
      best[at] = best[at - 1]!;
      scores[at] = scores[at - 1]!;
    }
    best[at] = i;
    scores[at] = score;
    if (best.length === count) least = scores[count - 1]!;
  }
  return best;
}

/** All passes: in pass q a node is taken when its domain has fewer than q. */
function inPasses(columns: Columns, state: number, count: number): number[] {
  const scores = columns.shares.map((share, i) => scoreOf(state, columns.mixed[i]!, share));
  let left = [...columns.ids.keys()].sort((a, b) => scores[b]! - scores[a]! || a - b);
  const taken: number[] = [];
  const held = new Uint32Array(columns.domainCount);
  for (let pass = 1; taken.length < count; pass++) {
    const passedOver: number[] = [];
    for (const i of left) {
      const domain = columns.domains[i]!;
      if (taken.length < count && held[domain]! < pass) {
        held[domain]! += 1;
        taken.push(i);
      } else passedOver.push(i);
    }
    left = passedOver;
  }
  return taken;
}

function prepare(topology: Topology): Placer {
  const columns = columnsOf(topology);
  return (group, count) => {
    if (count === 0) return [];
    const state = groupState(topology.seed, group);
    const taken = count <= columns.domainCount ? onePerDomain(columns, state, count) : inPasses(columns, state, count);
    return taken.map((i) => columns.ids[i]!);
  };
}

/**
 * WRD, weighted rendezvous with domain skip. Every node draws a score ln(u) / (weight · factor of its domain); the highest
 * scores win, skipping domains that already have one, then those that have two, and so on. The result is one fixed
 * permutation per group, so another number of copies is another prefix.
 *
 * Cost: one hash per node, and a logarithm for the few that come near the best.
 * Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996, with weights and the domain skip.
 */
export const WRD: PlacementAlgorithm = {
  name: 'wrd',
  version: 1,
  supports: {
    order: 'prefix',
    domains: true,
    exactReweight: true,
    exactGrowth: true,
    weights: true,
    fractionalWeights: true,
    unevenSubclusters: true,
    wideSubclusters: 'none',
    stores: 'factors',
    lookup: true,
  },
  prepare,
  publish: calibrate,
};
