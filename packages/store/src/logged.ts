import {
  assert,
  type Ballot,
  EMPTY,
  type GroupId,
  type GroupKey,
  PAGE_BYTES,
  type PolicyId,
  type Sequence,
} from '@webdfs/base';
import { FLAG, KIND, type LogEntry, type LogKind, REQUEST_ID_BYTES } from './entry.ts';
import { align8, type EntryFields, type EntryHead, headBytesOf, STORED_FLAG, ungrouped } from './entry-format.ts';

const ZEROS = new Uint8Array(PAGE_BYTES);

/** Fates of an entry that was handed to a lane. */
export interface LaneAnswer {
  /** The bytes are in the file, though perhaps not on stable storage. */
  written?(): void;
  /** An `fdatasync` that covers it has succeeded. */
  durable(): void;
  failed(error: unknown): void;
}

/**
 * One entry on its way from its arrival to its row: what a lane writes, what waits for its commit, what is applied.
 * Where it lies is known once a lane has placed it, or from the scan that found it.
 */
export class Logged implements EntryFields {
  readonly kind: number;
  readonly flags: number;
  readonly policy: PolicyId;
  readonly group: GroupId;
  readonly tenure: number;
  readonly sequence: Sequence;
  readonly ballot: Ballot;
  readonly commit: Sequence;
  readonly timeMs: number;
  readonly timeCount: number;
  readonly hashHigh: number;
  readonly hashLow: number;
  readonly key: Uint8Array;
  meta: Uint8Array;
  headBytes: number;
  readonly bodyBytes: number;
  entryBytes: number;
  /** Emptied for records once they are durable: only blocks and notes are applied from their bodies. */
  body: Uint8Array;
  sums: Uint32Array;
  volume = 0;
  place = 0;
  /** On stable storage, and since when (`Clock.monotonic()`). */
  durable = false;
  durableMs = 0;
  /** Durable, and everything before it in its group too: its author was told. */
  acknowledged = false;
  /** The index knows of it, or need not: `v.applied` may pass it. */
  settled = false;
  /** Void by a mark that is not durable yet: until it is, a crash brings the entry back. */
  voiding = false;
  /** A `q` row of it was written. */
  queued = false;
  /** The body on disk does not fit its sums. */
  damaged = false;
  /** The body lies in pages that a direct write may come from. */
  paged = false;
  answer: LaneAnswer | undefined;
  /** Settles as the author's promise does; a repeat of the entry is given the same. */
  done: Promise<void> | undefined;

  /** @param more  flags to add, and the tenure in place of that of `fields` */
  constructor(
    fields: Omit<EntryFields, 'tenure'> & { readonly tenure?: number },
    parts: { key: Uint8Array; meta: Uint8Array; body: Uint8Array; sums: Uint32Array; bodyBytes?: number },
    more?: { readonly flags: number; readonly tenure: number },
  ) {
    this.kind = fields.kind;
    this.flags = fields.flags | (more?.flags ?? 0);
    this.policy = fields.policy as PolicyId;
    this.group = fields.group as GroupId;
    this.tenure = more?.tenure ?? fields.tenure ?? 0;
    this.sequence = fields.sequence;
    this.ballot = fields.ballot;
    this.commit = fields.commit;
    this.timeMs = fields.timeMs;
    this.timeCount = fields.timeCount;
    this.hashHigh = fields.hashHigh;
    this.hashLow = fields.hashLow;
    this.key = parts.key;
    this.meta = parts.meta;
    this.body = parts.body;
    this.sums = parts.sums;
    this.bodyBytes = parts.bodyBytes ?? parts.body.length;
    this.headBytes = headBytesOf(parts.key.length, parts.meta.length, this.bodyBytes);
    this.entryBytes = this.headBytes + align8(this.bodyBytes);
  }

