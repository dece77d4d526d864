import { assert, type GroupId, type GroupKey, type PolicyId, WebdfsError } from '@webdfs/base';
import { BLOCK_ID_BYTES, SUMMARY_BYTES } from './entry.ts';
import { copyOf, viewPart } from './plain-bytes.ts';
import { Slab } from './slab.ts';

/**
 * Rows of the index that name entries: records, the order of a group, blocks and their pieces, tombstones to forget.
 * Numbers in keys are big-endian, so that they sort; in values little-endian. docs/formats/index.md has the tables.
 */

export const ROW = {
  RECORD: 0x72, // r
  ORDER: 0x68, // h
  BLOCK: 0x62, // b
  PIECE: 0x70, // p
  PENDING: 0x71, // q
  GROUP: 0x67, // g
  VOLUME: 0x76, // v
  NOTE: 0x6e, // n
  TOMBSTONE: 0x74, // t
  DAMAGE: 0x64, // d
  META: 0x6d, // m
  REQUESTS: 0x69, // i
} as const;

export const GROUP_KEY_BYTES = 6;
const HIGH = 4_294_967_296;

/** Refuses a row whose length cannot be: the index is broken, and will be rebuilt. */
export function checkRow(holds: boolean, what: string): void {
  if (!holds) throw new WebdfsError('CORRUPT', `index row does not decode: ${what}`);
}

export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const slab = new Slab({ size: 32 * 1024, most: 4 * 1024, zeroed: true });

/** A buffer of zeros for a row. It shares memory with other rows: copy what is kept for longer than a batch. */
export function rowBuffer(size: number): Buffer {
  return slab.take(size);
}

export function writeU53LE(target: Buffer, value: number, offset: number): void {
  target.writeUInt32LE(value >>> 0, offset);
  target.writeUInt32LE(Math.floor(value / HIGH), offset + 4);
}

export function readU53LE(source: Buffer, offset: number): number {
  return source.readUInt32LE(offset + 4) * HIGH + source.readUInt32LE(offset);
}

/** The letter and a group: prefix of everything a letter has of it. */
export function groupPrefix(letter: number, group: GroupKey): Buffer {
  const key = rowBuffer(1 + GROUP_KEY_BYTES);
  writeGroupKey(key, letter, group);
  return key;
}

export function writeGroupKey(target: Buffer, letter: number, group: GroupKey): void {
  target[0] = letter;
  target.writeUInt16BE(group.policy, 1);
  target.writeUInt32BE(group.group, 3);
}

export function readGroupKey(key: Buffer): GroupKey {
  return { policy: key.readUInt16BE(1) as PolicyId, group: key.readUInt32BE(3) as GroupId };
}

/** The first key after all keys that begin with `prefix`; undefined if there is none. */
export function afterPrefix(prefix: Uint8Array): Uint8Array | undefined {
  let length = prefix.length;
  while (length > 0 && prefix[length - 1] === 0xff) length--;
  if (length === 0) return undefined;
  // not `slice` as it is: a Buffer's is a view, and the prefix itself would be raised
  const next = new Uint8Array(prefix.subarray(0, length));
  next[length - 1]! += 1;
  return next;
}

// ---- r: the newest version of a record ----

/** Where an entry lies. Places are in bytes. */
export interface EntryPlace {
  readonly volume: number;
  readonly place: number;
  readonly entryBytes: number;
}

export interface RecordValue extends EntryPlace, GroupKey {
  readonly sequence: number;
  readonly flags: number;
  readonly timeMs: number;
  readonly hashHigh: number;
  readonly hashLow: number;
  readonly summary: Uint8Array;
}

export const RECORD_VALUE_BYTES = 72;

/** `r ‖ bucket u32 BE ‖ name`: `key` is both. */
export function recordRowKey(key: Uint8Array): Buffer {
  const row = rowBuffer(1 + key.length);
  row[0] = ROW.RECORD;
  row.set(key, 1);
  return row;
}

/** The bucket and name of a row key, a view. */
export function keyOfRecordRow(row: Uint8Array): Uint8Array {
  return viewPart(row, 1, row.length);
}

