import { assert, chunkSums, EMPTY, unreachable, WebdfsError } from '@webdfs/base';
import { FLAG, KIND, type LogEntry, type RecordRow, REQUEST_ID_BYTES } from '@webdfs/store';
import { packBlockBody } from './block-entry.ts';
import {
  attemptOf,
  birthOf,
  checkShape,
  conditionFails,
  dependsOnState,
  fenceNote,
  packMeta,
  requirementFails,
  settledFirst,
  touchesOf,
} from './conditions.ts';
import type { Effect, Outcome, Proposal, StepContext } from './events.ts';
import { takeIn } from './group-log.ts';
import type { Flight, GroupState, PrimaryState } from './state.ts';
import { flightOf, keyStateOf, sendOn, takeOff, wake } from './stream.ts';

/** W4, W5: what becomes of a write, a block or a note at the primary of its group. */

interface Turn {
  readonly context: StepContext;
  readonly at: number;
  readonly effects: Effect[];
}

type WriteProposal = Extract<Proposal, { type: 'write' }>;
type Version = { readonly sequence: number; readonly summary: Uint8Array } | undefined;
const NO_REQUEST = new Uint8Array(REQUEST_ID_BYTES);

export function onProposal(state: GroupState, proposal: Proposal, turn: Turn): void {
  const refusal = cannotServe(state, turn.context);
  if (refusal !== undefined) return refuse(proposal, refusal, turn);
  const primary = state.primary!;
  if (proposal.type === 'write') return onWrite(state, primary, proposal, turn);
  const busy = noRoom(state, primary, turn.context);
  if (busy !== undefined) return refuse(proposal, busy, turn);
  const full = proposal.type === 'block' ? noSpace(state, primary, turn) : undefined;
  if (full !== undefined) return refuse(proposal, full, turn);
  propose(
    state,
    primary,
    proposal,
    { draft: draftOf(proposal), touches: touchesBy(proposal), replaced: undefined },
    turn,
  );
}

function refuse(proposal: Proposal, error: WebdfsError, { effects }: Turn): void {
  const outcome: Outcome = { type: 'refused', error };
  effects.push({ type: 'answer', ticket: proposal.ticket, outcome });
}

/** Puts need space on every disk; a member that has none is dropped, and the put tried again without it, where enough remain. */
function noSpace({ view }: GroupState, primary: PrimaryState, { context, at }: Turn): WebdfsError | undefined {
  if (context.full()) return new WebdfsError('DISK_FULL', 'the disk of the primary takes no more bytes');
  for (const { node, fullUntil } of primary.members.values()) {
    if (fullUntil <= at) continue;
    if (view.inSync.length > view.minCopies) {
      return new WebdfsError('BUSY', `node ${node} is full, and is being left behind`, { retryAfterMs: 100 });
    }
    return new WebdfsError('DISK_FULL', `the disk of node ${node} takes no more bytes, and no other has them`);
  }
  return undefined;
}

/** Why this node does not act as the group's primary now, undefined if it does. */
export function cannotServe(state: GroupState, context: StepContext): WebdfsError | undefined {
  const { view, primary } = state;
  const details = { revision: context.revision() };
  if (primary === undefined || primary.phase === 'yielded') {
    return new WebdfsError('NOT_PRIMARY', `node ${context.self} does not serve this group`, { details });
  }
  if (primary.phase !== 'serve') {
    return new WebdfsError('UNAVAILABLE', `the group is being taken over (${primary.phase})`, { details });
  }
  if (view.inSync.length < view.minCopies) {
    return new WebdfsError('NO_QUORUM', `${view.inSync.length} of ${view.minCopies} copies are in sync`, {
      details,
      retryAfterMs: 1_000,
    });
  }
  return undefined;
}

/** W8 and the bounds of memory. */
function noRoom(state: GroupState, primary: PrimaryState, context: StepContext): WebdfsError | undefined {
  const { parameters } = context;
  if (
    state.last - state.commit < parameters.windowEntries &&
    primary.flightBytes < parameters.windowBytes &&
    context.flight.bytes < parameters.nodeWindowBytes
  ) {
    return undefined;
  }
  const message = `${state.last - state.commit} entries, ${primary.flightBytes} bytes of the group are in flight`;
  return new WebdfsError('BUSY', message, { retryAfterMs: 50 });
}

