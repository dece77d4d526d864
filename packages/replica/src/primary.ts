import { assert, type NodeId, type Revision, type Sequence } from '@webdfs/base';
import { tryCommit } from './commit.ts';
import type { Effect, StepContext } from './events.ts';
import { failLearner, loseLearner, onFull, tryJoin, watchLearner, watchMembers } from './membership.ts';
import type { Ack, ProtocolMessage } from './messages.ts';
import { refuseAll } from './proposals.ts';
import type { GroupState, MemberProgress, PrimaryState } from './state.ts';
import { landCommitted, onAcknowledged, resend, sendOn, wake } from './stream.ts';
import { ask, askAgain, askRelease, onSynced, onTail, tryAdopt, tryServe } from './takeover.ts';

/** What members, learners and fenced nodes say to a primary. The engine has judged ballot and sender (L5). */
export type ToPrimary = Extract<ProtocolMessage, { type: 'tail' | 'ack' | 'not-synced' | 'released' | 'full' }>;

interface Turn {
  readonly context: StepContext;
  readonly at: number;
  readonly effects: Effect[];
}

export function onAnswer(
  state: GroupState,
  message: ToPrimary,
  from: { readonly node: NodeId; readonly session: Revision },
  turn: Turn,
): void {
  const { primary } = state;
  if (primary === undefined) return;
  assert(message.ballot === primary.ballot, 'a primary takes answers of its ballot only');
  switch (message.type) {
    case 'tail':
      return onTail(state, from.node, message, from.session, turn);
    case 'ack':
      return onAck(state, primary, message, from, turn);
    case 'not-synced': {
      const member = primary.members.get(from.node);
      // It was restarted within this ballot: where its log ends must be asked anew.
      if (member?.phase === 'synced') askAnew(state, primary, member, turn);
      return;
    }
    case 'full':
      return onFull(state, primary, from.node, turn);
    case 'released':
      primary.released.add(from.node);
      return tryServe(state, turn);
  }
}

function askAnew(state: GroupState, primary: PrimaryState, member: MemberProgress, turn: Turn): void {
  ask(state, primary, member, turn);
  wake(state, turn.at + turn.context.parameters.resendMs, turn.effects);
}

function onAck(
  state: GroupState,
  primary: PrimaryState,
  ack: Ack,
  from: { readonly node: NodeId; readonly session: Revision },
  turn: Turn,
): void {
  const member = primary.members.get(from.node);
  const { learner } = primary;
  if (member !== undefined) {
    if (member.phase === 'query' || from.session < member.session) return;
    // It registered anew within this ballot, restarted or not: its log's end is asked for as of now.
    if (from.session > member.session) return askAnew(state, primary, member, turn);
    if (member.phase === 'sync') onSynced(state, primary, member, turn);
    repeatCommit(state, primary, { ack, acked: member.acked, node: from.node }, turn);
    onAcknowledged(member, ack, state.last, turn.at);
    sendOn(state, primary, member, turn.at, turn.effects);
    if (primary.phase === 'sync') tryServe(state, turn);
  } else if (learner !== undefined && learner.node === from.node) {
    // What it caught up on counts for the session it did that in (J4).
    if (from.session > learner.session) return failLearner(state, from.node, turn);
    if (from.session < learner.session) return;
    repeatCommit(state, primary, { ack, acked: learner.acked, node: from.node }, turn);
    onAcknowledged(learner, ack, state.last, turn.at);
    landCommitted(state, primary, turn.context);
    sendOn(state, primary, learner, turn.at, turn.effects);
    tryJoin(state, primary, turn);
  } else return;
  tryCommit(state, turn.context, turn.at, turn.effects);
}

/** The primary's half of what its own disk reports. */
export function primaryDurable(state: GroupState, turn: Turn): void {
  tryAdopt(state, turn);
  tryServe(state, turn);
  tryCommit(state, turn.context, turn.at, turn.effects);
}