export function packRecord(value: RecordValue): Buffer {
  assert(value.summary.length === SUMMARY_BYTES, 'a summary has 32 bytes');
  const bytes = rowBuffer(RECORD_VALUE_BYTES);
  writePlace(bytes, value, 0);
  bytes.writeUIntLE(value.sequence, 12, 6);
  bytes.writeUInt16LE(value.flags, 18);
  bytes.writeUIntLE(value.timeMs, 20, 6);
  bytes.writeUInt16LE(value.policy, 26);
  bytes.writeUInt32LE(value.group, 28);
  bytes.writeUInt32LE(value.hashHigh, 32);
  bytes.writeUInt32LE(value.hashLow, 36);
  bytes.set(value.summary, 40);
  return bytes;
}

/** @throws CORRUPT */
export function unpackRecord(source: Uint8Array): RecordValue {
  checkRow(source.length === RECORD_VALUE_BYTES, `record row has ${source.length} bytes`);
  const bytes = viewOf(source);
  return {
    volume: bytes.readUInt32LE(0),
    place: bytes.readUInt32LE(4) * 8,
    entryBytes: bytes.readUInt32LE(8),
    sequence: bytes.readUIntLE(12, 6),
    flags: bytes.readUInt16LE(18),
    timeMs: bytes.readUIntLE(20, 6),
    policy: bytes.readUInt16LE(26) as PolicyId,
    group: bytes.readUInt32LE(28) as GroupId,
    hashHigh: bytes.readUInt32LE(32),
    hashLow: bytes.readUInt32LE(36),
    summary: viewPart(source, 40, 40 + SUMMARY_BYTES),
  };
}

export function writePlace(target: Buffer, place: EntryPlace, offset: number): void {
  assert(place.place % 8 === 0, 'places are multiples of 8');
  target.writeUInt32LE(place.volume, offset);
  target.writeUInt32LE(place.place / 8, offset + 4);
  target.writeUInt32LE(place.entryBytes, offset + 8);
}

export function readPlace(source: Buffer, offset: number): EntryPlace {
  return {
    volume: source.readUInt32LE(offset),
    place: source.readUInt32LE(offset + 4) * 8,
    entryBytes: source.readUInt32LE(offset + 8),
  };
}

// ---- h: the order of a group ----

export interface OrderKey extends GroupKey {
  readonly hashHigh: number;
  readonly hashLow: number;
  readonly key: Uint8Array;
}

export interface OrderValue {
  readonly sequence: number;
  readonly tombstone: boolean;
}

const ORDER_HEAD_BYTES = 15;

/** `h ‖ policy u16 BE ‖ group u32 BE ‖ hash u64 BE ‖ key`: one row per key, of its newest version or tombstone. */
export function orderRowKey(order: OrderKey): Buffer {
  const row = rowBuffer(ORDER_HEAD_BYTES + order.key.length);
  writeGroupKey(row, ROW.ORDER, order);
  row.writeUInt32BE(order.hashHigh, 7);
  row.writeUInt32BE(order.hashLow, 11);
  row.set(order.key, ORDER_HEAD_BYTES);
  return row;
}

export function unpackOrderKey(source: Uint8Array): OrderKey {
  checkRow(source.length >= ORDER_HEAD_BYTES, 'order row key is short');
  const row = viewOf(source);
  return {
    ...readGroupKey(row),
    hashHigh: row.readUInt32BE(7),
    hashLow: row.readUInt32BE(11),
    key: viewPart(source, ORDER_HEAD_BYTES, source.length),
  };
}

export function packOrder(value: OrderValue): Buffer {
  const bytes = rowBuffer(7);
  bytes.writeUIntLE(value.sequence, 0, 6);
  bytes[6] = value.tombstone ? 1 : 0;
  return bytes;
}

export function unpackOrder(source: Uint8Array): OrderValue {
  checkRow(source.length === 7, `order row has ${source.length} bytes`);
  return { sequence: viewOf(source).readUIntLE(0, 6), tombstone: source[6] === 1 };
}

// ---- b: a block ----

export interface PiecePlace {
  readonly volume: number;
  readonly place: number;
  readonly headBytes: number;
  /** Bytes of the block in this piece. */
  readonly length: number;
}

export interface BlockValue extends EntryPlace {
  readonly size: number;
  readonly sequence: number;
  readonly flags: number;
  readonly timeMs: number;
  readonly hashHigh: number;
  readonly hashLow: number;
  /** Tells the pieces of one staging from those of another. */
  readonly generation: number;
  /** In the order of the block's bytes; shorter than `size` if some were lost. */
  readonly pieces: readonly PiecePlace[];
  readonly sums: Uint32Array;
}

