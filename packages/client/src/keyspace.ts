import { compareBytes, concat, WebdfsError } from '@webdfs/base';
import { MAX_KEY_BYTES, MAX_PART_NUMBER, MAX_ROW_KEY_BYTES } from './limits.ts';

/*
 * The keys of records: bucket id (u32 big-endian), then bytes. docs/formats/record.md has the table.
 *
 *   bucket 0                 bucket/<name>, and the counter of bucket ids
 *   bucket b                 the key's bytes
 *   bucket b | 0x80000000    'o' escaped(key) 00 00 upload id              an open upload
 *                            'p' escaped(key) 00 00 upload id number u16   a part of it
 *
 * escaped: 00 becomes 00 01. Then no key's rows stand between another's, and the order of the rows is that of the keys.
 */

export const SYSTEM_BUCKET = 0;
/** The last id is left out so that every hidden bucket has a key behind it. */
export const MAX_BUCKET_ID = 0x7fff_fffe;
export const UPLOAD_ID_BYTES = 16;
const HIDDEN = 0x8000_0000;
/** Before the parts, so that a walk meets an upload before them. */
const UPLOAD = 0x6f;
const PART = 0x70;

function bucketBytes(bucket: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, bucket);
  return bytes;
}

/** @throws INVALID if a key is empty, TOO_LARGE beyond `MAX_KEY_BYTES` */
export function checkKey(key: Uint8Array): void {
  if (key.length === 0) throw new WebdfsError('INVALID', 'a key has at least one byte', { details: { what: 'key' } });
  if (key.length > MAX_KEY_BYTES) {
    throw new WebdfsError('TOO_LARGE', `key has ${key.length} bytes, limit ${MAX_KEY_BYTES}`, {
      details: { what: 'key' },
    });
  }
}

/** @throws as `checkKey`; TOO_LARGE too for a key so full of zero bytes that the rows of an upload would not fit */
export function checkUploadKey(key: Uint8Array): void {
  checkKey(key);
  const row = 4 + 1 + escaped(key).length + 2 + UPLOAD_ID_BYTES + 2;
  if (row > MAX_ROW_KEY_BYTES) {
    throw new WebdfsError('TOO_LARGE', `a key with that many zero bytes cannot be uploaded in parts`, {
      details: { what: 'key' },
    });
  }
}

/** The record key of an object. */
export function objectKey(bucket: number, key: Uint8Array): Uint8Array {
  const whole = new Uint8Array(4 + key.length);
  new DataView(whole.buffer).setUint32(0, bucket);
  whole.set(key, 4);
  return whole;
}

/** The bytes of an object's key, from its record key. A view. */
export function keyOf(recordKey: Uint8Array): Uint8Array {
  return recordKey.subarray(4);
}

/** Whether a record is an object in a bucket, and not something that the store keeps for itself. */
export function isObjectKey(recordKey: Uint8Array): boolean {
  const number =
    recordKey.length < 4 ? SYSTEM_BUCKET : new DataView(recordKey.buffer, recordKey.byteOffset).getUint32(0);
  return number !== SYSTEM_BUCKET && number < HIDDEN;
}

export function bucketOf(recordKey: Uint8Array): number {
  return new DataView(recordKey.buffer, recordKey.byteOffset).getUint32(0) % HIDDEN;
}

/** The first bytes that stand behind everything that begins with `prefix`; undefined if nothing does. */
export function behind(prefix: Uint8Array): Uint8Array | undefined {
  let end = prefix.length;
  while (end > 0 && prefix[end - 1] === 0xff) end--;
  if (end === 0) return undefined;
  const next = prefix.slice(0, end);
  next[end - 1]! += 1;
  return next;
}

/** The first bytes that stand behind exactly these. */
export function next(key: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(key.length + 1);
  bytes.set(key);
  return bytes;
}

export function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return bytes.length >= prefix.length && compareBytes(bytes.subarray(0, prefix.length), prefix) === 0;
}

