import type { GroupKey, NodeId, PolicyId, Revision } from '@webdfs/base';
import { type Complaint, judge } from './judgement.ts';
import type { Transaction } from './map-store.ts';
import { allGroups } from './map-view.ts';
import { isSpent, proposeAccused, proposeLost, proposeUnmark } from './marks.ts';
import type { ClusterParameters } from './parameters.ts';
import { MAX_TOGETHER, propose, together } from './propose.ts';
import {
  canSettle,
  canWriteOff,
  proposeReinstate,
  proposeSettle,
  proposeSweep,
  proposeWriteOff,
  sweepable,
} from './upkeep.ts';
import { sliceCount } from './keys.ts';
import type { MapView } from './view.ts';

/** Milliseconds of the controller's monotonic clock. */
type Ms = number;

interface Backoff {
  readonly times: number;
  readonly lastMs: Ms;
}

interface Plan {
  readonly purpose: string;
  readonly transaction: Transaction;
  /** Nodes that this accuses. */
  readonly accuses?: NodeId;
  readonly sweeps?: boolean;
}

/**
 * What a controller knows beside the map; the next one begins without it. One transaction is under way at a time: the
 * next is planned from a map that shows the last.
 */
export interface ControllerState {
  /** Create revision of the key `controller`. */
  readonly elected: Revision;
  readonly view: MapView;
  /** Before that only nodes are judged whose session was seen to end. */
  readonly quietUntilMs: Ms;
  /** Nodes that had a session while this node followed the map, and the store was there all the time since. */
  readonly seen: ReadonlySet<NodeId>;
  /** Sessions are not counted as seen before: those from before the store was away may end because of that. */
  readonly seesFromMs: Ms;
  /** A transaction failed on this revision of the map: nothing is planned from it again before the next tick. */
  readonly failedOn: Revision;
  readonly underWay: { readonly id: number; readonly plan: Plan } | undefined;
  readonly count: number;
  readonly complaints: readonly (Complaint & { readonly at: Ms })[];
  /** Nodes that were accused, and how often in a row. */
  readonly backoff: ReadonlyMap<NodeId, Backoff>;
  /** Since when a node has been seen marked and without a session. */
  readonly absentSince: ReadonlyMap<NodeId, Ms>;
  /** Since when a node has been seen without a session, marked or not. */
  readonly endedSince: ReadonlyMap<NodeId, Ms>;
  readonly sweptMs: Ms;
}

export type ControllerEvent =
  | { readonly type: 'map'; readonly view: MapView; readonly at: Ms }
  | { readonly type: 'tick'; readonly at: Ms }
  | { readonly type: 'complaint'; readonly complaint: Complaint; readonly at: Ms }
  /** The store did not answer. */
  | { readonly type: 'away'; readonly at: Ms }
  /** The map shows what became of a transaction; `unknown`: it may still. */
  | { readonly type: 'outcome'; readonly id: number; readonly outcome: 'done' | 'failed' | 'unknown'; readonly at: Ms };

export interface ControllerEffect {
  readonly type: 'transact';
  readonly id: number;
  readonly purpose: string;
  readonly transaction: Transaction;
}

const MAX_COMPLAINTS = 4_096;

/** Nodes that have a session in a map. */
export function liveNodes(view: MapView): NodeId[] {
  return view.nodes().filter((node) => view.live(node) !== undefined);
}

/**
 * A controller just elected. For `graceMs` it judges only nodes whose session its own map saw begin and end (`seen`): one
 * that it never saw may be on its way back with all the others.
 */
export function newController(
  view: MapView,
  elected: Revision,
  at: Ms,
  {
    parameters,
    seen = new Set(),
    seesFromMs = at,
  }: {
    readonly parameters: ClusterParameters;
    readonly seen?: ReadonlySet<NodeId>;
    readonly seesFromMs?: Ms;
  },
): ControllerState {
  return {
    elected,
    view,
    seen,
    seesFromMs,
    quietUntilMs: at + parameters.graceMs,
    failedOn: 0,
    underWay: undefined,
    count: 0,
    complaints: [],
    backoff: new Map(),
    absentSince: absentSince(new Map(), view, at),
    endedSince: endedSince(new Map(), view, at),
    sweptMs: at,
  };
}

function absentSince(before: ReadonlyMap<NodeId, Ms>, view: MapView, at: Ms): ReadonlyMap<NodeId, Ms> {
  const absent = view.marked().filter((node) => view.live(node) === undefined);
  return new Map(absent.map((node) => [node, before.get(node) ?? at]));
}

function endedSince(before: ReadonlyMap<NodeId, Ms>, view: MapView, at: Ms): ReadonlyMap<NodeId, Ms> {
  const ended = view.nodes().filter((node) => view.live(node) === undefined);
  return new Map(ended.map((node) => [node, before.get(node) ?? at]));
}

/** One pass over all groups: what the plans need of them. */
interface Survey {
  readonly inSync: ReadonlySet<NodeId>;
  /** Groups below `minCopies` to which live eligible nodes could come back. */
  readonly restorable: readonly GroupKey[];
}

