import { assert, type GroupKey, type NodeId, type PolicyId, type Revision } from '@webdfs/base';
import { formatDocument } from './documents.ts';
import { CONTROLLER_KEY, DOWN_PREFIX, GROUP_PREFIX, groupKey, liveKey, MAP_KEY, sliceKey } from './keys.ts';
import type { ClusterMap } from './map.ts';
import type { Compare, Transaction, Write } from './map-store.ts';
import { allGroups } from './map-view.ts';
import { placeable, placementsOf, without } from './placements.ts';
import { mostCopies, settledPolicies, wantedCopies } from './policy-change.ts';
import { atGoal } from './propose.ts';
import type { MapView } from './view.ts';

/** What the controller changes beside members and marks: topologies, nodes written off, overrides that say nothing. */

const controllerIs = (revision: Revision): Compare => ({ type: 'created', key: CONTROLLER_KEY, is: revision });
const mapIs = (map: MapView): Compare => ({ type: 'modified', key: MAP_KEY, is: map.mapRevision });

function mapWrite(map: ClusterMap): Write {
  return { type: 'put', key: MAP_KEY, value: formatDocument(map) };
}

function sameNodes(a: readonly NodeId[], b: readonly NodeId[]): boolean {
  return a.length === b.length && a.every((node, i) => node === b[i]);
}

/**
 * Whether the target can become the settled topology without changing any configuration: every group stands at its goal,
 * and those without an override are placed by both alike.
 */
export function canSettle(map: MapView): boolean {
  const { target } = map.map;
  if (target === undefined) return false;
  const { target: _, ...rest } = map.map;
  const after = placementsOf({ ...rest, settled: target });
  for (const group of allGroups(map.map)) {
    const view = map.group(group);
    if (!atGoal(view)) return false;
    if (!view.overridden && !sameNodes(view.members, after.placed(group.group, wantedCopies(map.policy(group.policy)))))
      return false;
  }
  return true;
}

/** The target becomes the settled topology, and numbers of copies what they were to become; no membership and no ballot changes. */
export function proposeSettle(map: MapView, controller: Revision): Transaction {
  const { target, ...rest } = map.map;
  assert(target !== undefined, 'there is a target to settle at');
  const { policies, compare } = settledPolicies(map);
  const still: Compare = { type: 'range', prefix: GROUP_PREFIX, notAfter: map.revision };
  return {
    compare: [controllerIs(controller), mapIs(map), ...(compare.length === 0 ? [still] : compare)],
    write: [mapWrite({ ...rest, policies, settled: target })],
  };
}

/** Overrides of a slice that say what placement says, keep nobody eligible and fence nobody. */
export function sweepable(map: MapView, policy: PolicyId, slice: number): readonly GroupKey[] {
  return map.overridden(policy, slice).filter((group) => {
    const override = map.override(group)!.value;
    if (override.eligible.length > 0 || map.group(group).fence.length > 0) return false;
    return sameNodes(override.members, map.placed(group));
  });
}

/**
 * Takes the overrides that say nothing out of a slice, and rewrites its key, so that no ballot goes back. Only while
 * nobody is marked: the newer slice would declare a marked node in sync.
 */
export function proposeSweep(map: MapView, policy: PolicyId, slice: number, controller: Revision): Transaction {
  assert(map.marked().length === 0, 'nothing is swept while a node is marked');
  const spent = sweepable(map, policy, slice);
  const key = sliceKey(policy, slice);
  return {
    compare: [
      controllerIs(controller),
      mapIs(map),
      { type: 'range', prefix: DOWN_PREFIX, notAfter: 0 },
      { type: 'modified', key, is: map.sliceRevision(policy, slice) },
      ...map.overridden(policy, slice).map((group): Compare => {
        return { type: 'modified', key: groupKey(group), is: map.override(group)!.revision };
      }),
    ],
    write: [
      { type: 'put', key, value: '{}' },
      ...spent.map((group): Write => ({ type: 'delete', key: groupKey(group) })),
    ],
  };
}

/** Whether the groups of a node would find another home: enough others can be given groups. */
export function canWriteOff(map: MapView, node: NodeId): boolean {
  const { settled, target, out, policies } = map.map;
  if (out.includes(node)) return false;
  const left = placeable(without(target ?? settled, [...out, node]));
  return left.length >= mostCopies(policies);
}

/** A node marked for long is written off: its groups' goals change, and learners do the rest. */
export function proposeWriteOff(map: MapView, node: NodeId, controller: Revision): Transaction {
  const down = map.down(node);
  assert(down !== undefined, 'only a marked node is written off');
  return {
    compare: [
      controllerIs(controller),
      mapIs(map),
      { type: 'modified', key: `down/${node}`, is: down.mark },
      { type: 'modified', key: liveKey(node), is: 0 },
    ],
    write: [mapWrite({ ...map.map, out: [...map.map.out, node].toSorted((a, b) => a - b) })],
  };
}

/** A node that was written off is back. */
export function proposeReinstate(map: MapView, node: NodeId, controller: Revision): Transaction {
  const live = map.live(node);
  assert(live !== undefined, 'a node that is back lives');
  return {
    compare: [controllerIs(controller), mapIs(map), { type: 'modified', key: liveKey(node), is: live.session }],
    write: [mapWrite({ ...map.map, out: map.map.out.filter((other) => other !== node) })],
  };
}
