import { assert, type GroupKey, type NodeId, type Revision, WebdfsError } from '@webdfs/base';
import { formatDocument } from './documents.ts';
import { CONTROLLER_KEY, DOWN_PREFIX, groupKey, liveKey, MAP_KEY, sliceKey, sliceOf } from './keys.ts';
import type { FencedNode, GroupView, Override } from './map.ts';
import type { Compare, Transaction, Write } from './map-store.ts';
import type { MapView } from './view.ts';

/** A learner that has caught up, in the session in which it did. */
export interface CaughtUp {
  readonly node: NodeId;
  readonly session: Revision;
}

/** What shall become of a group's members. */
export type MembershipChange =
  /**
   * By the serving primary: learners join, those not in the goal make room. With all of the goal in sync or caught up the
   * members become the goal; else one joins and, where there would be more than `copies`, one that is not in the goal goes.
   */
  | { readonly type: 'join'; readonly learners: readonly CaughtUp[] }
  /** By the primary: a member that does not answer. `serving`: whether it had settled with its fence (L7). */
  | { readonly type: 'drop'; readonly node: NodeId; readonly serving: boolean }
  /** By the controller: live eligible nodes are members again; without anyone in sync, that elects. */
  | { readonly type: 'restore'; readonly controller: Revision; readonly nodes: readonly NodeId[] }
  /** By the controller: the primary becomes the last member. */
  | { readonly type: 'depose'; readonly controller: Revision }
  /** By an operator who accepts the loss of what only others had. */
  | { readonly type: 'force'; readonly node: NodeId };

/** A change of one group, ready to be sent alone or with others (`together`). */
export interface Proposal {
  readonly group: GroupKey;
  readonly override: Override;
  readonly transaction: Transaction;
  /** The present primary will not be it any more: it must stop serving before this is sent (L6). */
  readonly yields: boolean;
}

const refuse = (message: string): never => {
  throw new WebdfsError('CONFLICT', message);
};

/** The goal is reached with these members in sync, or the members they become on the way to it. */
function joined(view: GroupView, learners: readonly NodeId[]): readonly NodeId[] {
  const all = [...view.inSync, ...learners.filter((node) => !view.inSync.includes(node))];
  const enough = view.goal.length >= Math.min(view.inSync.length, view.copies);
  if (enough && view.goal.every((node) => all.includes(node))) return view.goal;
  // one that is not in the goal makes room, the primary last of all: it would have to yield
  for (let i = all.length - 1; i > 0 && all.length > view.copies; i--) {
    if (!view.goal.includes(all[i]!)) all.splice(i, 1);
  }
  return all;
}

function membersAfter(view: GroupView, change: MembershipChange): readonly NodeId[] {
  switch (change.type) {
    case 'join': {
      if (view.primary === undefined) return refuse('a group without a primary takes no learner');
      return joined(
        view,
        change.learners.map(({ node }) => node),
      );
    }
    case 'drop':
      return view.inSync.filter((node) => node !== change.node);
    case 'restore':
      return [...view.inSync, ...change.nodes.filter((node) => view.eligible.includes(node))];
    case 'depose':
      return [...view.inSync.slice(1), ...view.inSync.slice(0, 1)];
    case 'force':
      return [change.node];
  }
}

function checkChange(view: GroupView, change: MembershipChange, members: readonly NodeId[]): void {
  const floor = Math.min(view.inSync.length, view.copies);
  if (change.type === 'join' && members.length < floor) {
    refuse(`a planned step leaves ${members.length} members of ${view.inSync.length}`);
  }
  if (change.type === 'drop' && members.length < view.minCopies) {
    throw new WebdfsError(
      'NO_QUORUM',
      `without node ${change.node} ${members.length} of ${view.minCopies} would remain`,
    );
  }
  const same = members.length === view.members.length && members.every((node, i) => node === view.members[i]);
  if (members.length === 0 || (same && view.inSync.length === view.members.length && change.type !== 'force')) {
    refuse(`${change.type} changes nothing`);
  }
}

/** M2: eligible nodes stay so until enough members acknowledge again. */
function eligibleAfter(view: GroupView, change: MembershipChange, members: readonly NodeId[]): readonly NodeId[] {
  if (change.type === 'force' || members.length >= view.minCopies) return [];
  return view.eligible.filter((node) => !members.includes(node));
}

/** M3: who may still serve. A serving primary has settled that; everybody else passes it on. */
function fenceAfter(view: GroupView, change: MembershipChange, members: readonly NodeId[]): readonly FencedNode[] {
  if (change.type === 'join' || (change.type === 'drop' && change.serving)) return [];
  const taken = view.primary !== undefined && members[0] !== view.primary;
  const from = taken ? [...view.fence, { node: view.primary, session: view.session }] : view.fence;
  return from.filter(({ node }, i) => from.findIndex((other) => other.node === node) === i);
}

/** M1. */
function configurationIs(map: MapView, group: GroupKey): Compare[] {
  const override = map.override(group);
  const slice = sliceOf(group.group);
  const compare: Compare[] = [
    { type: 'modified', key: MAP_KEY, is: map.mapRevision },
    { type: 'range', prefix: DOWN_PREFIX, notAfter: map.revision },
    { type: 'modified', key: groupKey(group), is: override?.revision ?? 0 },
  ];
  if (override === undefined) {
    compare.push({
      type: 'modified',
      key: sliceKey(group.policy, slice),
      is: map.sliceRevision(group.policy, slice),
    });
  }
  return compare;
}

