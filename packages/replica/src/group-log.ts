import { assert, type Ballot, type GroupKey, type Sequence } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';
import { type GroupLog, type LogEntry, REQUEST_ID_BYTES } from '@webdfs/store';
import type { Effect, StepContext } from './events.ts';
import type { Run } from './messages.ts';
import type { GroupState, TailEntry } from './state.ts';

/** The log of a group as its steps see it: what was taken, what is durable, what is committed. */

/** How a learner's state begins: synced at once, in the ballot whose appends it follows. */
export function makeLearner(options: Parameters<typeof makeGroup>[0]): GroupState {
  const state = makeGroup(options);
  state.syncedIn = options.view.ballot;
  state.marked = 'no';
  return state;
}

/** The state of a group whose log is as the store says; `pending` are the entries after its commit point. */
export function makeGroup(options: {
  key: GroupKey;
  view: GroupView;
  log: GroupLog;
  pending: readonly LogEntry[];
  context: StepContext;
}): GroupState {
  const { key, view, log, pending, context } = options;
  const state: GroupState = {
    key,
    view,
    last: log.commit,
    lastBallot: log.last === log.commit ? log.lastBallot : 0,
    durable: log.commit,
    commit: log.commit,
    commitKnown: log.commit,
    tail: [],
    syncedIn: 0,
    base: 0,
    marked: log.mark?.role === 'member' ? 'yes' : 'no',
    asked: undefined,
    cutting: false,
    wakeAt: Infinity,
    commitBallot: log.last === log.commit ? log.lastBallot : 0,
    timeMs: 0,
    timeCount: 0,
    primary: undefined,
  };
  for (const entry of pending) takeIn(state, entry, context);
  state.durable = state.last;
  return state;
}

const NO_REQUEST = new Uint8Array(REQUEST_ID_BYTES);

/** An entry's request id, undefined if it has none. */
export function requestOf(entry: LogEntry): Uint8Array | undefined {
  const id = entry.meta.subarray(0, REQUEST_ID_BYTES);
  return id.length < REQUEST_ID_BYTES || Buffer.compare(id, NO_REQUEST) === 0 ? undefined : id;
}

/** The entry becomes the last of the log, in memory. */
export function takeIn(state: GroupState, entry: LogEntry, context: StepContext): void {
  assert(entry.sequence === state.last + 1, 'entries of a group are taken in order');
  assert(entry.ballot >= state.lastBallot, 'ballots of a log never go back');
  const id = requestOf(entry);
  const write = { sequence: entry.sequence, ballot: entry.ballot, timeMs: entry.timeMs };
  const request = id === undefined ? -1 : context.requests.remember(state.key, id, write);
  state.tail.push({ sequence: entry.sequence, ballot: entry.ballot, request });
  state.last = entry.sequence;
  state.lastBallot = entry.ballot;
  if (entry.timeMs > state.timeMs || (entry.timeMs === state.timeMs && entry.timeCount > state.timeCount)) {
    state.timeMs = entry.timeMs;
    state.timeCount = entry.timeCount;
  }
}

/** Takes back entries after `after`, in memory; their requests were not done. */
export function takeBack(state: GroupState, after: Sequence, context: StepContext): TailEntry[] {
  assert(after >= state.commit, 'nothing committed is cut');
  const kept = state.tail.filter((entry) => entry.sequence <= after);
  const cut = state.tail.slice(kept.length);
  for (const entry of cut) if (entry.request >= 0) context.requests.forget(entry.request, entry.ballot);
  if (cut.length === 0) return cut;
  state.tail = kept;
  state.last = after;
  state.durable = Math.min(state.durable, after);
  state.lastBallot = kept.at(-1)?.ballot ?? state.commitBallot;
  return cut;
}

/** Applies what is known to be committed and is durable here. */
export function applyKnown(state: GroupState, effects: Effect[]): boolean {
  const upTo = Math.min(state.commitKnown, state.durable);
  if (upTo <= state.commit) return false;
  const applied = upTo - state.commit;
  assert(applied <= state.tail.length, 'what is applied was taken');
  state.commitBallot = state.tail[applied - 1]!.ballot;
  state.tail = applied === state.tail.length ? [] : state.tail.slice(applied);
  state.commit = upTo;
  effects.push({ type: 'apply', upTo });
  return true;
}

/** The ballots of the entries after the commit point. */
export function runsOf(state: GroupState): Run[] {
  const runs: { ballot: Ballot; last: Sequence }[] = [];
  for (const { ballot, sequence } of state.tail) {
    const run = runs.at(-1);
    if (run !== undefined && run.ballot === ballot) run.last = sequence;
    else runs.push({ ballot, last: sequence });
  }
  return runs;
}

/** The ballot that `runs` give to a sequence after the commit point they begin at. */
export function ballotIn(runs: readonly Run[], sequence: Sequence): Ballot | undefined {
  return runs.find((run) => sequence <= run.last)?.ballot;
}

/**
 * How far two logs are the same: up to `commit` they are (S6), after it as long as the ballots are equal.
 *
 * @param commit  the largest commit point known of either
 */
export function commonEnd(
  commit: Sequence,
  a: { readonly last: Sequence; readonly runs: readonly Run[] },
  b: { readonly last: Sequence; readonly runs: readonly Run[] },
): Sequence {
  const end = Math.min(a.last, b.last);
  let common = Math.min(commit, end);
  while (common < end && ballotIn(a.runs, common + 1) === ballotIn(b.runs, common + 1)) common++;
  return common;
}