/** What is kept of a block that is gone, until its tombstone is forgotten. */
export interface BlockGone {
  readonly sequence: number;
  readonly timeMs: number;
}

const BLOCK_HEAD_BYTES = 48;
const PIECE_BYTES = 16;

export function blockRowKey(group: GroupKey, id: Uint8Array): Buffer {
  assert(id.length === BLOCK_ID_BYTES, 'a block id has 20 bytes');
  const row = rowBuffer(1 + GROUP_KEY_BYTES + BLOCK_ID_BYTES);
  writeGroupKey(row, ROW.BLOCK, group);
  row.set(id, 1 + GROUP_KEY_BYTES);
  return row;
}

export function unpackBlockKey(source: Uint8Array): GroupKey & { readonly id: Uint8Array } {
  checkRow(source.length === 1 + GROUP_KEY_BYTES + BLOCK_ID_BYTES, 'block row key has a wrong length');
  return { ...readGroupKey(viewOf(source)), id: viewPart(source, 1 + GROUP_KEY_BYTES, source.length) };
}

export function packBlock(value: BlockValue): Buffer {
  const { pieces, sums } = value;
  const bytes = rowBuffer(BLOCK_HEAD_BYTES + pieces.length * PIECE_BYTES + sums.length * 4);
  bytes.writeUInt16LE(value.flags, 2);
  bytes.writeUInt32LE(value.size, 4);
  bytes.writeUIntLE(value.sequence, 8, 6);
  bytes.writeUIntLE(value.timeMs, 14, 6);
  bytes.writeUInt32LE(value.hashHigh, 20);
  bytes.writeUInt32LE(value.hashLow, 24);
  writePlace(bytes, value, 28);
  bytes.writeUInt32LE(value.generation, 40);
  bytes.writeUInt32LE(pieces.length, 44);
  let at = BLOCK_HEAD_BYTES;
  for (const piece of pieces) {
    bytes.writeUInt32LE(piece.volume, at);
    bytes.writeUInt32LE(piece.place / 8, at + 4);
    bytes.writeUInt32LE(piece.headBytes, at + 8);
    bytes.writeUInt32LE(piece.length, at + 12);
    at += PIECE_BYTES;
  }
  for (const sum of sums) at = bytes.writeUInt32LE(sum, at);
  return bytes;
}

export function packBlockGone(value: BlockGone): Buffer {
  const bytes = rowBuffer(BLOCK_HEAD_BYTES);
  bytes[0] = 1;
  bytes.writeUIntLE(value.sequence, 8, 6);
  bytes.writeUIntLE(value.timeMs, 14, 6);
  return bytes;
}

/** Sequence of a block row, and whether the block is gone; cheap. */
export function blockState(source: Uint8Array): { sequence: number; gone: boolean } {
  checkRow(source.length >= BLOCK_HEAD_BYTES, `block row has ${source.length} bytes`);
  return { sequence: viewOf(source).readUIntLE(8, 6), gone: source[0] === 1 };
}

/** The row of a block, undefined if it says that the block is gone. @throws CORRUPT */
export function unpackBlock(source: Uint8Array): BlockValue | undefined {
  if (blockState(source).gone) return undefined;
  const bytes = viewOf(source);
  const size = bytes.readUInt32LE(4);
  const pieceCount = bytes.readUInt32LE(44);
  const sumCount = Math.ceil(size / 65_536);
  checkRow(
    source.length === BLOCK_HEAD_BYTES + pieceCount * PIECE_BYTES + sumCount * 4,
    'block row has a wrong length',
  );
  const pieces: PiecePlace[] = [];
  let at = BLOCK_HEAD_BYTES;
  for (let i = 0; i < pieceCount; i++, at += PIECE_BYTES) {
    pieces.push({
      volume: bytes.readUInt32LE(at),
      place: bytes.readUInt32LE(at + 4) * 8,
      headBytes: bytes.readUInt32LE(at + 8),
      length: bytes.readUInt32LE(at + 12),
    });
  }
  const sums = new Uint32Array(sumCount);
  for (let i = 0; i < sumCount; i++, at += 4) sums[i] = bytes.readUInt32LE(at);
  return {
    size,
    sequence: bytes.readUIntLE(8, 6),
    flags: bytes.readUInt16LE(2),
    timeMs: bytes.readUIntLE(14, 6),
    hashHigh: bytes.readUInt32LE(20),
    hashLow: bytes.readUInt32LE(24),
    ...readPlace(bytes, 28),
    generation: bytes.readUInt32LE(40),
    pieces,
    sums,
  };
}

