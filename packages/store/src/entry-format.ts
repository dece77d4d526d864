import { assert, crc32c, CHUNK_BYTES, type GroupId, type PolicyId } from '@webdfs/base';
import { FLAG, KIND } from './entry.ts';
import { MAX_KEY_BYTES, MAX_META_BYTES, MAX_PIECE_BYTES } from './limits.ts';
import { viewPart } from './plain-bytes.ts';

/**
 * Head of an entry, little-endian; the body follows, then zeros to a multiple of 8. docs/formats/volume.md has the worked example.
 *
 * ```
 * offset  size  field
 *      0     4  magic      WDE1
 *      4     4  checksum   CRC-32C of bytes 8..headBytes−1, continued from the volume's salt
 *      8     1  version    1
 *      9     1  kind
 *     10     2  flags
 *     12     4  headBytes  align8(96 + keyBytes + metaBytes + 4·⌈bodyBytes / 65 536⌉)
 *     16     4  bodyBytes  0..1 048 576
 *     20     2  keyBytes   0..2 048
 *     22     2  policy
 *     24     4  metaBytes  0..16 384
 *     28     4  group
 *     32     4  volume     this volume
 *     36     4  place      own offset ÷ 8
 *     40     4  durable    offset ÷ 8 below which the file was on stable storage when this head was made; ≤ place
 *     44     4  tenure     how often this node had dropped the group before
 *     48     8  sequence
 *     56     8  ballot
 *     64     8  commit     the group's commit point known at that moment
 *     72     8  time       48 bit ms, 16 bit count (low)
 *     80     8  keyHash
 *     88     8  zero
 *     96     k  key
 *      …     m  meta
 *      …    4n  CRC-32C of each 65 536 bytes of the body
 *      …   0–7  zeros
 * ```
 */
export interface EntryFields {
  readonly kind: number;
  readonly flags: number;
  readonly policy: number;
  readonly group: number;
  readonly tenure: number;
  readonly sequence: number;
  readonly ballot: number;
  readonly commit: number;
  readonly timeMs: number;
  readonly timeCount: number;
  readonly hashHigh: number;
  readonly hashLow: number;
}

/** A decoded head. Places are in bytes. */
export interface EntryHead extends EntryFields {
  readonly policy: PolicyId;
  readonly group: GroupId;
  readonly headBytes: number;
  readonly bodyBytes: number;
  readonly keyBytes: number;
  readonly metaBytes: number;
  readonly volume: number;
  readonly place: number;
  readonly durable: number;
}

/** Flags the store sets itself and strips when it gives an entry back. */
export const STORED_FLAG = {
  /** Written by `install`: applied at once, whatever the group's commit point. */
  INSTALLED: 0x4000,
  MOVED: FLAG.MOVED,
} as const;

export const ENTRY_HEAD_BYTES = 96;
export const SEAL_BYTES = 104;

const MAGIC = 0x31454457;
const VERSION = 1;
const KNOWN_FLAGS =
  FLAG.LATEST_ONLY | FLAG.DELETE_MARKER | FLAG.COMPRESSED | FLAG.CLOSES | FLAG.MOVED | STORED_FLAG.INSTALLED;
const MAGIC_BYTES = Uint8Array.of(0x57, 0x44, 0x45, 0x31);
const HIGH = 4_294_967_296;

export function align8(count: number): number {
  return Math.ceil(count / 8) * 8;
}

export function chunkCount(bodyBytes: number): number {
  return Math.ceil(bodyBytes / CHUNK_BYTES);
}

export function headBytesOf(keyBytes: number, metaBytes: number, bodyBytes: number): number {
  return align8(ENTRY_HEAD_BYTES + keyBytes + metaBytes + 4 * chunkCount(bodyBytes));
}

/** Bytes of an entry in its volume: head, body, padding. */
export function entryBytesOf(head: { readonly headBytes: number; readonly bodyBytes: number }): number {
  return head.headBytes + align8(head.bodyBytes);
}

/**
 * Writes a head into `target` at `offset`, all but magic, checksum, volume, place and durable, which `stampHead` adds.
 * The range must be zero where the format says so; the caller has checked the limits.
 */