/** Keeps the order of keys, with or without something behind them that begins with 00 00. */
function escaped(key: Uint8Array): Uint8Array {
  let zeros = 0;
  for (const byte of key) if (byte === 0) zeros++;
  if (zeros === 0) return key;
  const bytes = new Uint8Array(key.length + zeros);
  let at = 0;
  for (const byte of key) {
    bytes[at++] = byte;
    if (byte === 0) bytes[at++] = 1;
  }
  return bytes;
}

function hiddenPrefix(bucket: number, kind: number, key: Uint8Array): Uint8Array {
  return concat([bucketBytes(bucket + HIDDEN), Uint8Array.of(kind), escaped(key)]);
}

/** The record key of an open upload. It lives in the group of the object's key. */
export function uploadRow(bucket: number, key: Uint8Array, uploadId: Uint8Array): Uint8Array {
  return concat([hiddenPrefix(bucket, UPLOAD, key), Uint8Array.of(0, 0), uploadId]);
}

/** The record key of an upload's part. It lives in the group of the object's key. */
export function partRow(bucket: number, key: Uint8Array, part: { uploadId: Uint8Array; number: number }): Uint8Array {
  return concat([
    hiddenPrefix(bucket, PART, key),
    Uint8Array.of(0, 0),
    part.uploadId,
    Uint8Array.of(part.number >>> 8, part.number & 255),
  ]);
}

/** A range of record keys: from, inclusive, to before, exclusive. */
export interface KeyRange {
  readonly from: Uint8Array;
  readonly before: Uint8Array;
}

/** All parts of an upload, in the order of their numbers. */
export function partRange(bucket: number, key: Uint8Array, uploadId: Uint8Array): KeyRange {
  return {
    from: partRow(bucket, key, { uploadId, number: 0 }),
    before: partRow(bucket, key, { uploadId, number: MAX_PART_NUMBER + 1 }),
  };
}

/** The uploads of all keys of a bucket that begin with `prefix`, by key, then by id. */
export function uploadRange(bucket: number, prefix: Uint8Array): KeyRange {
  const from = hiddenPrefix(bucket, UPLOAD, prefix);
  return { from, before: behind(from)! };
}

/** Uploads and parts of one bucket. */
export function hiddenRange(bucket: number): KeyRange {
  return { from: bucketBytes(bucket + HIDDEN), before: bucketBytes(bucket + HIDDEN + 1) };
}

/** Uploads and parts of all buckets. */
export function allHidden(): KeyRange {
  return { from: bucketBytes(HIDDEN), before: bucketBytes(0xffff_ffff) };
}

/** What a row of a hidden bucket is about. */
export interface HiddenRow {
  readonly bucket: number;
  readonly key: Uint8Array;
  readonly uploadId: Uint8Array;
  /** Undefined for the upload itself. */
  readonly number: number | undefined;
}

/** Reads back what `uploadRow` or `partRow` made. @throws CORRUPT */
export function readHiddenRow(row: Uint8Array): HiddenRow {
  const corrupt = (): WebdfsError => new WebdfsError('CORRUPT', `a hidden row's key of ${row.length} bytes has no end`);
  if (row.length < 5 || (row[4] !== UPLOAD && row[4] !== PART)) throw corrupt();
  const key: number[] = [];
  let at = 5;
  for (; ; at++) {
    const byte = row[at];
    if (byte === undefined) throw corrupt();
    if (byte === 0) {
      at++;
      if (row[at] === 0) break;
      if (row[at] !== 1) throw corrupt();
    }
    key.push(byte);
  }
  const rest = row.subarray(at + 1);
  if (rest.length !== UPLOAD_ID_BYTES + (row[4] === PART ? 2 : 0)) throw corrupt();
  return {
    bucket: bucketOf(row),
    key: Uint8Array.from(key),
    uploadId: rest.slice(0, UPLOAD_ID_BYTES),
    number: row[4] === PART ? (rest[UPLOAD_ID_BYTES]! << 8) | rest[UPLOAD_ID_BYTES + 1]! : undefined,
  };
}
