import type { GroupId, NodeId, PolicyId } from '@webdfs/base';
import { allGroups, type MapView, progressOf, without } from '@webdfs/cluster';
import { compilePlacement, type Topology } from '@webdfs/placement';
import { type Parcel, planRescale, type Usage } from '@webdfs/rescale';
import type { GroupSizes } from '../group-sizes.ts';

/** What must be copied for groups to come to their goals. */
export interface GroupMoves {
  /** Groups whose members are to change. */
  readonly groups: number;
  /** Copies of groups to be made, and their bytes. */
  readonly copies: number;
  readonly bytes: number;
  /** What the best plan has each node do, were all nodes alike. */
  readonly usage: ReadonlyMap<NodeId, Usage>;
}

/** Goals of groups; those of the map, or of a target that is not in it yet. */
type GoalOf = (policy: PolicyId, group: GroupId) => readonly NodeId[];

/** Where every node does the same in the same time, the plan is the one that spreads the work. */
const ALIKE = { network: 1, read: Infinity, write: Infinity } as const;

function movesTo(view: MapView, sizes: GroupSizes, goalOf: GoalOf): GroupMoves {
  const parcels: Parcel[] = [];
  let groups = 0;
  let copies = 0;
  for (const key of allGroups(view.map)) {
    const { inSync, members } = view.group(key);
    const goal = goalOf(key.policy, key.group);
    const receivers = goal.filter((node) => !inSync.includes(node));
    if (receivers.length > 0 || goal.length !== members.length || goal.some((node, i) => members[i] !== node)) groups++;
    if (receivers.length === 0 || inSync.length === 0) continue;
    const safeCopies = inSync.filter((node) => goal.includes(node)).length;
    copies += receivers.length;
    const bytes = sizes.bytesOf(key.policy, key.group);
    // what is empty is no work, but it counts as moved
    if (bytes === 0) continue;
    parcels.push({ id: parcels.length, bytes, holders: inSync, receivers, safeCopies });
  }
  const { usage, bytes } = planRescale(parcels, () => ALIKE);
  return { groups, copies, bytes, usage };
}

const KNOWN = new WeakMap<MapView, { readonly sizes: GroupSizes; readonly moves: GroupMoves }>();

/** What is left of the change under way. Computed once for each revision of the map and what was asked of sizes. */
export function movesLeft(view: MapView, sizes: GroupSizes): GroupMoves {
  let known = KNOWN.get(view);
  if (known?.sizes !== sizes) {
    known = { sizes, moves: movesTo(view, sizes, (policy, group) => view.group({ policy, group }).goal) };
    KNOWN.set(view, known);
  }
  return known.moves;
}

/** Groups whose members are not those that they should have. */
export function groupsLeft(view: MapView): number {
  const { groups, atGoal } = progressOf(view);
  return groups - atGoal;
}

/** What a target would have moved from where the groups are now. @param copiesOf  the copies that each policy is to have */
export function movesTowards(
  view: MapView,
  target: Topology,
  { copiesOf, sizes }: { readonly copiesOf: (policy: PolicyId) => number; readonly sizes: GroupSizes },
): GroupMoves {
  const placeable = without(target, view.map.out);
  const tables = new Map(
    view.map.policies.map(({ id }) => [
      id,
      compilePlacement(placeable, view.map.groupBits, copiesOf(id), { shortfall: 'fewer' }),
    ]),
  );
  return movesTo(view, sizes, (policy, group) => tables.get(policy)!.members(group));
}

/** Bytes of the copies that each node has now as a member. */
export function bytesHeld(view: MapView, sizes: GroupSizes): Map<NodeId, number> {
  const held = new Map<NodeId, number>();
  for (const key of allGroups(view.map)) {
    const bytes = sizes.bytesOf(key.policy, key.group);
    for (const node of view.group(key).inSync) held.set(node, (held.get(node) ?? 0) + bytes);
  }
  return held;
}
