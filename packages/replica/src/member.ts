import { assert, unreachable } from '@webdfs/base';
import { KIND, type LogEntry } from '@webdfs/store';
import type { Effect, GroupEvent, StepContext } from './events.ts';
import { applyKnown, runsOf, takeBack, takeIn } from './group-log.ts';
import type { Append, Commit, ProtocolMessage, Query, Sync } from './messages.ts';
import type { GroupState } from './state.ts';
import { wake } from './stream.ts';

/** What a primary says to its members. The engine has judged ballot and sender (L5) before a step sees it. */
export type FromPrimary = Extract<ProtocolMessage, { type: 'query' | 'sync' | 'append' | 'commit' | 'lost' }>;

/** A member's part of the protocol: T1, T3, W6 and the commit point. */
export function stepMember(state: GroupState, message: FromPrimary, context: StepContext, effects: Effect[]): void {
  assert(message.ballot === state.view.ballot, 'a member takes messages of its map’s ballot only');
  switch (message.type) {
    case 'query':
      return onQuery(state, message, context, effects);
    case 'sync':
      return onSync(state, message, context, effects);
    case 'append':
      return onAppend(state, message, context, effects);
    case 'commit':
      return onCommit(state, message, effects);
    case 'lost':
      effects.push({ type: 'disk-is-old', commit: message.commit });
      return;
    default:
      unreachable(message);
  }
}

/** The member's half of what its disk reports. */
export function memberDurable(
  state: GroupState,
  event: Extract<GroupEvent, { type: 'durable' | 'marked' | 'withdrawn' }>,
  context: StepContext,
  effects: Effect[],
): void {
  if (event.type === 'marked') state.marked = 'yes';
  if (event.type === 'withdrawn') takeBack(state, event.last, context);
  if (event.type === 'durable') {
    assert(event.upTo <= state.last, 'only what was taken becomes durable');
    state.cutting = false;
    state.durable = Math.max(state.durable, event.upTo);
    if (state.primary === undefined) {
      applyKnown(state, effects);
      acknowledge(state, effects);
    }
  }
  tellTail(state, effects);
}

/**
 * A member that holds what it does not know to be committed looks again: the word of it is a post, lost with a link or with
 * this process, and a group that is idle afterwards sends no other.
 */
export function watchTail(
  state: GroupState,
  turn: { readonly context: StepContext; readonly at: number; readonly effects: Effect[] },
): void {
  if (state.primary !== undefined || state.tail.length === 0 || state.wakeAt < Infinity) return;
  wake(state, turn.at + turn.context.parameters.memberMs, turn.effects);
}

/** Says again where this log ends: the primary answers with its commit point, or asks anew after a restart. */
export function askCommit(state: GroupState, effects: Effect[]): void {
  if (state.tail.length === 0 || state.cutting || state.durable < state.last) return;
  if (state.syncedIn === state.view.ballot) acknowledge(state, effects);
  else tell(state, 'not-synced', effects);
}

function onQuery(state: GroupState, message: Query, context: StepContext, effects: Effect[]): void {
  state.asked = message.round;
  if (state.marked === 'no') {
    // "Was here, though empty": a disk that later lacks this mark has been lost.
    state.marked = 'asked';
    effects.push({ type: 'mark', mark: { role: 'member', syncedIn: state.syncedIn } });
  }
  assert(context.self !== state.view.primary, 'a primary does not ask itself by post');
  tellTail(state, effects);
}

/** A tail is told only when all of it is on the disk: whoever adopts it must find it again after a crash. */
function tellTail(state: GroupState, effects: Effect[]): void {
  if (state.asked === undefined || state.marked !== 'yes' || state.cutting || state.durable < state.last) return;
  const { view, key } = state;
  if (view.primary === undefined) return;
  const runs = runsOf(state);
  const { commit, last, lastBallot } = state;
  const tail = {
    type: 'tail',
    ...key,
    ballot: view.ballot,
    round: state.asked,
    commit,
    last,
    lastBallot,
    runs,
  } as const;
  effects.push({ type: 'send', to: view.primary, message: tail });
  state.asked = undefined;
}

function onSync(state: GroupState, message: Sync, context: StepContext, effects: Effect[]): void {
  // Meant for an earlier run of this node: what it counted on may be gone (T3).
  if (message.receiver !== context.session()) return;
  // A repeat, or a late one: it must not cut what was acknowledged since.
  if (state.syncedIn === message.ballot) return acknowledge(state, effects);
  // The tail it rests on has changed, or does not reach: a new Query will follow.
  if (state.durable < state.last || message.after > state.last || message.after < state.commit) return;
  if (state.tail.some((entry) => entry.ballot === message.ballot && entry.sequence > message.after)) return;
  if (takeBack(state, message.after, context).length > 0) {
    state.cutting = true;
    effects.push({ type: 'cut', after: message.after, below: message.ballot });
  }
  state.syncedIn = message.ballot;
  state.commitKnown = Math.max(state.commitKnown, message.commit);
  applyKnown(state, effects);
  acknowledge(state, effects);
}

function onAppend(state: GroupState, message: Append, context: StepContext, effects: Effect[]): void {
  const { entry } = message;
  if (state.syncedIn !== message.ballot) return tell(state, 'not-synced', effects);
  if (entry.sequence > state.last + 1) return acknowledge(state, effects, state.last + 1);
  if (entry.sequence <= state.last) {
    const known = state.tail.find((taken) => taken.sequence === entry.sequence);
    assert(known === undefined || known.ballot === entry.ballot, 'a position of a synced log keeps its ballot (S6)');
    acknowledge(state, effects);
    return;
  }
  if (isPut(entry) && context.full()) return tell(state, 'full', effects);
  takeIn(state, entry, context);
  effects.push({ type: 'append', entry });
  state.commitKnown = Math.max(state.commitKnown, message.commit);
  applyKnown(state, effects);
}

function onCommit(state: GroupState, message: Commit, effects: Effect[]): void {
  if (state.syncedIn !== message.ballot) return tell(state, 'not-synced', effects);
  state.commitKnown = Math.max(state.commitKnown, message.commit);
  applyKnown(state, effects);
}

function acknowledge(state: GroupState, effects: Effect[], expects?: number): void {
  const { view, key } = state;
  if (view.primary === undefined || state.syncedIn !== view.ballot || state.cutting) return;
  const ack = { type: 'ack', ...key, ballot: view.ballot, last: state.durable } as const;
  effects.push({ type: 'send', to: view.primary, message: expects === undefined ? ack : { ...ack, expects } });
}

/** What a full disk refuses: the rest is small, and frees more than it takes. */
function isPut({ kind }: LogEntry): boolean {
  return kind === KIND.RECORD || kind === KIND.BLOCK;
}

function tell(state: GroupState, type: 'full' | 'not-synced', effects: Effect[]): void {
  const { view, key } = state;
  if (view.primary === undefined) return;
  effects.push({ type: 'send', to: view.primary, message: { type, ...key, ballot: view.ballot } });
}