  /** Gives an entry without meta so many zeros for one (a multiple of 8): what they are good for is where its body begins. */
  pad(count: number): void {
    assert(this.meta.length === 0 && count % 8 === 0 && count < ZEROS.length, 'an entry is padded once');
    this.meta = ZEROS.subarray(0, count);
    this.headBytes += count;
    this.entryBytes += count;
  }
}

export const NO_SUMS = new Uint32Array(0);

/** A SYNC_MARK: proves by its own commit that what went before it is durable. */
export function syncMark(timeMs: number): Logged {
  return new Logged(ungrouped(KIND.SYNC_MARK, timeMs), { key: EMPTY, meta: EMPTY, body: EMPTY, sums: NO_SUMS });
}

/** A GROUP_MARK; its number stands where other entries have their sequence. */
export function groupMark(
  group: GroupKey & { readonly tenure: number; readonly commit: Sequence },
  number: number,
  timeMs: number,
  meta: Uint8Array,
): Logged {
  const { policy, group: id, tenure, commit } = group;
  const fields = { ...ungrouped(KIND.GROUP_MARK, timeMs), policy, group: id, tenure, commit, sequence: number };
  return new Logged(fields, { key: EMPTY, meta, body: EMPTY, sums: NO_SUMS });
}

/** Kinds with a place in a group's log. */
export function isNumbered(kind: number): kind is LogKind {
  return (
    kind === KIND.RECORD ||
    kind === KIND.TOMBSTONE ||
    kind === KIND.BLOCK ||
    kind === KIND.BLOCK_GONE ||
    kind === KIND.GROUP_ENTRY
  );
}

/** Whether an entry takes something away, so that it must outlive older copies of what it took (compaction, rule 2). */
export function actsAsTombstone(entry: { readonly kind: number; readonly flags: number }): boolean {
  if (entry.kind === KIND.TOMBSTONE || entry.kind === KIND.BLOCK_GONE) return true;
  if (entry.kind === KIND.RECORD) return (entry.flags & FLAG.CLOSES) !== 0;
  return entry.kind === KIND.GROUP_ENTRY && (entry.flags & FLAG.DELETE_MARKER) !== 0;
}

/** Written by compaction: a copy of an entry that a row named. */
export function isMoved(entry: { readonly flags: number }): boolean {
  return (entry.flags & STORED_FLAG.MOVED) !== 0;
}

/** Written by `install`: applied at once, never pending. */
export function isInstalled(entry: { readonly flags: number }): boolean {
  return (entry.flags & STORED_FLAG.INSTALLED) !== 0;
}

/** The flags as the entry's author set them. */
export function authorFlags(flags: number): number {
  return flags & ~(STORED_FLAG.INSTALLED | STORED_FLAG.MOVED);
}

/** The request that caused an entry; undefined if none. A view. */
export function requestIdOf(meta: Uint8Array): Uint8Array | undefined {
  if (meta.length < REQUEST_ID_BYTES) return undefined;
  for (let i = 0; i < REQUEST_ID_BYTES; i++) if (meta[i] !== 0) return meta.subarray(0, REQUEST_ID_BYTES);
  return undefined;
}

/** An entry as its author made it, from what a volume holds. BLOCK keys lose the generation that the store added. */
export function toLogEntry(
  head: EntryHead,
  parts: { key: Uint8Array; meta: Uint8Array; body: Uint8Array; sums: Uint32Array },
): LogEntry {
  return {
    policy: head.policy,
    group: head.group,
    kind: head.kind as LogKind,
    flags: authorFlags(head.flags),
    sequence: head.sequence,
    ballot: head.ballot,
    commit: head.commit,
    timeMs: head.timeMs,
    timeCount: head.timeCount,
    hashHigh: head.hashHigh,
    hashLow: head.hashLow,
    key: head.kind === KIND.BLOCK ? parts.key.subarray(0, parts.key.length - 4) : parts.key,
    meta: parts.meta,
    body: parts.body,
    sums: parts.sums,
  };
}