export function writeHead(
  target: Buffer,
  offset: number,
  fields: EntryFields,
  parts: {
    readonly key: Uint8Array;
    readonly meta: Uint8Array;
    readonly sums: Uint32Array;
    readonly bodyBytes: number;
  },
): number {
  const { key, meta, sums, bodyBytes } = parts;
  const headBytes = headBytesOf(key.length, meta.length, bodyBytes);
  assert(sums.length === chunkCount(bodyBytes), 'an entry has one sum per chunk of its body');
  target[offset + 8] = VERSION;
  target[offset + 9] = fields.kind;
  target.writeUInt16LE(fields.flags, offset + 10);
  target.writeUInt32LE(headBytes, offset + 12);
  target.writeUInt32LE(bodyBytes, offset + 16);
  target.writeUInt16LE(key.length, offset + 20);
  target.writeUInt16LE(fields.policy, offset + 22);
  target.writeUInt32LE(meta.length, offset + 24);
  target.writeUInt32LE(fields.group, offset + 28);
  target.writeUInt32LE(fields.tenure, offset + 44);
  writeU53(target, offset + 48, fields.sequence);
  writeU53(target, offset + 56, fields.ballot);
  writeU53(target, offset + 64, fields.commit);
  target.writeUInt16LE(fields.timeCount, offset + 72);
  target.writeUIntLE(fields.timeMs, offset + 74, 6);
  target.writeUInt32LE(fields.hashLow, offset + 80);
  target.writeUInt32LE(fields.hashHigh, offset + 84);
  writeU53(target, offset + 88, 0);
  target.set(key, offset + ENTRY_HEAD_BYTES);
  let at = offset + ENTRY_HEAD_BYTES + key.length;
  target.set(meta, at);
  at += meta.length;
  for (let i = 0; i < sums.length; i++, at += 4) target.writeUInt32LE(sums[i]!, at);
  target.fill(0, at, offset + headBytes);
  return headBytes;
}

/** Completes a head in place with where it stands, and its checksum. `place` and `durable` in bytes. */
export function stampHead(
  target: Buffer,
  offset: number,
  headBytes: number,
  where: { readonly salt: number; readonly volume: number; readonly place: number; readonly durable: number },
): void {
  assert(where.place % 8 === 0, 'places are multiples of 8');
  assert(where.durable <= where.place, 'durable is at most the own place');
  target.writeUInt32LE(MAGIC, offset);
  target.writeUInt32LE(where.volume, offset + 32);
  target.writeUInt32LE(where.place / 8, offset + 36);
  target.writeUInt32LE(where.durable / 8, offset + 40);
  target.writeUInt32LE(crc32c(target.subarray(offset + 8, offset + headBytes), where.salt), offset + 4);
}

function writeU53(target: Buffer, offset: number, value: number): void {
  target.writeUInt32LE(value >>> 0, offset);
  target.writeUInt32LE(Math.floor(value / HIGH), offset + 4);
}

function readU53(source: Buffer, offset: number): number {
  return source.readUInt32LE(offset + 4) * HIGH + source.readUInt32LE(offset);
}

/** Where a head is read from, and where it must say that it stands. */
export interface HeadPlace {
  readonly volume: number;
  readonly salt: number;
  /** In the file, bytes. */
  readonly place: number;
}

/**
 * The bytes of a head that begins at `offset` as its lengths say, or 0 if they fit no head of version 1.
 * Checks lengths only: tells a scanner how much it must have in memory before `readHead`.
 */
export function headBytesAt(source: Buffer, offset: number): number {
  if (offset + ENTRY_HEAD_BYTES > source.length) return 0;
  if (source.readUInt32LE(offset) !== MAGIC || source[offset + 8] !== VERSION) return 0;
  const bodyBytes = source.readUInt32LE(offset + 16);
  const keyBytes = source.readUInt16LE(offset + 20);
  const metaBytes = source.readUInt32LE(offset + 24);
  if (bodyBytes > MAX_PIECE_BYTES || keyBytes > MAX_KEY_BYTES || metaBytes > MAX_META_BYTES) return 0;
  const headBytes = source.readUInt32LE(offset + 12);
  return headBytes === headBytesOf(keyBytes, metaBytes, bodyBytes) ? headBytes : 0;
}

