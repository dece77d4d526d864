import { assert, type NodeId, type Revision, type Sequence } from '@webdfs/base';
import { KIND, type LogEntry } from '@webdfs/store';
import { tryCommit } from './commit.ts';
import { touchesOf } from './conditions.ts';
import type { Effect, GroupEvent, StepContext } from './events.ts';
import { applyKnown, ballotIn, commonEnd, runsOf, takeBack, takeIn } from './group-log.ts';
import type { Tail } from './messages.ts';
import type { GroupState, MemberProgress, PrimaryState } from './state.ts';
import { sendOn, takeOff, wake } from './stream.ts';

/** T1–T4: a primary of a new ballot gathers the ends of all logs, adopts the furthest, levels the others, then serves. */

interface Turn {
  readonly context: StepContext;
  readonly at: number;
  readonly effects: Effect[];
}

type LogEnd = Pick<Tail, 'commit' | 'last' | 'lastBallot' | 'runs'>;

/** The map made this node the primary of the group, by the view it has now. */
export function beginTakeover(state: GroupState, turn: Turn): void {
  const { view } = state;
  assert(view.primary === turn.context.self, 'the map names the primary (S2)');
  const primary: PrimaryState = {
    ballot: view.ballot,
    phase: 'gather',
    learnedAt: turn.at,
    round: 0,
    members: new Map(),
    adopted: undefined,
    released: new Set(),
    releaseAt: -Infinity,
    flightFrom: state.commit + 1,
    flight: [],
    flightBytes: 0,
    keys: new Map(),
    commitTold: state.commit,
    commitDue: 0,
    learner: undefined,
    transaction: undefined,
    changeAt: 0,
    complainAt: turn.at + turn.context.parameters.memberMs,
  };
  state.primary = primary;
  // Its own log is what it adopts and serves: it applied no Sync of this ballot, and needs none.
  state.syncedIn = view.ballot;
  for (const node of view.inSync) if (node !== view.primary) addMember(state, primary, node, turn);
  if (state.marked === 'no') {
    state.marked = 'asked';
    turn.effects.push({ type: 'mark', mark: { role: 'member', syncedIn: state.syncedIn } });
  }
  askRelease(state, primary, turn);
  tryAdopt(state, turn);
  wake(state, turn.at + turn.context.parameters.resendMs, turn.effects);
}

function addMember(state: GroupState, primary: PrimaryState, node: NodeId, turn: Turn): void {
  const member: MemberProgress = {
    node,
    phase: 'query',
    session: 0,
    tail: undefined,
    round: 0,
    fullUntil: -Infinity,
    acked: 0,
    sent: 0,
    rewound: 0,
    progressAt: turn.at,
    sentAt: turn.at,
  };
  primary.members.set(node, member);
  ask(state, primary, member, turn);
}

/** Asks for the end of a member's log, by a new number: only the answer to this question counts. */
export function ask(state: GroupState, primary: PrimaryState, member: MemberProgress, turn: Turn): void {
  member.phase = 'query';
  member.tail = undefined;
  member.round = ++primary.round;
  askAgain(state, primary, member, turn);
}

/** The same question once more: it, or its answer, may have been lost. */
export function askAgain(state: GroupState, primary: PrimaryState, member: MemberProgress, turn: Turn): void {
  const message = { type: 'query', ...state.key, ballot: primary.ballot, round: member.round } as const;
  turn.effects.push({ type: 'send', to: member.node, message });
  member.sentAt = turn.at;
}

/** L7: whoever may still believe it is primary is asked to say that it stopped. */
export function askRelease(state: GroupState, primary: PrimaryState, turn: Turn): void {
  primary.releaseAt = turn.at;
  for (const node of fenceLeft(state, primary, turn.context)) {
    turn.effects.push({ type: 'send', to: node, message: { type: 'release', ...state.key, ballot: primary.ballot } });
  }
}

function fenceLeft(state: GroupState, primary: PrimaryState, { self }: StepContext): NodeId[] {
  const left = state.view.fence.filter(({ node }) => node !== self && !primary.released.has(node));
  return left.map(({ node }) => node);
}

/** L7: released, or gone from the map, or a lease's time has passed since the ballot was learned. */
export function fenceIsOpen(state: GroupState, primary: PrimaryState, { context, at }: Turn): boolean {
  const { leaseMs, marginMs } = context.parameters;
  return at >= primary.learnedAt + leaseMs + marginMs || fenceLeft(state, primary, context).length === 0;
}