/** A map is surveyed once, however many ticks look at it. */
const surveys = new WeakMap<MapView, Survey>();

function surveyOf(view: MapView): Survey {
  const known = surveys.get(view);
  if (known !== undefined) return known;
  const survey = newSurvey(view);
  surveys.set(view, survey);
  return survey;
}

function newSurvey(view: MapView): Survey {
  const inSync = new Set<NodeId>();
  const restorable: GroupKey[] = [];
  for (const group of allGroups(view.map)) {
    const state = view.group(group);
    for (const node of state.inSync) inSync.add(node);
    if (state.inSync.length >= state.minCopies) continue;
    if (state.eligible.some((node) => view.live(node) !== undefined)) restorable.push(group);
  }
  return { inSync, restorable };
}

function planLost(state: ControllerState, survey: Survey, at: Ms, { fenceMs }: ClusterParameters): Plan | undefined {
  const { view, seen, endedSince } = state;
  const quiet = at < state.quietUntilMs;
  const isLost = (node: NodeId): boolean => {
    const since = endedSince.get(node);
    return since !== undefined && at >= since + fenceMs && (!quiet || seen.has(node));
  };
  const lost = [...survey.inSync].find((node) => view.live(node) === undefined && isLost(node));
  if (lost === undefined) return undefined;
  return { purpose: `node ${lost} is lost`, transaction: proposeLost(view, lost, state.elected) };
}

function planAccused(state: ControllerState, { inSync }: Survey): Plan | undefined {
  const counts = (node: NodeId): boolean => inSync.has(node) && state.view.live(node) !== undefined;
  const fresh = state.complaints.filter(({ from, about }) => counts(from) && counts(about));
  const accused = judge(fresh)[0];
  if (accused === undefined) return undefined;
  const reason = `accused by ${fresh
    .filter(({ about }) => about === accused)
    .map(({ from }) => from)
    .join(', ')}`;
  return {
    purpose: `node ${accused} is ${reason}`,
    transaction: proposeAccused(state.view, accused, reason, state.elected),
    accuses: accused,
  };
}

/** Accused nodes wait before they are put back untested: they may be hung still. */
function mayReturn(state: ControllerState, node: NodeId, at: Ms, parameters: ClusterParameters): boolean {
  if (state.view.live(node) === undefined) return false;
  if (state.complaints.some(({ about }) => about === node)) return false;
  const backoff = state.backoff.get(node);
  if (backoff === undefined) return true;
  return at >= backoff.lastMs + Math.min(parameters.backoffMs * 2 ** (backoff.times - 1), parameters.maxBackoffMs);
}

function planRestore(
  state: ControllerState,
  { restorable }: Survey,
  at: Ms,
  parameters: ClusterParameters,
): Plan | undefined {
  const proposals = [];
  for (const group of restorable) {
    const nodes = state.view.group(group).eligible.filter((node) => mayReturn(state, node, at, parameters));
    if (nodes.length === 0) continue;
    proposals.push(propose(state.view, group, { type: 'restore', controller: state.elected, nodes }));
    if (proposals.length === MAX_TOGETHER) break;
  }
  const [first] = together(proposals);
  if (first === undefined) return undefined;
  return { purpose: `restore ${first.proposals.length} groups`, transaction: first.transaction };
}

function planSettle({ view, elected }: ControllerState): Plan | undefined {
  return canSettle(view) ? { purpose: 'settle', transaction: proposeSettle(view, elected) } : undefined;
}

function planUnmark({ view, elected }: ControllerState, { inSync }: Survey): Plan | undefined {
  // one that is in sync somewhere but has no session is about to be marked again
  const spent = view
    .marked()
    .find((node) => !(inSync.has(node) && view.live(node) === undefined) && isSpent(view, node));
  if (spent === undefined) return undefined;
  return { purpose: `unmark node ${spent}`, transaction: proposeUnmark(view, spent, elected) };
}

function planOut(state: ControllerState, at: Ms, parameters: ClusterParameters): Plan | undefined {
  const { view, elected, absentSince } = state;
  const back = view.map.out.find((node) => view.live(node) !== undefined);
  if (back !== undefined) {
    return { purpose: `node ${back} is back`, transaction: proposeReinstate(view, back, elected) };
  }
  const { outAfterMs = parameters.outAfterMs } = view.map;
  if (outAfterMs === 0) return undefined;
  for (const [node, since] of absentSince) {
    if (at < since + outAfterMs || !view.nodes().includes(node) || !canWriteOff(view, node)) continue;
    return { purpose: `write node ${node} off`, transaction: proposeWriteOff(view, node, elected) };
  }
  return undefined;
}

function sweepableSlice(view: MapView): { policy: PolicyId; slice: number } | undefined {
  if (view.marked().length > 0 || view.map.target !== undefined) return undefined;
  for (const { id } of view.map.policies) {
    for (let slice = 0; slice < sliceCount(view.map.groupBits); slice++) {
      if (sweepable(view, id, slice).length > 0) return { policy: id, slice };
    }
  }
  return undefined;
}