/** A head whose every check holds, else undefined: magic, version, kind, flags, lengths, checksum, volume, place, durable. */
export function readHead(source: Buffer, offset: number, where: HeadPlace): EntryHead | undefined {
  const headBytes = headBytesAt(source, offset);
  if (headBytes === 0 || offset + headBytes > source.length) return undefined;
  if (source.readUInt32LE(offset + 32) !== where.volume) return undefined;
  if (source.readUInt32LE(offset + 36) * 8 !== where.place) return undefined;
  if (crc32c(source.subarray(offset + 8, offset + headBytes), where.salt) !== source.readUInt32LE(offset + 4)) {
    return undefined;
  }
  const kind = source[offset + 9]!;
  const flags = source.readUInt16LE(offset + 10);
  const durable = source.readUInt32LE(offset + 40) * 8;
  if (kind < KIND.RECORD || kind > KIND.GROUP_ENTRY || (flags & ~KNOWN_FLAGS) !== 0) return undefined;
  if (durable > where.place) return undefined;
  return {
    kind,
    flags,
    headBytes,
    bodyBytes: source.readUInt32LE(offset + 16),
    keyBytes: source.readUInt16LE(offset + 20),
    policy: source.readUInt16LE(offset + 22) as PolicyId,
    metaBytes: source.readUInt32LE(offset + 24),
    group: source.readUInt32LE(offset + 28) as GroupId,
    volume: where.volume,
    place: where.place,
    durable,
    tenure: source.readUInt32LE(offset + 44),
    sequence: readU53(source, offset + 48),
    ballot: readU53(source, offset + 56),
    commit: readU53(source, offset + 64),
    timeCount: source.readUInt16LE(offset + 72),
    timeMs: source.readUIntLE(offset + 74, 6),
    hashLow: source.readUInt32LE(offset + 80),
    hashHigh: source.readUInt32LE(offset + 84),
  };
}

/** The next place at or after `from` where the magic stands at a multiple of 8 of the file; −1 if none. `base` is the file offset of `source[0]`. */
export function findMagic(source: Buffer, from: number, base: number): number {
  for (let at = source.indexOf(MAGIC_BYTES, from); at >= 0; at = source.indexOf(MAGIC_BYTES, at + 1)) {
    if ((base + at) % 8 === 0) return at;
  }
  return -1;
}

export function keyOf(source: Uint8Array, offset: number, head: EntryHead): Uint8Array {
  return viewPart(source, offset + ENTRY_HEAD_BYTES, offset + ENTRY_HEAD_BYTES + head.keyBytes);
}

export function metaOf(source: Uint8Array, offset: number, head: EntryHead): Uint8Array {
  const from = offset + ENTRY_HEAD_BYTES + head.keyBytes;
  return viewPart(source, from, from + head.metaBytes);
}

export function sumsOf(source: Buffer, offset: number, head: EntryHead): Uint32Array {
  const sums = new Uint32Array(chunkCount(head.bodyBytes));
  let at = offset + ENTRY_HEAD_BYTES + head.keyBytes + head.metaBytes;
  for (let i = 0; i < sums.length; i++, at += 4) sums[i] = source.readUInt32LE(at);
  return sums;
}

/** Whether every chunk of `body` has the sum that the table says. */
export function bodyFits(body: Uint8Array, sums: Uint32Array): boolean {
  if (sums.length !== chunkCount(body.length)) return false;
  if (sums.length === 1) return crc32c(body) === sums[0];
  for (let i = 0; i < sums.length; i++) {
    if (crc32c(body.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES)) !== sums[i]) return false;
  }
  return true;
}

const NO_SUMS = new Uint32Array(0);
const NOTHING = new Uint8Array(0);

/** The SEAL of a finished file: entries are valid below `end`, all of them durable. Its place is the file's last 104 bytes. */
export function packSeal(where: { salt: number; volume: number; place: number; end: number }): Uint8Array {
  const bytes = Buffer.alloc(SEAL_BYTES);
  const meta = Buffer.alloc(8);
  writeU53(meta, 0, where.end);
  writeHead(bytes, 0, UNGROUPED_SEAL, { key: NOTHING, meta, sums: NO_SUMS, bodyBytes: 0 });
  stampHead(bytes, 0, SEAL_BYTES, { ...where, durable: where.end });
  return bytes;
}

/** The `end` of a SEAL in `source`, or undefined if it is none. */
export function unpackSeal(source: Uint8Array, where: HeadPlace): number | undefined {
  const bytes = Buffer.from(source.buffer, source.byteOffset, source.length);
  const head = readHead(bytes, 0, where);
  if (head === undefined || head.kind !== KIND.SEAL || head.metaBytes !== 8 || head.keyBytes !== 0) return undefined;
  const end = readU53(bytes, ENTRY_HEAD_BYTES);
  return end <= where.place ? end : undefined;
}

/** Fields of an entry outside every group. */
export function ungrouped(kind: number, timeMs: number): EntryFields {
  return {
    kind,
    flags: 0,
    policy: 0,
    group: 0,
    tenure: 0,
    sequence: 0,
    ballot: 0,
    commit: 0,
    timeMs,
    timeCount: 0,
    hashHigh: 0,
    hashLow: 0,
  };
}

const UNGROUPED_SEAL = ungrouped(KIND.SEAL, 0);