export function onTail(state: GroupState, from: NodeId, tail: Tail, session: Revision, turn: Turn): void {
  const primary = state.primary;
  const member = primary?.members.get(from);
  if (primary === undefined || member === undefined) return;
  if (member.phase !== 'query' || tail.round !== member.round || member.tail !== undefined) return;
  member.session = session;
  member.tail = tail;
  member.progressAt = turn.at;
  if (primary.phase === 'gather') return tryAdopt(state, turn);
  if (primary.phase === 'level') return;
  // It acknowledged more than it has now: what it held is gone.
  if (tail.last < Math.max(member.acked, state.commit)) return sayLost(state, primary, from, turn);
  levelMember(state, primary, member, turn);
}

function sayLost(state: GroupState, primary: PrimaryState, node: NodeId, { context, effects }: Turn): void {
  const commit = primary.adopted?.commit ?? state.commit;
  if (node === context.self) {
    effects.push({ type: 'disk-is-old', commit });
    return;
  }
  effects.push({ type: 'send', to: node, message: { type: 'lost', ...state.key, ballot: primary.ballot, commit } });
  effects.push({ type: 'complain', node, what: 'its log ends before a commit point' });
}

/** T2: once all have told, and this disk is quiet, the log with the last entry of the largest (ballot, sequence) is it. */
export function tryAdopt(state: GroupState, turn: Turn): void {
  const primary = state.primary;
  if (primary === undefined || primary.phase !== 'gather') return;
  if (state.marked !== 'yes' || state.cutting || state.durable < state.last) return;
  const ends = endsOf(state, primary, turn.context.self);
  if (ends === undefined || lacksWitness(state, primary, turn.context)) return;
  const commit = Math.max(...ends.map(({ end }) => end.commit));
  const short = ends.filter(({ end }) => end.last < commit);
  if (short.length > 0) {
    for (const { node } of short) sayLost(state, primary, node, turn);
    return;
  }
  let best = ends[0]!;
  for (const other of ends) if (isFurther(other.end, best.end)) best = other;
  const common = commonEnd(commit, ownEnd(state), best.end);
  const { last, runs } = best.end;
  primary.adopted = { holder: best.node, last, runs, commit, common };
  adopt(state, primary, turn);
}

/** Where the logs of all members end; undefined while one has not told. */
function endsOf(
  state: GroupState,
  primary: PrimaryState,
  self: NodeId,
): { readonly node: NodeId; readonly end: LogEnd }[] | undefined {
  const ends: { node: NodeId; end: LogEnd }[] = [{ node: self, end: ownEnd(state) }];
  for (const { node, tail } of primary.members.values()) {
    if (tail === undefined) return undefined;
    ends.push({ node, end: tail });
  }
  return ends;
}

/** A disk that lost what nobody can name needs somebody to compare with, as long as somebody will be put back. */
function lacksWitness({ view }: GroupState, { members }: PrimaryState, { suspect }: StepContext): boolean {
  return members.size === 0 && view.eligible.length > 0 && suspect();
}

function ownEnd(state: GroupState): LogEnd {
  const { commit, last, lastBallot } = state;
  return { commit, last, lastBallot, runs: runsOf(state) };
}

function isFurther(a: LogEnd, b: LogEnd): boolean {
  return a.lastBallot === b.lastBallot ? a.last > b.last : a.lastBallot > b.lastBallot;
}

/** Makes this node's own log the adopted one. */
function adopt(state: GroupState, primary: PrimaryState, turn: Turn): void {
  const { last, commit, common } = primary.adopted!;
  primary.phase = 'level';
  if (takeBack(state, common, turn.context).length > 0) {
    state.cutting = true;
    turn.effects.push({ type: 'cut', after: common, below: primary.ballot });
  }
  state.commitKnown = Math.max(state.commitKnown, commit);
  applyKnown(state, turn.effects);
  primary.flightFrom = commit + 1;
  if (common > commit) turn.effects.push({ type: 'load', ballot: primary.ballot });
  else if (common < last) fetchRest(state, primary, turn);
  else levelMembers(state, primary, turn);
}

export function onLoaded(state: GroupState, event: Extract<GroupEvent, { type: 'loaded' }>, turn: Turn): void {
  const primary = state.primary;
  if (primary?.phase !== 'level' || primary.ballot !== event.ballot || primary.adopted === undefined) return;
  const { commit, common, last } = primary.adopted;
  if (primary.flight.length > 0) return;
  for (const entry of event.entries) {
    if (entry.sequence > commit && entry.sequence <= common) takeOffAdopted(primary, entry, turn);
  }
  assert(primary.flight.length === common - commit, 'the disk holds what its tail said');
  if (common < last) fetchRest(state, primary, turn);
  else levelMembers(state, primary, turn);
}

