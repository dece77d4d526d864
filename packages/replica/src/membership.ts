import { assert, type NodeId, type Revision } from '@webdfs/base';
import type { MembershipChange } from '@webdfs/cluster';
import { tryCommit } from './commit.ts';
import type { Effect, GroupEvent, StepContext } from './events.ts';
import type { GroupState, MemberProgress, PrimaryState } from './state.ts';
import { landCommitted, sendOn, wake } from './stream.ts';

/** How a primary changes its group's configuration: W9 (drop), J2 and J4 (learner), J5 (goal), L6 (yield), W10 (unknown). */

interface Turn {
  readonly context: StepContext;
  readonly at: number;
  readonly effects: Effect[];
}

/** W9: members that owe something and come no further are dropped, or complained of where too few would remain. */
export function watchMembers(state: GroupState, primary: PrimaryState, turn: Turn): void {
  const { learnerMs } = turn.context.parameters;
  for (const member of primary.members.values()) {
    if (!owes(state, primary, member) || turn.at < member.progressAt + turn.context.patienceMs(member.node, turn.at))
      continue;
    if (!tryDrop(state, primary, member.node, turn)) complain(primary, member.node, turn);
  }
  const { learner } = primary;
  if (learner === undefined || learner.state === 'pending' || learner.acked >= learner.sent) return;
  if (turn.at >= learner.progressAt + learnerMs) loseLearner(state, 'silent', turn);
}

function owes(state: GroupState, primary: PrimaryState, member: MemberProgress): boolean {
  if (primary.phase === 'gather') return member.tail === undefined;
  if (primary.phase === 'level') return false;
  return member.phase !== 'synced' || member.acked < state.last;
}

function tryDrop(state: GroupState, primary: PrimaryState, node: NodeId, turn: Turn): boolean {
  const { view } = state;
  if (view.inSync.length - 1 < view.minCopies) return false;
  const serving = primary.phase === 'serve';
  return transact(state, primary, { type: 'drop', node, serving }, turn);
}

/** A member whose disk is full is dropped at once; where too few would remain, puts are refused until it has space again. */
export function onFull(state: GroupState, primary: PrimaryState, node: NodeId, turn: Turn): void {
  if (node === primary.learner?.node) return failLearner(state, node, turn);
  const member = primary.members.get(node);
  if (member === undefined) return;
  member.fullUntil = turn.at + turn.context.parameters.memberMs;
  tryDrop(state, primary, node, turn);
}

function complain(primary: PrimaryState, node: NodeId, turn: Turn): void {
  if (turn.at < primary.complainAt) return;
  primary.complainAt = turn.at + turn.context.parameters.memberMs;
  turn.effects.push({ type: 'complain', node, what: 'does not answer, and too few would remain without it' });
}

/** Sends a change of configuration, one at a time. @returns whether one is on its way */
function transact(state: GroupState, primary: PrimaryState, change: MembershipChange, turn: Turn): boolean {
  if (primary.transaction !== undefined) return true;
  if (turn.at < primary.changeAt) return true;
  const plan = turn.context.plan(state.key, change);
  if (plan === undefined) return false;
  assert(change.type === 'drop' || change.type === 'join', 'a primary only drops and joins');
  assert(
    change.type === 'drop' || plan.override.members.length >= Math.min(state.view.inSync.length, state.view.copies),
    'a planned step leaves as many copies (S7)',
  );
  const id = ++primary.round;
  primary.transaction = { id, type: change.type };
  // L6: it stops before anybody can learn of its successor, and takes this ballot again only if the change surely failed.
  if (plan.yields && primary.phase === 'serve') {
    primary.phase = 'yielded';
    turn.effects.push({ type: 'serving', serving: false });
  }
  turn.effects.push({ type: 'transact', ballot: primary.ballot, id, plan });
  return true;
}