/** M1, and what the kind of change adds to it. */
function comparesOf(map: MapView, group: GroupKey, change: MembershipChange): Compare[] {
  const compare = configurationIs(map, group);
  const { primary, session } = map.group(group);
  if ((change.type === 'join' || change.type === 'drop') && primary !== undefined) {
    compare.push({ type: 'modified', key: liveKey(primary), is: session });
  }
  if (change.type === 'join') {
    for (const { node, session } of change.learners) {
      compare.push({ type: 'modified', key: liveKey(node), is: session });
    }
  }
  if (change.type === 'restore' || change.type === 'depose') {
    compare.push({ type: 'created', key: CONTROLLER_KEY, is: change.controller });
  }
  return compare;
}

/**
 * The one place that makes overrides and the conditions under which they may be written. Each condition is there because
 * leaving it out loses data:
 *
 * - `map` unchanged: policies and goals are those the change was computed from.
 * - this group's override, or its slice, unchanged: two changes never both build on the same configuration.
 * - no mark newer than the map: a node marked meanwhile would be listed by a newer configuration and count as in sync.
 * - a learner's session: a restarted learner has not caught up.
 * - the primary's own session: a change sent before a restart and carried out after it would add a learner that the
 *   restarted primary does not wait for.
 * - the controller's key: a deposed controller can write nothing.
 *
 * @param map  the map that the change was decided by
 * @throws CONFLICT if the change makes no sense there, NO_QUORUM if it would leave too few
 */
export function propose(map: MapView, group: GroupKey, change: MembershipChange): Proposal {
  const view = map.group(group);
  const members = membersAfter(view, change);
  checkChange(view, change, members);
  const override: Override = {
    members,
    eligible: eligibleAfter(view, change, members),
    from: fenceAfter(view, change, members),
  };
  const write: Write = { type: 'put', key: groupKey(group), value: formatDocument(override) };
  return {
    group,
    override,
    transaction: { compare: comparesOf(map, group, change), write: [write] },
    yields: view.primary !== undefined && members[0] !== view.primary,
  };
}

/** Whether `join` would change anything: the group is on the way to its goal and these nodes help. */
export function joinChanges(view: GroupView, learners: readonly NodeId[]): boolean {
  if (view.primary === undefined) return false;
  const members = joined(view, learners);
  const isConfigured = members.length === view.members.length && members.every((node, i) => node === view.members[i]);
  if (isConfigured && view.inSync.length === view.members.length) return false;
  const isInSync = members.length === view.inSync.length && members.every((node, i) => node === view.inSync[i]);
  // a member that left is only taken off the list when that is the goal: else each failure would cost a write per group
  return !isInSync || (members === view.goal && !isConfigured);
}

/** A group stands where it should, and everybody configured is in sync. */
export function atGoal(view: GroupView): boolean {
  return (
    view.members.length === view.goal.length &&
    view.inSync.length === view.goal.length &&
    view.inSync.every((node, i) => node === view.goal[i])
  );
}

/** Proposals that fit one transaction: a store takes 128 compares and writes, and ours keep below 120. */
export const MAX_TOGETHER = 60;
const MAX_COMPARES = 120;

function compareName(compare: Compare): string {
  return `${compare.type} ${compare.type === 'range' ? compare.prefix : compare.key}`;
}

function merge(into: Map<string, Compare>, compares: readonly Compare[]): void {
  for (const compare of compares) {
    const name = compareName(compare);
    const known = into.get(name);
    if (known === undefined) into.set(name, compare);
    else if (known.type === 'range') {
      assert(compare.type === 'range', 'a range meets a range');
      into.set(name, { ...known, notAfter: Math.min(known.notAfter, compare.notAfter) });
    } else {
      assert(compare.type !== 'range' && compare.is === known.is, 'proposals sent together agree on what they saw');
    }
  }
}

/**
 * Packs proposals made from one map into as few transactions as the store takes; each succeeds or fails as a whole, so
 * those of one that failed are tried again one by one.
 */
export function together(
  proposals: readonly Proposal[],
): readonly { readonly proposals: readonly Proposal[]; readonly transaction: Transaction }[] {
  const batches: { proposals: Proposal[]; compare: Map<string, Compare>; write: Write[] }[] = [];
  for (const proposal of proposals) {
    const batch = batches.at(-1);
    const compare = new Map(batch?.compare);
    merge(compare, proposal.transaction.compare);
    if (batch === undefined || batch.proposals.length === MAX_TOGETHER || compare.size > MAX_COMPARES) {
      const own = new Map<string, Compare>();
      merge(own, proposal.transaction.compare);
      batches.push({ proposals: [proposal], compare: own, write: [...proposal.transaction.write] });
    } else {
      batch.proposals.push(proposal);
      batch.compare = compare;
      batch.write.push(...proposal.transaction.write);
    }
  }
  return batches.map(({ proposals, compare, write }) => ({
    proposals,
    transaction: { compare: [...compare.values()], write },
  }));
}