function fetchRest(state: GroupState, primary: PrimaryState, { effects }: Turn): void {
  const { holder: from, common: after, last: upTo } = primary.adopted!;
  effects.push({ type: 'fetch', ballot: primary.ballot, from, after, upTo });
  assert(state.last === after, 'what differs was cut');
}

export function onFetched(state: GroupState, event: Extract<GroupEvent, { type: 'fetched' }>, turn: Turn): void {
  const primary = state.primary;
  if (primary?.phase !== 'level' || primary.ballot !== event.ballot || primary.adopted === undefined) return;
  const { holder, last, runs, common } = primary.adopted;
  if (state.last !== common) return;
  if (!isWhole(event.entries, { after: common, last, runs })) return gatherAgain(state, primary, holder, turn);
  for (const entry of event.entries) {
    takeIn(state, entry, turn.context);
    turn.effects.push({ type: 'append', entry });
    takeOffAdopted(primary, entry, turn);
  }
  levelMembers(state, primary, turn);
}

function isWhole(
  entries: readonly LogEntry[],
  range: { after: Sequence; last: Sequence; runs: LogEnd['runs'] },
): boolean {
  if (entries.length !== range.last - range.after) return false;
  return entries.every(
    ({ sequence, ballot }, i) => sequence === range.after + 1 + i && ballot === ballotIn(range.runs, sequence),
  );
}

/** The holder of the adopted log did not give it: ask it again; if it is silent it will be dropped (W9). */
function gatherAgain(state: GroupState, primary: PrimaryState, holder: NodeId, turn: Turn): void {
  primary.phase = 'gather';
  primary.adopted = undefined;
  turn.context.flight.bytes -= primary.flightBytes;
  primary.flight = [];
  primary.flightBytes = 0;
  primary.keys.clear();
  const member = primary.members.get(holder);
  assert(member !== undefined, 'entries are fetched from members');
  const { progressAt } = member;
  ask(state, primary, member, turn);
  member.progressAt = progressAt;
}

function takeOffAdopted(primary: PrimaryState, entry: LogEntry, { context }: Turn): void {
  takeOff(primary, entry, { touches: touchedBy(entry), replaced: undefined, waiters: [] }, context);
}

function touchedBy(entry: LogEntry): string {
  if (entry.kind === KIND.RECORD || entry.kind === KIND.TOMBSTONE) return touchesOf('record', entry.key);
  return entry.kind === KIND.GROUP_ENTRY ? touchesOf('note', entry.key) : '';
}

/** T3. */
function levelMembers(state: GroupState, primary: PrimaryState, turn: Turn): void {
  primary.phase = 'sync';
  for (const member of primary.members.values()) {
    if (member.tail !== undefined) levelMember(state, primary, member, turn);
  }
  tryServe(state, turn);
}

/** Tells a member where its log stops being this one's; what follows comes as appends. */
function levelMember(state: GroupState, primary: PrimaryState, member: MemberProgress, turn: Turn): void {
  const tail = member.tail!;
  const after = commonEnd(Math.max(state.commit, tail.commit), ownEnd(state), tail);
  assert(after >= state.commit, 'a member holds what is committed (S3)');
  const { session: receiver } = member;
  const message = {
    type: 'sync',
    ...state.key,
    ballot: primary.ballot,
    receiver,
    after,
    commit: state.commit,
  } as const;
  turn.effects.push({ type: 'send', to: member.node, message });
  member.phase = 'sync';
  member.sent = after;
  member.acked = Math.max(member.acked, after);
  member.rewound = 0;
  member.sentAt = turn.at;
  member.progressAt = turn.at;
  wake(state, turn.at + turn.context.parameters.resendMs, turn.effects);
}

/** A member said it is synced: it gets what it lacks. */
export function onSynced(state: GroupState, primary: PrimaryState, member: MemberProgress, turn: Turn): void {
  member.phase = 'synced';
  member.progressAt = turn.at;
  sendOn(state, primary, member, turn.at, turn.effects);
}

/** T4: all are level, this disk too, and the fence is open. */
export function tryServe(state: GroupState, turn: Turn): void {
  const { primary, view } = state;
  if (primary?.phase !== 'sync') return;
  const { last } = primary.adopted!;
  if (state.durable < last || state.cutting) return;
  for (const member of primary.members.values()) {
    if (member.phase !== 'synced' || member.acked < last) return;
  }
  if (!fenceIsOpen(state, primary, turn)) return;
  assert(view.primary === turn.context.self, 'only the primary of the map serves (S2)');
  assert(view.ballot === primary.ballot, 'a primary serves the ballot it gathered in (S12)');
  primary.phase = 'serve';
  turn.effects.push({ type: 'serving', serving: true });
  tryCommit(state, turn.context, turn.at, turn.effects);
}
