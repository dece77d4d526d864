import { assert, type Sequence } from '@webdfs/base';
import type { Effect, StepContext } from './events.ts';
import { applyKnown, requestOf } from './group-log.ts';
import type { Flight, GroupState, PrimaryState } from './state.ts';
import { flightOf, landCommitted, wake } from './stream.ts';

/**
 * W7: committed is what every in-sync member of the present ballot, and a learner that is pending, has acknowledged, while
 * the members are at least `minCopies`. Then it is applied and its clients are answered.
 */
export function tryCommit(state: GroupState, context: StepContext, at: number, effects: Effect[]): void {
  const { primary, view } = state;
  if (primary === undefined || primary.phase !== 'serve') return;
  if (view.inSync.length < view.minCopies) return;
  let upTo = state.durable;
  for (const member of primary.members.values()) upTo = Math.min(upTo, member.acked);
  if (primary.learner?.state === 'pending') upTo = Math.min(upTo, primary.learner.acked);
  if (upTo > state.commit) commitUpTo(state, primary, upTo, { context, at, effects });
}

function commitUpTo(
  state: GroupState,
  primary: PrimaryState,
  upTo: Sequence,
  { context, at, effects }: { context: StepContext; at: number; effects: Effect[] },
): void {
  assert(state.view.inSync.length >= state.view.minCopies, 'commit points move only with minCopies in sync (S8)');
  assert(primary.members.size + 1 === state.view.inSync.length, 'all in-sync members were asked (W7)');
  const from = state.commit + 1;
  state.commitKnown = upTo;
  applyKnown(state, effects);
  for (let sequence = from; sequence <= upTo; sequence++) {
    const flight = flightOf(primary, sequence);
    answerAll(state, flight, context, effects);
    settleKey(primary, flight, effects);
  }
  landCommitted(state, primary, context);
  if (primary.members.size === 0) primary.commitTold = state.commit;
  if (primary.commitTold < state.commit) {
    primary.commitDue = at + context.parameters.commitIdleMs;
    wake(state, primary.commitDue, effects);
  }
}

function answerAll(state: GroupState, flight: Flight, context: StepContext, effects: Effect[]): void {
  const { entry, replaced, waiters } = flight;
  const { sequence, ballot, timeMs: modifiedMs } = entry;
  const answer = { sequence, ballot, modifiedMs, replaced };
  const requestId = replaced === undefined ? undefined : requestOf(entry);
  if (requestId !== undefined) context.requests.keepAnswer(state.key, requestId, answer);
  for (const { ticket } of waiters) effects.push({ type: 'answer', ticket, outcome: { type: 'done', answer } });
  flight.waiters = [];
}

/** What waited for this key to settle is offered again, in its order, after the commit was applied. */
function settleKey(primary: PrimaryState, flight: Flight, effects: Effect[]): void {
  if (flight.touches === '') return;
  const key = primary.keys.get(flight.touches);
  assert(key !== undefined, 'a key in flight is known');
  key.count--;
  if (key.count > 0) return;
  primary.keys.delete(flight.touches);
  for (const proposal of key.parked) effects.push({ type: 'revive', proposal });
}
