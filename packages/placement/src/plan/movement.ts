import type { GroupId, NodeId } from '../ids.ts';
import { movesBetween } from '../moves.ts';
import type { PlacementTable } from '../placement-table.ts';

/** Copies that leave one node and are made on another. */
export interface Flow {
  /** Undefined: no node gives its copy up, the group gets one more; any of its members can be the source. */
  readonly from: NodeId | undefined;
  /** Undefined: the copy is given up and none is made. */
  readonly to: NodeId | undefined;
  /** One copy each. */
  readonly groups: number;
  readonly bytes: number;
}

/** What must be done to turn one table into another. */
export interface Movement {
  /** Groups whose members differ. */
  readonly groups: number;
  /** Copies to be made, and their bytes. */
  readonly copies: number;
  readonly bytes: number;
  /** Copies given up without another in their place. */
  readonly dropped: number;
  /** Largest first. */
  readonly flows: readonly Flow[];
}

/** Bytes of one copy of each group: one figure for all, or one for each. */
export type GroupBytes = number | ArrayLike<number>;

export function bytesOf(groupBytes: GroupBytes, group: number): number {
  return typeof groupBytes === 'number' ? groupBytes : (groupBytes[group] ?? 0);
}

const NOBODY = 0;
const ID_SPAN = 65_536;

/** Adds up, from node to node, what changes between two tables. The rank order decides who takes whose place in a group. */
export function movementBetween(before: PlacementTable, after: PlacementTable, groupBytes: GroupBytes): Movement {
  const flows = new Map<number, { groups: number; bytes: number }>();
  let [groups, copies, bytes, dropped] = [0, 0, 0, 0];
  const moves = movesBetween(
    (group) => before.members(group as GroupId),
    (group) => after.members(group as GroupId),
    before.groupCount,
  );
  for (const { group, gone, come } of moves) {
    const size = bytesOf(groupBytes, group);
    groups += 1;
    copies += come.length;
    bytes += come.length * size;
    dropped += Math.max(0, gone.length - come.length);
    for (let i = 0; i < Math.max(gone.length, come.length); i++) {
      const key = (gone[i] ?? NOBODY) * ID_SPAN + (come[i] ?? NOBODY);
      const flow = flows.get(key) ?? { groups: 0, bytes: 0 };
      flow.groups += 1;
      flow.bytes += size;
      flows.set(key, flow);
    }
  }
  const nodeOf = (id: number): NodeId | undefined => (id === NOBODY ? undefined : (id as NodeId));
  const listed = Array.from(flows, ([key, flow]): Flow => {
    return { from: nodeOf(Math.floor(key / ID_SPAN)), to: nodeOf(key % ID_SPAN), ...flow };
  });
  listed.sort(
    (a, b) => b.bytes - a.bytes || b.groups - a.groups || (a.from ?? 0) - (b.from ?? 0) || (a.to ?? 0) - (b.to ?? 0),
  );
  return { groups, copies, bytes, dropped, flows: listed };
}
