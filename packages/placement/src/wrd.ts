import type { NodeId } from '@webdfs/base';
import type { PlacementAlgorithm, Placer } from './algorithm.ts';
import { decide, groupState, mixWord, SALT } from './decision-hash.ts';
import { domainOf, placeableNodes } from './domains.ts';
import { logUnit } from './logarithm.ts';
import type { Topology, TopologyNode } from './topology.ts';

/** Calibration factor of a domain that the topology gives none: 1 in 16.16. */
export const UNIT_FACTOR = 65_536;

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

/** The order of nodes: highest score first; of equal ones the lower index, which is the lower id. */
function comesBefore(a: number, b: number, scores: Float64Array): boolean {
  return scores[a]! > scores[b]! || (scores[a] === scores[b] && a < b);
}

/** Pass 1 alone, enough while there are domains for all copies: the best node of each domain, the best of those first. */
function onePerDomain(columns: Columns, scores: Float64Array, count: number): number[] {
  const best = new Int32Array(columns.domainCount).fill(-1);
  for (let i = 0; i < scores.length; i++) {
    const domain = columns.domains[i]!;
    if (best[domain] === -1 || scores[i]! > scores[best[domain]!]!) best[domain] = i;
  }
  // insertion into the few best: a sort of all domains would cost more than all logarithms
  const first: number[] = [];
  for (const i of best) {
    if (first.length === count && !comesBefore(i, first[count - 1]!, scores)) continue;
    let at = first.length < count ? first.push(i) - 1 : count - 1;
    for (; at > 0 && comesBefore(i, first[at - 1]!, scores); at--) first[at] = first[at - 1]!;
    first[at] = i;
  }
  return first;
}

/** All passes: in pass q a node is taken when its domain has fewer than q. */
function inPasses(columns: Columns, scores: Float64Array, count: number): number[] {
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
  const scores = new Float64Array(columns.ids.length);
  return (group, count) => {
    const state = groupState(topology.seed, group);
    for (let i = 0; i < scores.length; i++) {
      scores[i] = scoreOf(state, columns.mixed[i]!, columns.shares[i]!);
    }
    const taken =
      count <= columns.domainCount ? onePerDomain(columns, scores, count) : inPasses(columns, scores, count);
    return taken.map((i) => columns.ids[i]!);
  };
}

/**
 * WRD, weighted rendezvous with domain skip. Every node draws a score ln(u) / (weight · factor of its domain); the highest
 * scores win, skipping domains that already have one, then those that have two, and so on. The result is one fixed
 * permutation per group, so another number of copies is another prefix.
 *
 * Cost: one hash and one logarithm per node.
 * Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996, with weights and the domain skip.
 */
export const WRD: PlacementAlgorithm = {
  name: 'wrd',
  version: 1,
  supports: { order: 'prefix', domains: true, exactReweight: true, unevenSubclusters: true },
  prepare,
};
