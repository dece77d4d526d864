import type { NodeId } from '@webdfs/base';
import type { Topology } from '@webdfs/placement';
import { nodesOf, type Subclusters, totalWeight } from './layout.ts';

/** Where every group of an experiment lies, and what is counted of that. */
export interface Placed {
  readonly subclusters: Subclusters;
  readonly copies: number;
  readonly groupCount: number;
  /** `copies` node ids per group, in order; 0 where a list is short. */
  readonly rows: Uint16Array;
  /** What the algorithm was given, where it needs that for the next change. */
  readonly published?: Topology;
}

export type Counts = ReadonlyMap<number, number>;

/** Copies per node, nodes that hold none included. */
export function loadsOf(placed: Placed): Map<number, number> {
  const loads = new Map<number, number>(nodesOf(placed.subclusters).map((node) => [node.id, 0]));
  for (const node of placed.rows) if (node !== 0) loads.set(node, (loads.get(node) ?? 0) + 1);
  return loads;
}

/** Copies per node in proportion to weight. */
export function targetsOf(placed: Placed): Map<number, number> {
  const total = totalWeight(placed.subclusters);
  const copies = placed.groupCount * placed.copies;
  return new Map(nodesOf(placed.subclusters).map((node) => [node.id, (copies * node.weight) / total]));
}

export interface Moves {
  /** (group, node) pairs that are there after and were not before: what must be copied. */
  readonly count: number;
  /** Places in the lists that hold another node than before: how the first of the published counts was made. */
  readonly ranks: number;
  /** The pairs that ended, by node. */
  readonly from: Counts;
  readonly to: Counts;
}

/** Of the same groups under two layouts. */
export function movesBetween(before: Placed, after: Placed): Moves {
  const from = new Map<number, number>();
  const to = new Map<number, number>();
  const { copies } = before;
  let count = 0;
  let ranks = 0;
  for (let start = 0; start < before.rows.length; start += copies) {
    const old = before.rows.subarray(start, start + copies);
    const now = after.rows.subarray(start, start + copies);
    for (let i = 0; i < copies; i++) {
      if (old[i] !== now[i]) ranks++;
      if (old[i] !== 0 && !now.includes(old[i]!)) from.set(old[i]!, (from.get(old[i]!) ?? 0) + 1);
      if (now[i] === 0 || old.includes(now[i]!)) continue;
      to.set(now[i]!, (to.get(now[i]!) ?? 0) + 1);
      count++;
    }
  }
  return { count, ranks, from, to };
}

/** The least that must move: what nodes lose of their share of all copies. */
export function optimumOf(before: Placed, after: Placed): number {
  const wanted = targetsOf(after);
  let sum = 0;
  for (const [node, target] of targetsOf(before)) sum += Math.max(0, target - (wanted.get(node) ?? 0));
  return sum;
}

/** Of the groups of `node`: how many copies each other node has of them. */
export function partnersOf(placed: Placed, node: NodeId): Map<number, number> {
  const partners = new Map<number, number>(
    nodesOf(placed.subclusters).flatMap(({ id, weight }) => (id === node || weight === 0 ? [] : [[id, 0]])),
  );
  for (let start = 0; start < placed.rows.length; start += placed.copies) {
    const row = placed.rows.subarray(start, start + placed.copies);
    if (!row.includes(node)) continue;
    for (const other of row) if (other !== node && other !== 0) partners.set(other, (partners.get(other) ?? 0) + 1);
  }
  return partners;
}

export interface Balance {
  /** Σ (load − target)² / target. */
  readonly chiSquare: number;
  /** Of the node that is fullest for its weight. */
  readonly largest: number;
  readonly smallest: number;
  /** Standard deviation of load / target. */
  readonly deviation: number;
}

export function balanceOf(placed: Placed): Balance {
  const loads = loadsOf(placed);
  const ratios: number[] = [];
  let chiSquare = 0;
  for (const [node, target] of targetsOf(placed)) {
    if (target === 0) continue;
    const load = loads.get(node)!;
    chiSquare += (load - target) ** 2 / target;
    ratios.push(load / target);
  }
  const mean = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
  const variance = ratios.reduce((sum, ratio) => sum + (ratio - mean) ** 2, 0) / ratios.length;
  return { chiSquare, largest: Math.max(...ratios), smallest: Math.min(...ratios), deviation: Math.sqrt(variance) };
}

/** Load against target of all nodes of one weight together: what no number of groups evens out. Lightest first. */
export function biasByWeight(placed: Placed): [weight: number, bias: number][] {
  const loads = loadsOf(placed);
  const targets = targetsOf(placed);
  const classes = Map.groupBy(nodesOf(placed.subclusters), (node) => node.weight);
  const sum = (counts: Counts, ids: readonly number[]): number => ids.reduce((total, id) => total + counts.get(id)!, 0);
  return [...classes]
    .filter(([weight]) => weight > 0)
    .toSorted(([a], [b]) => a - b)
    .map(([weight, nodes]) => {
      const ids = nodes.map((node) => node.id);
      return [weight, sum(loads, ids) / sum(targets, ids)];
    });
}

/** The share of groups with two copies in one rack (a node without the label is its own rack). */
export function sharedRackShare(placed: Placed): number {
  const racks = new Map<number, string>(
    nodesOf(placed.subclusters).map((node) => [node.id, node.labels.rack ?? `#${node.id}`]),
  );
  let shared = 0;
  for (let start = 0; start < placed.rows.length; start += placed.copies) {
    const seen = new Set<string>();
    let crowded = false;
    for (const node of placed.rows.subarray(start, start + placed.copies)) {
      if (node === 0) continue;
      const rack = racks.get(node)!;
      crowded ||= seen.has(rack);
      seen.add(rack);
    }
    if (crowded) shared++;
  }
  return shared / placed.groupCount;
}
