import { placeableNodes } from '../domains.ts';
import type { NodeId } from '../ids.ts';
import { weightShares } from '../moves.ts';
import type { PlacementTable } from '../placement-table.ts';
import { bytesOf, type GroupBytes } from './movement.ts';

/** What one node holds. */
export interface NodeLoad {
  readonly copies: number;
  readonly bytes: number;
  /** Bytes that its weight would give it; 0 for a node without weight. */
  readonly share: number;
}

/** How evenly a table fills its nodes, by bytes. */
export interface Balance {
  /** The node that is fullest for its weight, and how much of its share it holds: 1.07 is 7 % more. */
  readonly fullest: { readonly node: NodeId; readonly ofShare: number };
  readonly emptiest: { readonly node: NodeId; readonly ofShare: number };
  /** Standard deviation of what the nodes hold of their shares. */
  readonly deviation: number;
}

/** What each node of a table's topology holds, those without weight included. */
export function loadsOf(table: PlacementTable, groupBytes: GroupBytes): Map<NodeId, NodeLoad> {
  const copies = new Map<number, number>();
  const bytes = new Map<number, number>();
  const rows = table.rows();
  let total = 0;
  for (let group = 0; group < table.groupCount; group++) {
    const size = bytesOf(groupBytes, group);
    for (let at = group * table.count; at < (group + 1) * table.count; at++) {
      const node = rows[at]!;
      copies.set(node, (copies.get(node) ?? 0) + 1);
      bytes.set(node, (bytes.get(node) ?? 0) + size);
      total += size;
    }
  }
  const shares = weightShares(table.topology);
  const ids = table.topology.subclusters.flatMap(({ nodes }) => nodes.map(({ id }) => id));
  return new Map(
    ids.map((id) => [
      id,
      { copies: copies.get(id) ?? 0, bytes: bytes.get(id) ?? 0, share: total * (shares.get(id) ?? 0) },
    ]),
  );
}

/** Undefined where there is nothing to weigh: no node has weight, or no group has bytes. */
export function balanceOf(table: PlacementTable, loads: ReadonlyMap<NodeId, NodeLoad>): Balance | undefined {
  const filled = placeableNodes(table.topology)
    .map(({ id }) => ({ node: id, load: loads.get(id)! }))
    .filter(({ load }) => load.share > 0)
    .map(({ node, load }) => ({ node, ofShare: load.bytes / load.share }));
  if (filled.length === 0) return undefined;
  const [first] = filled;
  let [fullest, emptiest] = [first!, first!];
  let squares = 0;
  for (const one of filled) {
    if (one.ofShare > fullest.ofShare) fullest = one;
    if (one.ofShare < emptiest.ofShare) emptiest = one;
    squares += (one.ofShare - 1) ** 2;
  }
  return { fullest, emptiest, deviation: Math.sqrt(squares / filled.length) };
}
