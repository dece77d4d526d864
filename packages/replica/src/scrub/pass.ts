import { asGroupId, asPolicyId, fromUtf8, type GroupKey, groupNumber, utf8, WebdfsError } from '@webdfs/base';
import { FAULTS, type Fault } from './judgement.ts';
import { emptyTally, MAX_NODE_PROBLEMS, type Problem, type Tally } from './tally.ts';

/** One count of all copies of everything, by all nodes together. Of two passes the later one goes on. */
export interface Pass {
  /** When it was begun, milliseconds since 1970; names it. */
  readonly id: number;
  /** What each node reads of its disk for it. */
  readonly bytesPerSecond: number;
}

/** The last pass that counted everything. */
export interface Completion {
  readonly pass: number;
  readonly atMs: number;
  readonly objects: number;
  /** Every copy was as it should be. */
  readonly clean: boolean;
}

export const LEAST_PACE = 1_048_576;
export const MOST_PACE = 1_099_511_627_776;
/** A pass from further in the future than this is refused: a clock is wrong. */
export const MOST_AHEAD_MS = 3_600_000;

export interface GroupResult {
  /** The members in sync that were counted, first to last, with commas. */
  readonly members: string;
  readonly tally: Tally;
}

/** How far one node has come with one pass; kept on its disk, so that it goes on where it was. */
export interface PassState {
  pass: Pass | undefined;
  /** By group number. */
  readonly results: Map<number, GroupResult>;
  /** Volumes whose every byte was read. */
  volumes: Set<number>;
  areVolumesRead: boolean;
  completion: Completion | undefined;
}

export function emptyState(): PassState {
  return { pass: undefined, results: new Map(), volumes: new Set(), areVolumesRead: false, completion: undefined };
}

/** Begins a pass, unless this or a later one is under way. @returns whether it began */
export function adopt(state: PassState, pass: Pass, nowMs: number): boolean {
  if (pass.id <= (state.pass?.id ?? 0)) return false;
  if (pass.id > nowMs + MOST_AHEAD_MS) {
    throw new WebdfsError(
      'INVALID',
      `a pass of ${new Date(pass.id).toISOString()} is in the future: compare the clocks`,
    );
  }
  state.pass = pass;
  state.results.clear();
  // not cleared: whoever still reads for the pass before would add to it
  state.volumes = new Set();
  state.areVolumesRead = false;
  return true;
}

/** Keeps a group's result. Problems beyond `MAX_NODE_PROBLEMS` of the whole node are only counted. */
export function keep(state: PassState, number: number, { members, tally }: GroupResult): void {
  state.results.delete(number);
  if (tally.problems.length === 0) {
    state.results.set(number, { members, tally });
    return;
  }
  let room = MAX_NODE_PROBLEMS;
  for (const other of state.results.values()) room -= other.tally.problems.length;
  const problems = tally.problems.slice(0, Math.max(0, room));
  const omitted = tally.omitted + tally.problems.length - problems.length;
  state.results.set(number, { members, tally: { ...tally, problems, omitted } });
}

/** The pass that is due by the calendar: all nodes name it alike without asking each other. */
export function dueAt(nowMs: number, everyMs: number): number {
  return Number.isFinite(everyMs) ? Math.floor(nowMs / everyMs) * everyMs : 0;
}

// ---- on the disk ----

const FORMAT = 1;
/** members, objects, others, bytes, and if anything was wrong: found, mended, left, problems, omitted. */
type PackedResult = [number, number, string, number[], number[], number, ...unknown[]];

/** JSON; a group in which nothing was wrong takes some forty bytes. */
export function packState(state: PassState): Uint8Array {
  const results = Array.from(state.results, ([number, { members, tally }]): PackedResult => {
    const { policy, group } = groupOfNumber(number);
    const { objects, others, bytes, found, mended, left, problems, omitted } = tally;
    const packed: PackedResult = [policy, group, members, objects, others, bytes];
    if (FAULTS.some((fault) => found[fault] > 0) || left > 0) packed.push(found, mended, left, problems, omitted);
    return packed;
  });
  const { pass, areVolumesRead, completion } = state;
  return utf8(
    JSON.stringify({ format: FORMAT, pass, results, volumes: [...state.volumes], areVolumesRead, completion }),
  );
}

/** What an earlier life left. Whatever is not understood is counted anew. */
export function unpackState(bytes: Uint8Array | undefined): PassState {
  const state = emptyState();
  if (bytes === undefined) return state;
  let kept: unknown;
  try {
    kept = JSON.parse(fromUtf8(bytes));
  } catch {
    // a count can be made again
    return state;
  }
  if (!isRecord(kept) || kept['format'] !== FORMAT) return state;
  if (isCompletion(kept['completion'])) state.completion = kept['completion'];
  if (!isPass(kept['pass'])) return state;
  state.pass = kept['pass'];
  state.areVolumesRead = kept['areVolumesRead'] === true;
  for (const id of arrayOf(kept['volumes'])) if (typeof id === 'number') state.volumes.add(id);
  for (const result of arrayOf(kept['results'])) addResult(state, arrayOf(result));
  return state;
}

function addResult(state: PassState, [policy, group, members, ...rest]: readonly unknown[]): void {
  if (typeof policy !== 'number' || typeof group !== 'number' || typeof members !== 'string') return;
  const [objects, others, bytes, found, mended, left, problems, omitted] = rest;
  const tally: Tally = {
    ...emptyTally(),
    objects: numbersOf(objects),
    others: numbersOf(others),
    bytes: numberOf(bytes),
    mended: numberOf(mended),
    left: numberOf(left),
    problems: arrayOf(problems).filter(isProblem),
    omitted: numberOf(omitted),
  };
  for (const fault of FAULTS) if (isRecord(found)) tally.found[fault] = numberOf(found[fault]);
  state.results.set(groupNumber({ policy: asPolicyId(policy), group: asGroupId(group) }), { members, tally });
}

export function groupOfNumber(number: number): GroupKey {
  return { policy: asPolicyId(Math.floor(number / 4_294_967_296)), group: asGroupId(number % 4_294_967_296) };
}

// ---- checks of foreign JSON ----

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0;
}

export function numbersOf(value: unknown): number[] {
  return arrayOf(value).map(numberOf);
}

export function isPass(value: unknown): value is Pass {
  if (!isRecord(value)) return false;
  const { id, bytesPerSecond } = value;
  const isPace = typeof bytesPerSecond === 'number' && bytesPerSecond >= LEAST_PACE && bytesPerSecond <= MOST_PACE;
  return Number.isSafeInteger(id) && (id as number) > 0 && isPace;
}

export function isCompletion(value: unknown): value is Completion {
  if (!isRecord(value)) return false;
  return (
    ['pass', 'atMs', 'objects'].every((name) => typeof value[name] === 'number') && typeof value['clean'] === 'boolean'
  );
}

export function isProblem(value: unknown): value is Problem {
  if (!isRecord(value)) return false;
  const isNamed = typeof value['key'] === 'string' && typeof value['what'] === 'string';
  const isCounted = ['policy', 'group', 'copies'].every((name) => typeof value[name] === 'number');
  return isNamed && isCounted && typeof value['mended'] === 'boolean' && arrayOf(value['wrong']).every(isWrong);
}

function isWrong(value: unknown): boolean {
  return isRecord(value) && typeof value['node'] === 'number' && FAULTS.includes(value['fault'] as Fault);
}
