import { assert, unreachable } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';
import { type Effect, type GroupEvent, isRareEvent, type RareEvent, type StepContext } from './events.ts';
import { FROM_PRIMARY } from './judge.ts';
import { askCommit, type FromPrimary, memberDurable, stepMember, watchTail } from './member.ts';
import { arrange, failLearner, onTransaction, readyLearner, startLearner } from './membership.ts';
import type { ProtocolMessage } from './messages.ts';
import { endPrimary, onAnswer, primaryDurable, tickPrimary } from './primary.ts';
import { onProposal } from './proposals.ts';
import type { GroupState } from './state.ts';
import { beginTakeover, onFetched, onLoaded, tryServe } from './takeover.ts';

/**
 * One step of a group on this node. Deterministic: changes `state` in place, pushes what is to be done to `effects`, and
 * looks at nothing but its arguments. The engine performs the effects in their order before the next step.
 *
 * @throws BrokenInvariant if a rule of the protocol was broken, here or by a peer that the map vouches for
 */
export function stepGroup(state: GroupState, event: GroupEvent, context: StepContext, effects: Effect[]): void {
  const turn = { context, at: event.at, effects };
  if (isRareEvent(event)) onRare(state, event, turn);
  else onUsual(state, event, turn);
  watchTail(state, turn);
}

function onUsual(state: GroupState, event: Exclude<GroupEvent, RareEvent>, turn: Turn): void {
  const { context, effects } = turn;
  switch (event.type) {
    case 'view':
      return onView(state, event.view, turn);
    case 'message':
      return onMessage(state, event, turn);
    case 'proposal':
      return onProposal(state, event.proposal, turn);
    case 'durable':
    case 'marked':
    case 'withdrawn':
      memberDurable(state, event, context, effects);
      return primaryDurable(state, turn);
    case 'tick':
      state.wakeAt = Infinity;
      if (state.primary !== undefined) tickPrimary(state, state.primary, turn);
      else askCommit(state, effects);
      return;
    default:
      unreachable(event);
  }
}

function onRare(state: GroupState, event: RareEvent, turn: Turn): void {
  switch (event.type) {
    case 'loaded':
      return onLoaded(state, event, turn);
    case 'fetched':
      return onFetched(state, event, turn);
    case 'transaction':
      return onTransaction(state, event, turn);
    case 'learner-start':
      return startLearner(state, event.node, event.session, turn);
    case 'learner-ready':
      return readyLearner(state, event.node, turn);
    case 'learner-failed':
      return failLearner(state, event.node, turn);
    case 'arrange':
      return arrange(state, turn);
    default:
      unreachable(event);
  }
}

interface Turn {
  readonly context: StepContext;
  readonly at: number;
  readonly effects: Effect[];
}

function onView(state: GroupState, view: GroupView, turn: Turn): void {
  const before = state.view;
  state.view = view;
  if (before.ballot > 0 && view.ballot > 0) assert(view.ballot >= before.ballot, 'ballots never go back (S1)');
  const { primary } = state;
  const isMine = view.primary === turn.context.self && view.session === turn.context.session() && view.ballot > 0;
  if (primary !== undefined && isMine && primary.ballot === view.ballot) {
    assert(view.inSync.length === primary.members.size + 1, 'equal ballots mean equal members (S1)');
    return tryServe(state, turn);
  }
  if (primary !== undefined) endPrimary(state, primary, turn);
  if (view.ballot !== before.ballot) state.asked = undefined;
  if (isMine) beginTakeover(state, turn);
}

function onMessage(state: GroupState, event: Extract<GroupEvent, { type: 'message' }>, turn: Turn): void {
  const { message, from: node, session } = event;
  if (isSaidByPrimary(message)) {
    // A learner takes the stream, but has no say in what the log is.
    const isStream = message.type === 'append' || message.type === 'commit';
    if (!isStream && !state.view.inSync.includes(turn.context.self)) return;
    stepMember(state, message, turn.context, turn.effects);
  } else if (message.type !== 'release' && message.type !== 'stale') {
    onAnswer(state, message, { node, session }, turn);
  }
}

function isSaidByPrimary(message: ProtocolMessage): message is FromPrimary {
  return FROM_PRIMARY.has(message.type);
}
