import type { Ballot, GroupKey, Sequence } from '@webdfs/base';

/** Kinds of entries in a volume; docs/formats/volume.md has the table. */
export const KIND = {
  RECORD: 1,
  TOMBSTONE: 2,
  PIECE: 3,
  BLOCK: 4,
  BLOCK_GONE: 5,
  PATCH: 6,
  GROUP_MARK: 7,
  SYNC_MARK: 8,
  SEAL: 9,
  GROUP_ENTRY: 10,
} as const;

/** The kinds that have a place in a group's log. */
export type LogKind =
  | typeof KIND.RECORD
  | typeof KIND.TOMBSTONE
  | typeof KIND.BLOCK
  | typeof KIND.BLOCK_GONE
  | typeof KIND.GROUP_ENTRY;

/** Bits of an entry's `flags`. */
export const FLAG = {
  /** The key keeps only its newest version: this entry replaces earlier ones. */
  LATEST_ONLY: 1,
  DELETE_MARKER: 2,
  COMPRESSED: 4,
  /** Also removes the row of another key of the same group, in one step: `meta` names it (see `closesOf`). */
  CLOSES: 8,
  /** Written by compaction. */
  MOVED: 0x8000,
} as const;

/** `meta` of every numbered entry begins with the id of the request that caused it (all zero: none). */
export const REQUEST_ID_BYTES = 16;
/** After it, a RECORD has a summary that is copied into its index row as it is, so that listings read no entries. */
export const SUMMARY_BYTES = 32;
/** A block id: attempt (16 bytes, its first 6 the birth time in ms, big-endian) and number (u32 big-endian). */
export const BLOCK_ID_BYTES = 20;

/**
 * One entry of a group's log, as it travels between members and as the store gives it back.
 *
 * - RECORD, TOMBSTONE: `key` is the bucket (u32 big-endian) and the object's key.
 *   RECORD meta: request id 16 | summary 32 | with flag CLOSES: u16 LE length and the closed key | the owner's own bytes.
 * - BLOCK: `key` is the block id; `body` is `size u32 LE | CRC-32C of each 64 KiB of the block, u32 LE each`. The bytes
 *   themselves were staged before. meta: request id 16 | what the owner wants to find again.
 * - BLOCK_GONE: `key` is the block id.
 * - GROUP_ENTRY: `key` is the note's name (first byte its kind), `body` its value; applied to a note of the group.
 */
export interface LogEntry extends GroupKey {
  readonly kind: LogKind;
  readonly flags: number;
  readonly sequence: Sequence;
  readonly ballot: Ballot;
  /** The commit point its author knew; of an entry that comes back from a store, at most what that had applied then. */
  readonly commit: Sequence;
  /** Hybrid clock: what Last-Modified shows (ms since 1970), and a count that orders within the millisecond (u16). */
  readonly timeMs: number;
  readonly timeCount: number;
  /** The 64-bit placement hash of the key, as two unsigned words. */
  readonly hashHigh: number;
  readonly hashLow: number;
  readonly key: Uint8Array;
  readonly meta: Uint8Array;
  readonly body: Uint8Array;
  /** CRC-32C of each `CHUNK_BYTES` of `body`: verified by whoever receives the entry. */
  readonly sums: Uint32Array;
}
