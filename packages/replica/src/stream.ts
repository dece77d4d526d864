import { assert, type Sequence } from '@webdfs/base';
import type { LogEntry } from '@webdfs/store';
import type { Effect, StepContext } from './events.ts';
import type { Flight, GroupState, KeyState, PrimaryState, Receiver } from './state.ts';

/** Entries in flight at a primary, and their way to members and learner (W5, J2). */

/** Sent in one go to a node that is behind; its acknowledgement brings the next. */
const BURST_ENTRIES = 64;
const BURST_BYTES = 1_048_576;
/** What an entry takes in memory beside its bytes. */
const ENTRY_OVERHEAD = 512;

/** Whether the primary serves or could again: only then its log grows. */
export function flightOf(primary: PrimaryState, sequence: Sequence): Flight {
  const flight = primary.flight[sequence - primary.flightFrom];
  assert(flight !== undefined, 'entries after the commit point are kept by their primary');
  return flight;
}

export function keyStateOf(primary: PrimaryState, touches: string): KeyState {
  let key = primary.keys.get(touches);
  if (key === undefined) {
    key = { count: 0, tip: undefined, parked: [] };
    primary.keys.set(touches, key);
  }
  return key;
}

/** Keeps the newest entry until it is committed, and the learner has it. */
export function takeOff(
  primary: PrimaryState,
  entry: LogEntry,
  facts: Pick<Flight, 'touches' | 'replaced' | 'waiters'>,
  context: StepContext,
): Flight {
  assert(entry.sequence === primary.flightFrom + primary.flight.length, 'entries take off in order');
  const bytes = ENTRY_OVERHEAD + entry.key.length + entry.meta.length + entry.body.length;
  const flight = { entry, bytes, ...facts };
  primary.flight.push(flight);
  primary.flightBytes += bytes;
  context.flight.bytes += bytes;
  if (facts.touches !== '') {
    const key = keyStateOf(primary, facts.touches);
    key.count++;
    key.tip = flight;
  }
  return flight;
}

/** Lets go of entries that nobody needs any more: committed, and with the learner. */
export function landCommitted(state: GroupState, primary: PrimaryState, context: StepContext): void {
  const { learner } = primary;
  const upTo = learner === undefined ? state.commit : Math.min(state.commit, learner.acked);
  const count = Math.min(upTo + 1 - primary.flightFrom, primary.flight.length);
  if (count <= 0) return;
  let bytes = 0;
  for (let i = 0; i < count; i++) bytes += primary.flight[i]!.bytes;
  primary.flight.splice(0, count);
  primary.flightFrom += count;
  primary.flightBytes -= bytes;
  context.flight.bytes -= bytes;
}

/** Sends what follows `receiver.sent`, as far as one burst goes. */
export function sendOn(
  state: GroupState,
  primary: PrimaryState,
  receiver: Receiver,
  at: number,
  effects: Effect[],
): void {
  let bytes = 0;
  let entries = 0;
  while (receiver.sent < state.last && entries < BURST_ENTRIES && bytes < BURST_BYTES) {
    const { entry, bytes: own } = flightOf(primary, receiver.sent + 1);
    const message = { type: 'append', ...state.key, ballot: primary.ballot, commit: state.commit, entry } as const;
    effects.push({ type: 'send', to: receiver.node, message });
    receiver.sent++;
    entries++;
    bytes += own;
  }
  if (entries > 0) receiver.sentAt = at;
}

/** Takes an acknowledgement; a gap takes the stream back, once per gap. */
export function onAcknowledged(
  receiver: Receiver,
  ack: { readonly last: Sequence; readonly expects?: Sequence },
  last: Sequence,
  at: number,
): void {
  const acked = Math.min(ack.last, last);
  if (acked > receiver.acked) {
    receiver.acked = acked;
    receiver.progressAt = at;
    if (receiver.sent < acked) receiver.sent = acked;
  }
  const { expects } = ack;
  if (expects === undefined || expects > receiver.sent || expects <= receiver.acked || expects === receiver.rewound)
    return;
  receiver.rewound = expects;
  receiver.sent = expects - 1;
}

/** After `resendMs` without an answer the stream goes back to what is surely there: the post may have been lost. */
export function resend(
  state: GroupState,
  primary: PrimaryState,
  receiver: Receiver,
  options: { at: number; resendMs: number },
  effects: Effect[],
): void {
  if (receiver.acked >= receiver.sent && receiver.sent >= state.last) return;
  if (options.at < Math.max(receiver.sentAt, receiver.progressAt) + options.resendMs) return;
  receiver.sent = receiver.acked;
  receiver.rewound = 0;
  sendOn(state, primary, receiver, options.at, effects);
}

/** Asks for a tick at `at`, unless one comes sooner. */
export function wake(state: GroupState, at: number, effects: Effect[]): void {
  if (at >= state.wakeAt) return;
  state.wakeAt = at;
  effects.push({ type: 'wake', at });
}
