import {
  CHUNK_BYTES,
  chunkSums,
  EMPTY,
  type GroupKey,
  PAGE_BYTES,
  type SeededRandom,
  utf8,
  Writer,
} from '@webdfs/base';
import { BLOCK_ID_BYTES, FLAG, KIND, type LogEntry, REQUEST_ID_BYTES, SUMMARY_BYTES } from '../entry.ts';

/** Few names, so that histories meet themselves. */
const NAMES = 7;
const NOTE_NAMES = 4;
/** What follows a name of a key that another key of the same placement may close. */
const OPEN_SUFFIX = '#open';

/** Where an entry stands in its group's log, and when it was made. */
export interface Position {
  readonly group: GroupKey;
  readonly sequence: number;
  readonly ballot: number;
  readonly commit: number;
  readonly timeMs: number;
}

/** A placement hash of a name: a key and the one it may close have the same. */
function hashOf(name: string): { hashHigh: number; hashLow: number } {
  const base = name.replace(OPEN_SUFFIX, '');
  let hash = 17;
  for (const byte of utf8(base)) hash = (Math.imul(hash, 31) + byte) >>> 0;
  return { hashHigh: Math.imul(hash, 0x9e3779b1) >>> 0, hashLow: hash };
}

/** Bucket and name: a key belongs to one group. */
export function keyNamed(group: GroupKey, name: string): Uint8Array {
  const bucket = new Uint8Array(4);
  new DataView(bucket.buffer).setUint32(0, group.group + 1);
  return new Writer().raw(bucket).raw(utf8(name)).take();
}

/** Every record key that entries of this group may have. */
export function allKeys(group: GroupKey): Uint8Array[] {
  const names = Array.from({ length: NAMES }, (_, i) => [`n${i}`, `n${i}${OPEN_SUFFIX}`]).flat();
  return names.map((name) => keyNamed(group, name));
}

export function allNotes(): Uint8Array[] {
  return Array.from({ length: NOTE_NAMES }, (_, i) => utf8(`\u0001note${i}`));
}

function someName(random: SeededRandom): string {
  return `n${random.below(NAMES)}${random.below(4) === 0 ? OPEN_SUFFIX : ''}`;
}

function someSize(random: SeededRandom): number {
  const kind = random.below(40);
  if (kind < 6) return 0;
  if (kind < 34) return random.below(500);
  return kind < 39 ? random.below(4000) : CHUNK_BYTES + random.below(9000);
}

/** Bytes that often look like entries: volumes must not be fooled by what users store. */
export function someBytes(random: SeededRandom, size: number): Uint8Array {
  const bytes = random.bytes(Math.min(size, 4000));
  const whole = new Uint8Array(size);
  for (let at = 0; at < size; at += bytes.length) whole.set(bytes.subarray(0, Math.min(bytes.length, size - at)), at);
  if (random.below(4) === 0) for (let at = 0; at + 8 < size; at += 64) whole.set([0x57, 0x44, 0x45, 0x31], at);
  return whole;
}

function entryOf(
  position: Position,
  parts: { kind: LogEntry['kind']; flags?: number; key: Uint8Array; meta: Uint8Array; body?: Uint8Array; hash: string },
): LogEntry {
  const { group, sequence, ballot, commit, timeMs } = position;
  const { kind, flags = 0, key, meta, body = EMPTY } = parts;
  const sums = chunkSums(body);
  const { hashHigh, hashLow } = hashOf(parts.hash);
  return {
    ...group,
    kind,
    flags,
    sequence,
    ballot,
    commit,
    timeMs,
    timeCount: 3,
    hashHigh,
    hashLow,
    key,
    meta,
    body,
    sums,
  };
}

function metaOf(random: SeededRandom, closes?: Uint8Array): Uint8Array {
  const meta = new Writer().raw(random.bytes(REQUEST_ID_BYTES)).raw(random.bytes(SUMMARY_BYTES));
  if (closes !== undefined) meta.u16(closes.length).raw(closes);
  return meta.raw(random.bytes(random.below(20))).take();
}

export function aRecord(random: SeededRandom, position: Position, closing?: 'closes nothing'): LogEntry {
  const name = someName(random);
  const closes = closing === undefined && !name.endsWith(OPEN_SUFFIX) && random.below(3) === 0;
  const closed = closes ? keyNamed(position.group, `${name}${OPEN_SUFFIX}`) : undefined;
  return entryOf(position, {
    kind: KIND.RECORD,
    flags: FLAG.LATEST_ONLY | (closes ? FLAG.CLOSES : 0),
    key: keyNamed(position.group, name),
    meta: metaOf(random, closed),
    body: someBytes(random, someSize(random)),
    hash: name,
  });
}

export function aTombstone(random: SeededRandom, position: Position): LogEntry {
  const name = someName(random);
  const key = keyNamed(position.group, name);
  return entryOf(position, { kind: KIND.TOMBSTONE, key, meta: random.bytes(REQUEST_ID_BYTES), hash: name });
}

export function aNote(random: SeededRandom, position: Position): LogEntry {
  const key = allNotes()[random.below(NOTE_NAMES)]!;
  const removed = random.below(4) === 0;
  return entryOf(position, {
    kind: KIND.GROUP_ENTRY,
    flags: removed ? FLAG.DELETE_MARKER : 0,
    key,
    meta: random.bytes(REQUEST_ID_BYTES),
    body: removed ? EMPTY : someBytes(random, random.below(200)),
    hash: 'note',
  });
}

export function aBlockId(random: SeededRandom): Uint8Array {
  return random.bytes(BLOCK_ID_BYTES);
}

/** Mostly small; now and then written directly, or more than one piece of 64 KiB. */
export function aBlockSize(random: SeededRandom): number {
  const kind = random.below(12);
  if (kind === 0) return 0;
  if (kind > 6 && kind < 10) return 4 * PAGE_BYTES + random.below(3 * PAGE_BYTES);
  return kind < 10 ? 1 + random.below(5000) : CHUNK_BYTES + random.below(2 * CHUNK_BYTES);
}

export function aBlock(random: SeededRandom, position: Position, id: Uint8Array, bytes: Uint8Array): LogEntry {
  const body = new Writer().u32(bytes.length);
  for (const sum of chunkSums(bytes)) body.u32(sum);
  const meta = random.bytes(REQUEST_ID_BYTES);
  return entryOf(position, { kind: KIND.BLOCK, key: id, meta, body: body.take(), hash: `block${id[0]}` });
}

export function aBlockGone(random: SeededRandom, position: Position, id: Uint8Array): LogEntry {
  const meta = random.bytes(REQUEST_ID_BYTES);
  return entryOf(position, { kind: KIND.BLOCK_GONE, key: id, meta, hash: `block${id[0]}` });
}