function onWrite(state: GroupState, primary: PrimaryState, proposal: WriteProposal, turn: Turn): void {
  const { context } = turn;
  const { request } = proposal;
  try {
    checkShape(request);
  } catch (error) {
    if (error instanceof WebdfsError) return refuse(proposal, error, turn);
    throw error;
  }
  if (answerKnown(state, primary, proposal, turn)) return;
  const late = tooLate(proposal, context);
  if (late !== undefined) return refuse(proposal, late, turn);
  const behind = mustWaitFor(primary, request);
  if (behind !== undefined) return park(primary, behind, proposal, turn);
  const row = context.find(request.key);
  const refusal = isRefused(state, proposal, row, turn) ?? noRoom(state, primary, context);
  // Looked up, then checked (L3): a refusal tells of the state just as a read does, and a write is begun under the lease (L4).
  if (!context.leaseHolds()) {
    return refuse(proposal, new WebdfsError('UNAVAILABLE', 'the lease of this node has run out'), turn);
  }
  if (refusal !== undefined) return refuse(proposal, refusal, turn);
  const touches = touchesOf('record', request.key);
  const replaced = present(primary, touches, row);
  if (request.kind === 'delete' && replaced === undefined) {
    const answer = { sequence: 0, ballot: primary.ballot, modifiedMs: proposal.nowMs, replaced };
    turn.effects.push({ type: 'answer', ticket: proposal.ticket, outcome: { type: 'done', answer } });
    return;
  }
  propose(state, primary, proposal, { draft: draftOf(proposal), touches, replaced }, turn);
}

/** A request that is in the table was done, or is being done: the same answer, once. */
function answerKnown(state: GroupState, primary: PrimaryState, proposal: WriteProposal, turn: Turn): boolean {
  const { request, ticket } = proposal;
  const known = turn.context.requests.find(state.key, request.requestId);
  if (known === undefined) return false;
  if (known.sequence > state.commit) {
    flightOf(primary, known.sequence).waiters.push({ ticket });
    return true;
  }
  const answer = turn.context.requests.answer(state.key, request.requestId)!;
  turn.effects.push({ type: 'answer', ticket, outcome: { type: 'done', answer } });
  return true;
}

/** A request older than the table reaches may have been done: nobody can say. */
function tooLate({ request, nowMs }: WriteProposal, context: StepContext): WebdfsError | undefined {
  const limit = context.parameters.retryKeepMs / 2;
  const isForgotten = request.ageMs > 0 && nowMs - request.ageMs <= context.requests.horizonMs;
  if (request.ageMs <= limit && !isForgotten) return undefined;
  return new WebdfsError('TOO_LATE', `the request is ${request.ageMs} ms old, its outcome is not known any more`);
}

/** The thing in flight that must settle before this request is judged. */
function mustWaitFor(primary: PrimaryState, request: WriteProposal['request']): string | undefined {
  const own = touchesOf('record', request.key);
  const key = primary.keys.get(own);
  if (key !== undefined && key.parked.length > 0) return own;
  if (dependsOnState(request)) return settledFirst(request).find((name) => primary.keys.has(name));
  const attempt = attemptOf(request);
  if (attempt === undefined) return undefined;
  const fence = touchesOf('note', fenceNote(attempt));
  return primary.keys.has(fence) ? fence : undefined;
}

function park(primary: PrimaryState, behind: string, proposal: WriteProposal, turn: Turn): void {
  const { parked } = keyStateOf(primary, behind);
  if (parked.length < turn.context.parameters.parkedPerKey) {
    parked.push(proposal);
    return;
  }
  refuse(proposal, new WebdfsError('BUSY', `${parked.length} requests wait for this key`, { retryAfterMs: 50 }), turn);
}

function isRefused(
  state: GroupState,
  { request, nowMs }: WriteProposal,
  row: RecordRow | undefined,
  turn: Turn,
): WebdfsError | undefined {
  const { context } = turn;
  const full = request.kind === 'put' ? noSpace(state, state.primary!, turn) : undefined;
  if (full !== undefined) return full;
  const attempt = attemptOf(request);
  if (attempt !== undefined) {
    const fenced = context.note(state.key, fenceNote(attempt));
    const isOld = request.requires.length === 0 && birthOf(attempt) < nowMs - context.parameters.attemptMs;
    if (isOld || (fenced !== undefined && fenced.length > 0)) {
      return new WebdfsError('FENCED', 'the blocks of this upload are given up: it must begin anew');
    }
  }
  return conditionFails(request.conditions, row) ?? requirementFails(request, context.find);
}

/** What the key holds for a write that comes next: the newest in flight, else what is committed. */
function present(primary: PrimaryState, touches: string, row: RecordRow | undefined): Version {
  const tip = primary.keys.get(touches)?.tip?.entry;
  if (tip === undefined) return row === undefined ? undefined : { sequence: row.sequence, summary: row.summary };
  if (tip.kind !== KIND.RECORD) return undefined;
  return { sequence: tip.sequence, summary: tip.meta.subarray(REQUEST_ID_BYTES, REQUEST_ID_BYTES + 32) };
}