/** The ballot is over: whoever waits must ask again, with the same id, whoever is primary now. */
export function endPrimary(state: GroupState, primary: PrimaryState, turn: Turn): void {
  refuseAll(primary, turn.context, turn.effects);
  const { learner } = primary;
  if (learner !== undefined && !state.view.inSync.includes(learner.node)) {
    loseLearner(state, 'the ballot is over', turn);
  }
  turn.context.flight.bytes -= primary.flightBytes;
  if (primary.phase === 'serve') turn.effects.push({ type: 'serving', serving: false });
  state.primary = undefined;
}

/** Everything that time brings: what was lost is sent again, who is silent is judged, the commit point is told. */
export function tickPrimary(state: GroupState, primary: PrimaryState, turn: Turn): void {
  const { parameters } = turn.context;
  repeatQuestions(state, primary, turn);
  tryAdopt(state, turn);
  tryServe(state, turn);
  const options = { at: turn.at, resendMs: parameters.resendMs };
  for (const member of primary.members.values()) {
    if (member.phase === 'synced') resend(state, primary, member, options, turn.effects);
  }
  if (primary.learner !== undefined) resend(state, primary, primary.learner, options, turn.effects);
  tellCommit(state, primary, turn);
  watchLearner(state, primary, turn);
  watchMembers(state, primary, turn);
  tryJoin(state, primary, turn);
  wakeAgain(state, primary, turn);
}

function repeatQuestions(state: GroupState, primary: PrimaryState, turn: Turn): void {
  const { resendMs } = turn.context.parameters;
  for (const member of primary.members.values()) {
    if (turn.at < member.sentAt + resendMs) continue;
    if (member.phase === 'query' && member.tail === undefined) askAgain(state, primary, member, turn);
    // It may have been restarted since it told its tail: ask, rather than repeat a Sync for a session that is gone.
    else if (member.phase === 'sync') ask(state, primary, member, turn);
  }
  const isOpen = primary.phase === 'serve' || primary.phase === 'yielded';
  if (!isOpen && turn.at >= primary.releaseAt + resendMs) askRelease(state, primary, turn);
}

function tellCommit(state: GroupState, primary: PrimaryState, turn: Turn): void {
  if (primary.phase !== 'serve' || primary.commitTold >= state.commit || turn.at < primary.commitDue) return;
  const message = { type: 'commit', ...state.key, ballot: primary.ballot, commit: state.commit } as const;
  for (const { node, phase } of primary.members.values()) {
    if (phase === 'synced') turn.effects.push({ type: 'send', to: node, message });
  }
  const { learner } = primary;
  if (learner !== undefined) turn.effects.push({ type: 'send', to: learner.node, message });
  primary.commitTold = state.commit;
}

/** Who acknowledges again what it acknowledged before may have missed what came after: the commit point was told once. */
function repeatCommit(
  state: GroupState,
  primary: PrimaryState,
  { ack, acked, node: to }: { ack: Ack; acked: Sequence; node: NodeId },
  turn: Turn,
): void {
  if (ack.last > acked || primary.phase !== 'serve' || primary.commitTold < state.commit || state.commit === 0) return;
  const message = { type: 'commit', ...state.key, ballot: primary.ballot, commit: state.commit } as const;
  turn.effects.push({ type: 'send', to, message });
}

/** An idle group asks for no tick. */
function wakeAgain(state: GroupState, primary: PrimaryState, turn: Turn): void {
  const { resendMs } = turn.context.parameters;
  if (primary.commitTold < state.commit) wake(state, Math.max(primary.commitDue, turn.at + 1), turn.effects);
  const { learner } = primary;
  const isBusy =
    primary.phase !== 'serve' ||
    primary.transaction !== undefined ||
    state.commit < state.last ||
    (learner !== undefined && (learner.acked < state.last || learner.state !== 'learning')) ||
    [...primary.members.values()].some((member) => member.phase !== 'synced' || member.acked < state.last);
  if (isBusy) wake(state, turn.at + resendMs, turn.effects);
}