export function onTransaction(
  state: GroupState,
  event: Extract<GroupEvent, { type: 'transaction' }>,
  turn: Turn,
): void {
  const { primary } = state;
  if (primary === undefined || primary.ballot !== event.ballot || primary.transaction?.id !== event.id) return;
  // Unknown: both the old and the new set are waited for (W10). Done: the map's news ends this ballot.
  if (event.outcome !== 'failed') return;
  primary.transaction = undefined;
  primary.changeAt = turn.at + turn.context.parameters.resendMs;
  if (primary.phase === 'yielded') {
    primary.phase = 'serve';
    turn.effects.push({ type: 'serving', serving: true });
  }
  const { learner } = primary;
  if (learner?.state === 'pending') {
    learner.state = 'learning';
    if (learner.failed) loseLearner(state, 'it failed while it was being added', turn);
    else turn.effects.push({ type: 'learner-refused', node: learner.node });
  }
  tryCommit(state, turn.context, turn.at, turn.effects);
}

/** J2: the stream to it begins after the commit point, so that pages and stream together miss nothing. */
export function startLearner(state: GroupState, node: NodeId, session: Revision, turn: Turn): void {
  const { primary, view } = state;
  const isFit = !view.inSync.includes(node) && !view.eligible.includes(node);
  if (primary?.phase !== 'serve' || primary.learner !== undefined || !isFit) {
    turn.effects.push({ type: 'learner-lost', node, why: 'the group takes no learner now' });
    return;
  }
  primary.learner = {
    node,
    session,
    base: state.commit,
    acked: state.commit,
    sent: state.commit,
    rewound: 0,
    progressAt: turn.at,
    sentAt: turn.at,
    state: 'learning',
    failed: false,
  };
  sendOn(state, primary, primary.learner, turn.at, turn.effects);
  wake(state, turn.at + turn.context.parameters.resendMs, turn.effects);
}

export function readyLearner(state: GroupState, node: NodeId, turn: Turn): void {
  const { primary } = state;
  if (primary?.learner?.node !== node || primary.learner.state !== 'learning') return;
  primary.learner.state = 'ready';
  tryJoin(state, primary, turn);
  wake(state, turn.at + turn.context.parameters.resendMs, turn.effects);
}

/**
 * J4: it has everything that may have been acknowledged; from now on commits wait for it, and only then is it proposed.
 * That is more than the commit point known here: a primary alone below `minCopies` that was restarted may know an older
 * one, and cannot move it, while its tail was acknowledged long ago.
 */
export function tryJoin(state: GroupState, primary: PrimaryState, turn: Turn): void {
  const { learner } = primary;
  if (learner?.state !== 'ready' || primary.phase !== 'serve' || primary.transaction !== undefined) return;
  const certain = Math.max(state.commit, primary.adopted?.last ?? 0);
  if (learner.acked < certain || turn.at < primary.changeAt) return;
  learner.state = 'pending';
  const { node, session } = learner;
  if (transact(state, primary, { type: 'join', learners: [{ node, session }] }, turn)) return;
  learner.state = 'learning';
  turn.effects.push({ type: 'learner-refused', node });
}

/** J5 without a learner: those in sync are all of the goal, in another order or with one too many. */
export function arrange(state: GroupState, turn: Turn): void {
  const { primary } = state;
  if (primary?.phase !== 'serve' || primary.learner !== undefined) return;
  transact(state, primary, { type: 'join', learners: [] }, turn);
}

export function failLearner(state: GroupState, node: NodeId, turn: Turn): void {
  const { learner } = state.primary ?? {};
  if (learner?.node !== node) return;
  // While its fate in the map is not known commits must go on waiting for it (J4, W10).
  if (learner.state === 'pending') learner.failed = true;
  else loseLearner(state, 'given up', turn);
}

export function loseLearner(state: GroupState, why: string, turn: Turn): void {
  const { primary } = state;
  const learner = primary?.learner;
  if (primary === undefined || learner === undefined) return;
  primary.learner = undefined;
  turn.effects.push({ type: 'learner-lost', node: learner.node, why });
  landCommitted(state, primary, turn.context);
}

/** A learner that lags too far would hold the memory of the whole window: it begins anew, by differences. */
export function watchLearner(state: GroupState, primary: PrimaryState, turn: Turn): void {
  const { learner } = primary;
  if (learner === undefined || learner.state === 'pending') return;
  const { learnerEntries, windowBytes } = turn.context.parameters;
  const isFar = state.commit - learner.acked > learnerEntries || primary.flightBytes > windowBytes / 2;
  if (isFar && learner.acked < state.commit) loseLearner(state, 'too far behind', turn);
}