type Draft = Pick<LogEntry, 'kind' | 'flags' | 'hashHigh' | 'hashLow' | 'key' | 'meta' | 'body'>;

function touchesBy(proposal: Exclude<Proposal, { type: 'write' }>): string {
  return proposal.type === 'note' ? touchesOf('note', proposal.name) : '';
}

function draftOf(proposal: Proposal): Draft {
  switch (proposal.type) {
    case 'write': {
      const { kind, key, hashHigh, hashLow, body, closes } = proposal.request;
      const flags = FLAG.LATEST_ONLY | (closes === undefined ? 0 : FLAG.CLOSES);
      const meta = packMeta(proposal.request);
      return { kind: kind === 'put' ? KIND.RECORD : KIND.TOMBSTONE, flags, hashHigh, hashLow, key, meta, body };
    }
    case 'block': {
      const { id: key, hashHigh, hashLow, owner, size, sums } = proposal;
      const meta = new Uint8Array(REQUEST_ID_BYTES + owner.length);
      meta.set(owner, REQUEST_ID_BYTES);
      return { kind: KIND.BLOCK, flags: 0, hashHigh, hashLow, key, meta, body: packBlockBody(size, sums) };
    }
    case 'block-gone': {
      const { id: key } = proposal;
      return { kind: KIND.BLOCK_GONE, flags: 0, hashHigh: 0, hashLow: 0, key, meta: NO_REQUEST, body: EMPTY };
    }
    case 'note': {
      const { name: key, value: body } = proposal;
      const flags = body.length === 0 ? FLAG.DELETE_MARKER : 0;
      return { kind: KIND.GROUP_ENTRY, flags, hashHigh: 0, hashLow: 0, key, meta: NO_REQUEST, body };
    }
    default:
      return unreachable(proposal);
  }
}

function propose(
  state: GroupState,
  primary: PrimaryState,
  proposal: Proposal,
  what: { draft: Draft; touches: string; replaced: Version },
  { context, at, effects }: Turn,
): void {
  const { draft, touches, replaced } = what;
  if (proposal.type === 'write') {
    assert(context.requests.find(state.key, proposal.request.requestId) === undefined, 'a request is done once (S5)');
  }
  const entry: LogEntry = {
    ...state.key,
    ...draft,
    sequence: state.last + 1,
    ballot: primary.ballot,
    commit: state.commit,
    ...timeOf(state, proposal.nowMs),
    sums: (proposal.type === 'write' ? proposal.sums : undefined) ?? chunkSums(draft.body),
  };
  takeIn(state, entry, context);
  assert(state.last - state.commit <= context.parameters.windowEntries, 'the window is kept (S9)');
  takeOff(primary, entry, { touches, replaced, waiters: [{ ticket: proposal.ticket }] }, context);
  effects.push({ type: 'append', entry });
  sendToAll(state, primary, { context, at, effects });
}

/** Hybrid time: the wall clock, but never before the entry before. Source: Kulkarni et al., OPODIS 2014. */
function timeOf(state: GroupState, nowMs: number): Pick<LogEntry, 'timeMs' | 'timeCount'> {
  if (nowMs > state.timeMs) return { timeMs: nowMs, timeCount: 0 };
  if (state.timeCount < 65_535) return { timeMs: state.timeMs, timeCount: state.timeCount + 1 };
  return { timeMs: state.timeMs + 1, timeCount: 0 };
}

function sendToAll(state: GroupState, primary: PrimaryState, { context, at, effects }: Turn): void {
  let told = true;
  for (const member of primary.members.values()) {
    // It owed nothing before: its time begins now.
    if (member.acked === state.last - 1) member.progressAt = at;
    if (member.phase === 'synced' && member.sent === state.last - 1) sendOn(state, primary, member, at, effects);
    else told = false;
  }
  if (told) primary.commitTold = state.commit;
  const { learner } = primary;
  if (learner?.acked === state.last - 1) learner.progressAt = at;
  if (learner !== undefined && learner.sent === state.last - 1) sendOn(state, primary, learner, at, effects);
  wake(state, at + context.parameters.resendMs, effects);
}

/** The waiters of all that is in flight or parked learn that this primary cannot finish it. */
export function refuseAll(primary: PrimaryState, context: StepContext, effects: Effect[]): void {
  const details = { revision: context.revision() };
  const error = new WebdfsError('NOT_PRIMARY', 'the group is served under a new ballot', { details });
  const outcome: Outcome = { type: 'refused', error };
  const tickets = (flight: Flight): number[] => flight.waiters.map(({ ticket }) => ticket);
  const waiting = primary.flight.flatMap(tickets);
  for (const key of primary.keys.values()) waiting.push(...key.parked.map(({ ticket }) => ticket));
  for (const ticket of waiting) effects.push({ type: 'answer', ticket, outcome });
}