function planSweep(state: ControllerState, at: Ms, parameters: ClusterParameters): Plan | undefined {
  if (at < state.sweptMs + parameters.sweepEveryMs) return undefined;
  const found = sweepableSlice(state.view);
  if (found === undefined) return undefined;
  const { policy, slice } = found;
  return {
    purpose: `sweep slice ${slice} of policy ${policy}`,
    transaction: proposeSweep(state.view, policy, slice, state.elected),
    sweeps: true,
  };
}

/** The most urgent thing to do, if anything. */
function planNext(state: ControllerState, at: Ms, parameters: ClusterParameters): Plan | undefined {
  const survey = surveyOf(state.view);
  const quiet = at < state.quietUntilMs;
  return (
    planLost(state, survey, at, parameters) ??
    (quiet ? undefined : planAccused(state, survey)) ??
    planRestore(state, survey, at, parameters) ??
    planSettle(state) ??
    planUnmark(state, survey) ??
    planOut(state, at, parameters) ??
    planSweep(state, at, parameters)
  );
}

/** Forgets what is too old to count. */
function aged(state: ControllerState, at: Ms, parameters: ClusterParameters): ControllerState {
  const complaints = state.complaints.filter((complaint) => at < complaint.at + parameters.complaintMs);
  const backoff = new Map([...state.backoff].filter(([, { lastMs }]) => at < lastMs + 2 * parameters.maxBackoffMs));
  return {
    ...state,
    complaints: complaints.length === state.complaints.length ? state.complaints : complaints,
    backoff: backoff.size === state.backoff.size ? state.backoff : backoff,
  };
}

function withComplaint(state: ControllerState, complaint: Complaint, at: Ms): ControllerState {
  const others = state.complaints.filter(({ from, about }) => from !== complaint.from || about !== complaint.about);
  return { ...state, complaints: [...others.slice(1 - MAX_COMPLAINTS), { ...complaint, at }] };
}

function withOutcome(
  state: ControllerState,
  event: Extract<ControllerEvent, { type: 'outcome' }>,
  parameters: ClusterParameters,
): ControllerState {
  const { underWay } = state;
  if (underWay?.id !== event.id) return state;
  const after: ControllerState = { ...state, underWay: undefined };
  if (event.outcome === 'unknown') return afterAbsence(after, event.at, parameters);
  if (event.outcome === 'failed') return { ...after, failedOn: state.view.revision };
  const { accuses, sweeps } = underWay.plan;
  if (sweeps === true) return { ...after, sweptMs: event.at };
  if (accuses === undefined) return after;
  const times = (state.backoff.get(accuses)?.times ?? 0) + 1;
  return {
    ...after,
    complaints: state.complaints.filter(({ from, about }) => from !== accuses && about !== accuses),
    backoff: new Map([...state.backoff, [accuses, { times, lastMs: event.at }]]),
  };
}

/** The store did not answer: sessions may have ended because they could not be renewed. */
function afterAbsence(state: ControllerState, at: Ms, { graceMs }: ClusterParameters): ControllerState {
  return { ...state, quietUntilMs: at + graceMs, seesFromMs: at + graceMs, seen: new Set() };
}

function received(state: ControllerState, event: ControllerEvent, parameters: ClusterParameters): ControllerState {
  switch (event.type) {
    case 'map':
      return {
        ...state,
        view: event.view,
        seen: event.at < state.seesFromMs ? state.seen : new Set([...state.seen, ...liveNodes(event.view)]),
        absentSince: absentSince(state.absentSince, event.view, event.at),
        endedSince: endedSince(state.endedSince, event.view, event.at),
      };
    case 'tick':
      return state;
    case 'complaint':
      return withComplaint(state, event.complaint, event.at);
    case 'away':
      return afterAbsence(state, event.at, parameters);
    case 'outcome':
      return withOutcome(state, event, parameters);
  }
}

/**
 * One step of the controller. Pure; whoever holds the key `controller` runs it, and every transaction it asks for compares
 * that key, so that a deposed controller can write nothing. In order of urgency it
 *
 * - marks nodes without a session, and nodes that others accuse (not in the grace after it was elected or the store was away),
 * - puts eligible nodes back where too few members are left, which elects where nobody is,
 * - settles a reached target, removes spent marks, writes off nodes that stay away, and sweeps overrides that say nothing.
 */
export function controllerStep(
  state: ControllerState,
  event: ControllerEvent,
  parameters: ClusterParameters,
): { readonly state: ControllerState; readonly effects: readonly ControllerEffect[] } {
  const next = aged(received(state, event, parameters), event.at, parameters);
  const mustWait = next.failedOn === next.view.revision && event.type !== 'tick';
  if (next.underWay !== undefined || mustWait) return { state: next, effects: [] };
  const plan = planNext(next, event.at, parameters);
  if (plan === undefined) return { state: next, effects: [] };
  const id = next.count + 1;
  const { purpose, transaction } = plan;
  return {
    state: { ...next, count: id, underWay: { id, plan } },
    effects: [{ type: 'transact', id, purpose, transaction }],
  };
}
