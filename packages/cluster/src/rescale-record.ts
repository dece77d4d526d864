import { messageOf, WebdfsError } from '@webdfs/base';
import { RESCALE_PREFIX, rescaleKey } from './keys.ts';
import type { Compare, MapContents, Transaction, Write } from './map-store.ts';

/**
 * What was done to the shape of a cluster: a key `rescale/<number>` for each change, begun by the transaction that makes the
 * change and ended by the one that replaces it or gives it up, so that none is without. The map store keeps them: they outlive
 * every node and every controller.
 */
export interface RescaleRecord {
  /** Counts from 1. */
  readonly number: number;
  /** The words that began it, such as `cluster add 2`. */
  readonly command: string;
  /** Milliseconds since 1970; here as in all of this. */
  readonly beganMs: number;
  readonly planned: PlannedMoves;
  /** What the nodes counted so far. */
  readonly moved: { readonly bytes: number; readonly groups: number };
  /** For so long it stood still because it was told to, milliseconds. */
  readonly pausedMs: number;
  /** By the rates that were measured; undefined: none was yet. */
  readonly figures?: MeasuredTimes;
  /** While it goes on. */
  readonly open?: OpenRescale;
  readonly endedMs?: number;
  /** Every group is where it should be; it was taken back; another target took its place. */
  readonly outcome?: RescaleOutcome;
}

export type RescaleOutcome = 'settled' | 'aborted' | 'replaced';

export interface PlannedMoves {
  /** Groups whose members are to change, and copies of groups that are to be made. */
  readonly groups: number;
  readonly copies: number;
  /** Of these copies, and the least that any scheme must move. Undefined: nobody could say yet what the groups hold. */
  readonly bytes?: number;
  readonly leastBytes?: number;
}

/** Seconds that nobody can beat, and those of the plan; what sets the pace. */
export interface MeasuredTimes {
  readonly boundSeconds: number;
  readonly boundBy: string;
  readonly planSeconds: number;
  readonly paceNode: number;
  readonly paceBy: string;
}

/** What is needed to go on with the account, whoever is the controller. */
export interface OpenRescale {
  /**
   * Of each node: its fair share of the bytes before and after, and the bytes that the plan has it take in, send and read; none
   * while nobody could say what the groups hold.
   */
  readonly nodes: readonly PlannedNode[];
  /** Bytes that each node's meter showed when it was last looked at, in which session, and what the node took in since it began. */
  readonly meters: readonly NodeMeter[];
  readonly lookedMs: number;
}

export type PlannedNode = readonly [
  node: number,
  before: number,
  after: number,
  receive: number,
  send: number,
  read: number,
];
export type NodeMeter = readonly [node: number, session: number, bytes: number, moved: number];

/** Records that are kept. */
export const MAX_RESCALES = 100;
/** Of those too many, so many go at once: a transaction has its limit. */
const MAX_DROPPED = 16;
const MAX_COMMAND = 1_024;
const OUTCOMES: readonly RescaleOutcome[] = ['settled', 'aborted', 'replaced'];

function isRecord(value: unknown): value is RescaleRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { number, command, beganMs, planned, moved, pausedMs, open, endedMs, outcome } = value as Partial<
    Record<keyof RescaleRecord, unknown>
  >;
  const hasNumbers = (of: unknown, names: readonly string[]): boolean =>
    typeof of === 'object' &&
    of !== null &&
    names.every((name) => Number.isFinite((of as Readonly<Record<string, unknown>>)[name]));
  return (
    hasNumbers({ number, beganMs, pausedMs }, ['number', 'beganMs', 'pausedMs']) &&
    typeof command === 'string' &&
    hasNumbers(planned, ['groups', 'copies']) &&
    hasNumbers(moved, ['bytes', 'groups']) &&
    (open === undefined || isOpen(open)) &&
    (outcome === undefined || (OUTCOMES.includes(outcome as RescaleOutcome) && Number.isFinite(endedMs)))
  );
}

