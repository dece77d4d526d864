import type { NodeId } from './ids.ts';
import { placeableNodes } from './domains.ts';
import type { Topology } from './topology.ts';

/** What changes for a group, as sets: a copy that only changes its rank has not moved. */
export interface GroupMove {
  readonly group: number;
  readonly gone: readonly NodeId[];
  readonly come: readonly NodeId[];
}

/** The groups whose members differ. `come` has one entry for each copy that must be made. */
export function movesBetween(
  before: (group: number) => readonly NodeId[],
  after: (group: number) => readonly NodeId[],
  groups: number,
): GroupMove[] {
  const moves: GroupMove[] = [];
  for (let group = 0; group < groups; group++) {
    const old = before(group);
    const next = after(group);
    const gone = old.filter((node) => !next.includes(node));
    const come = next.filter((node) => !old.includes(node));
    if (gone.length + come.length > 0) moves.push({ group, gone, come });
  }
  return moves;
}

/** Each node's share of the weight. */
export function weightShares(topology: Topology): Map<NodeId, number> {
  const nodes = placeableNodes(topology);
  const total = nodes.reduce((sum, node) => sum + node.weight, 0);
  return new Map(nodes.map((node) => [node.id, node.weight / total]));
}

/**
 * The copies that any placement in proportion to weight must move from one topology to the other:
 * groups · copies · Σ max(0, share after − share before). Counts alike under both; the number of copies is `after`'s.
 */
export function leastMoves(before: Topology, after: Topology, groups: number): number {
  const old = weightShares(before);
  let sum = 0;
  for (const [node, share] of weightShares(after)) sum += Math.max(0, share - (old.get(node) ?? 0));
  return sum * groups * after.copies;
}