// ---- p: a piece that no applied block names yet ----

/** Which bytes of which staging of which block a piece is: the key of its entry. */
export interface PieceKey {
  readonly id: Uint8Array;
  readonly generation: number;
  readonly offset: number;
}

export const PIECE_KEY_BYTES = BLOCK_ID_BYTES + 8;

/** The key of a PIECE entry: id 20, generation u32 BE, offset u32 BE. */
export function packPieceKey(key: PieceKey): Buffer {
  assert(key.id.length === BLOCK_ID_BYTES, 'a block id has 20 bytes');
  const bytes = rowBuffer(PIECE_KEY_BYTES);
  bytes.set(key.id, 0);
  bytes.writeUInt32BE(key.generation, BLOCK_ID_BYTES);
  bytes.writeUInt32BE(key.offset, BLOCK_ID_BYTES + 4);
  return bytes;
}

/** Undefined if the bytes are no piece's key. */
export function unpackPieceKey(source: Uint8Array): PieceKey | undefined {
  if (source.length !== PIECE_KEY_BYTES) return undefined;
  const bytes = viewOf(source);
  return {
    id: copyOf(source, 0, BLOCK_ID_BYTES),
    generation: bytes.readUInt32BE(BLOCK_ID_BYTES),
    offset: bytes.readUInt32BE(BLOCK_ID_BYTES + 4),
  };
}

/** `p ‖ key of the PIECE entry`. */
export function pieceRowKey(pieceKey: Uint8Array): Buffer {
  const row = rowBuffer(1 + pieceKey.length);
  row[0] = ROW.PIECE;
  row.set(pieceKey, 1);
  return row;
}

export function packPiece(group: GroupKey, piece: PiecePlace): Buffer {
  const bytes = rowBuffer(24);
  bytes.writeUInt32LE(piece.volume, 0);
  bytes.writeUInt32LE(piece.place / 8, 4);
  bytes.writeUInt32LE(piece.headBytes, 8);
  bytes.writeUInt32LE(piece.length, 12);
  bytes.writeUInt16LE(group.policy, 16);
  bytes.writeUInt32LE(group.group, 18);
  return bytes;
}

export function unpackPiece(source: Uint8Array): PiecePlace & GroupKey {
  checkRow(source.length === 24, `piece row has ${source.length} bytes`);
  const bytes = viewOf(source);
  return {
    volume: bytes.readUInt32LE(0),
    place: bytes.readUInt32LE(4) * 8,
    headBytes: bytes.readUInt32LE(8),
    length: bytes.readUInt32LE(12),
    policy: bytes.readUInt16LE(16) as PolicyId,
    group: bytes.readUInt32LE(18) as GroupId,
  };
}

// ---- t: tombstones by age ----

/** `t ‖ time u48 BE ‖ key of the h, b or n row that says "gone"`; value: the sequence it had then. */
export function tombstoneRowKey(timeMs: number, rowKey: Uint8Array): Buffer {
  const row = rowBuffer(7 + rowKey.length);
  row[0] = ROW.TOMBSTONE;
  row.writeUIntBE(timeMs, 1, 6);
  row.set(rowKey, 7);
  return row;
}

export function unpackTombstoneKey(source: Uint8Array): { timeMs: number; rowKey: Uint8Array } {
  checkRow(source.length > 8, 'tombstone row key is short');
  return { timeMs: viewOf(source).readUIntBE(1, 6), rowKey: viewPart(source, 7, source.length) };
}

export function packSequence(sequence: number): Buffer {
  const bytes = rowBuffer(6);
  bytes.writeUIntLE(sequence, 0, 6);
  return bytes;
}

export function unpackSequence(source: Uint8Array): number {
  checkRow(source.length === 6, 'sequence has a wrong length');
  return viewOf(source).readUIntLE(0, 6);
}