function isOpen(value: unknown): value is OpenRescale {
  if (typeof value !== 'object' || value === null) return false;
  const { nodes, meters, lookedMs } = value as Partial<Record<keyof OpenRescale, unknown>>;
  const rows = (list: unknown, width: number): boolean =>
    Array.isArray(list) &&
    list.every((row) => Array.isArray(row) && row.length === width && row.every((cell) => Number.isFinite(cell)));
  return rows(nodes, 6) && rows(meters, 4) && Number.isFinite(lookedMs);
}

/** @throws CORRUPT */
export function parseRescaleRecord(key: string, text: string): RescaleRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new WebdfsError('CORRUPT', `map store: ${key}: not JSON: ${messageOf(error)}`, { details: { key } });
  }
  if (isRecord(value)) return value;
  throw new WebdfsError('CORRUPT', `map store: ${key}: no account of a rescale`, { details: { key } });
}

/** A record with the revision at which it was last written. */
export interface KeptRescale {
  readonly record: RescaleRecord;
  readonly revision: number;
}

/** All that are kept, the oldest first. @throws CORRUPT */
export function rescalesIn({ entries }: Pick<MapContents, 'entries'>): KeptRescale[] {
  return entries
    .filter(({ key }) => key.startsWith(RESCALE_PREFIX))
    .map(({ key, value, modRevision }) => ({ record: parseRescaleRecord(key, value), revision: modRevision }))
    .toSorted((a, b) => a.record.number - b.record.number);
}

/** The one that goes on, if any. */
export function openRescale(kept: readonly KeptRescale[]): KeptRescale | undefined {
  const last = kept.at(-1);
  return last?.record.outcome === undefined ? last : undefined;
}

/** What a change of the topology is to be remembered by. */
export type NewRescale = Pick<RescaleRecord, 'command' | 'beganMs' | 'planned' | 'open'>;

/** How one that is over ended. */
export interface RescaleEnd {
  readonly outcome: RescaleOutcome;
  readonly endedMs: number;
  /** Groups that have moved. */
  readonly groups: number;
}

/** The transaction, which begins or ends a rescale, with the account of that. Of two at once one wins. */
export function withRescale(
  { compare, write }: Transaction,
  kept: readonly KeptRescale[],
  { end, begin }: { readonly end?: RescaleEnd; readonly begin?: NewRescale },
): Transaction {
  const compares: Compare[] = [...compare];
  const writes: Write[] = [...write];
  const open = openRescale(kept);
  if (open !== undefined && end !== undefined) {
    compares.push({ type: 'modified', key: rescaleKey(open.record.number), is: open.revision });
    writes.push(recordWrite(endedRescale(open.record, end)));
  }
  if (begin !== undefined) {
    const number = (kept.at(-1)?.record.number ?? 0) + 1;
    const command = begin.command.slice(0, MAX_COMMAND);
    compares.push({ type: 'created', key: rescaleKey(number), is: 0 });
    writes.push(recordWrite({ number, ...begin, command, moved: { bytes: 0, groups: 0 }, pausedMs: 0 }));
    for (const old of kept.slice(0, Math.min(MAX_DROPPED, Math.max(0, kept.length + 1 - MAX_RESCALES)))) {
      writes.push({ type: 'delete', key: rescaleKey(old.record.number) });
    }
  }
  return { compare: compares, write: writes };
}

/** The account of one that is over. */
export function endedRescale(before: RescaleRecord, { groups, ...end }: RescaleEnd): RescaleRecord {
  const { open: _, ...record } = before;
  return { ...record, moved: { ...record.moved, groups: Math.max(record.moved.groups, groups) }, ...end };
}

/** Goes on with an account that stands as it was read. */
export function proposeAccount(kept: KeptRescale, record: RescaleRecord, compare: readonly Compare[]): Transaction {
  const is: Compare = { type: 'modified', key: rescaleKey(record.number), is: kept.revision };
  return { compare: [...compare, is], write: [recordWrite(record)] };
}

function recordWrite(record: RescaleRecord): Write {
  return { type: 'put', key: rescaleKey(record.number), value: JSON.stringify(record) };
}
