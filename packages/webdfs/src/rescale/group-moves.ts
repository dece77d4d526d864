import type { GroupId, NodeId, PolicyId } from '@webdfs/base';
import { allGroups, type MapView, without } from '@webdfs/cluster';
import { compilePlacement, type Topology } from '@webdfs/placement';
import { type Parcel, planRescale, type Usage } from '@webdfs/rescale';

/** What must be copied for groups to come to their goals; amounts are copies of groups. */
export interface GroupMoves {
  /** Groups whose members are to change. */
  readonly groups: number;
  readonly copies: number;
  /** What the best plan has each node do, were all nodes alike. */
  readonly usage: ReadonlyMap<NodeId, Usage>;
}

/** Goals of groups; those of the map, or of a target that is not in it yet. */
type GoalOf = (policy: PolicyId, group: GroupId) => readonly NodeId[];

/** Where every node does the same in the same time, the plan is the one that spreads the work. */
const ALIKE = { network: 1, read: Infinity, write: Infinity } as const;

function movesTo(view: MapView, goalOf: GoalOf): GroupMoves {
  const parcels: Parcel[] = [];
  let groups = 0;
  for (const key of allGroups(view.map)) {
    const { inSync, members } = view.group(key);
    const goal = goalOf(key.policy, key.group);
    const receivers = goal.filter((node) => !inSync.includes(node));
    if (receivers.length > 0 || goal.length !== members.length || goal.some((node, i) => members[i] !== node)) groups++;
    if (receivers.length === 0 || inSync.length === 0) continue;
    const safeCopies = inSync.filter((node) => goal.includes(node)).length;
    parcels.push({ id: parcels.length, bytes: 1, holders: inSync, receivers, safeCopies });
  }
  const { usage, bytes: copies } = planRescale(parcels, () => ALIKE);
  return { groups, copies, usage };
}

const KNOWN = new WeakMap<MapView, GroupMoves>();

/** What is left of the change under way. Computed once for each revision of the map. */
export function movesLeft(view: MapView): GroupMoves {
  let moves = KNOWN.get(view);
  if (moves === undefined) {
    moves = movesTo(view, (policy, group) => view.group({ policy, group }).goal);
    KNOWN.set(view, moves);
  }
  return moves;
}

/** What a target would have moved from where the groups are now. @param copiesOf  the copies that each policy is to have */
export function movesTowards(view: MapView, target: Topology, copiesOf: (policy: PolicyId) => number): GroupMoves {
  const placeable = without(target, view.map.out);
  const tables = new Map(
    view.map.policies.map(({ id }) => [
      id,
      compilePlacement(placeable, view.map.groupBits, copiesOf(id), { shortfall: 'fewer' }),
    ]),
  );
  return movesTo(view, (policy, group) => tables.get(policy)!.members(group));
}

/** Copies that each node holds now. */
export function copiesHeld(view: MapView): Map<NodeId, number> {
  const held = new Map<NodeId, number>();
  for (const key of allGroups(view.map)) {
    for (const node of view.group(key).inSync) held.set(node, (held.get(node) ?? 0) + 1);
  }
  return held;
}
