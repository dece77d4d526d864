import { crc32c, fromUtf8, messageOf, Reader, type Revision, utf8, WebdfsError, Writer } from '@webdfs/base';
import type { StoredEntry } from './key-space.ts';
import type { Write } from './map-store.ts';

/**
 * The bytes of the embedded map store; docs/formats/map-log.md has a worked example.
 *
 * ```
 * file      0  8  magic      `WDFSMLOG` a log, `WDFSMSNP` a snapshot
 *           8  4  version    1
 *          12  8  revision   log: what its first entry follows; snapshot: what it shows
 *          20  4  checksum   crc32c of bytes 0..20
 *          24  …  records    log: any number; snapshot: one
 * record    0  4  checksum   crc32c of bytes 4..end of the record
 *           4  4  length     of the payload, 0..MAX_PAYLOAD
 *           8  8  revision
 *          16  n  payload    UTF-8 JSON: the writes of one transaction, or all entries
 * ```
 * All numbers little-endian.
 */
export type MapFileKind = 'log' | 'snapshot';

export const HEADER_BYTES = 24;
const RECORD_BYTES = 16;
const VERSION = 1;
const MAGIC: Readonly<Record<MapFileKind, string>> = { log: 'WDFSMLOG', snapshot: 'WDFSMSNP' };
/** A transaction has at most 2^20 characters of values, each at most six bytes in JSON, and its keys. */
const MAX_LOG_PAYLOAD = 8 * 1024 * 1024;
const MAX_SNAPSHOT_PAYLOAD = 1024 * 1024 * 1024;
/** How far a record found after a bad one may be ahead and still be believed to be one. */
const MAX_LEAP = 2 ** 20;

export function packHeader(kind: MapFileKind, revision: Revision): Uint8Array {
  const head = new Writer(HEADER_BYTES).raw(utf8(MAGIC[kind])).u32(VERSION).u53(revision).take();
  return new Writer(HEADER_BYTES).raw(head).u32(crc32c(head)).take();
}

/**
 * The revision in a file's header.
 *
 * @throws CORRUPT, NEWER_FORMAT
 */
export function unpackHeader(kind: MapFileKind, bytes: Uint8Array): Revision {
  const reader = new Reader(bytes);
  const magic = reader.raw(8);
  const version = reader.u32();
  const revision = reader.u53();
  if (crc32c(bytes.subarray(0, reader.offset)) !== reader.u32()) {
    throw new WebdfsError('CORRUPT', `map ${kind}: the header's checksum is wrong`);
  }
  if (Buffer.from(magic).toString('latin1') !== MAGIC[kind]) throw new WebdfsError('CORRUPT', `not a map ${kind}`);
  if (version !== VERSION) {
    throw new WebdfsError('NEWER_FORMAT', `map ${kind} has version ${version}, this program knows ${VERSION}`);
  }
  return revision;
}

function packRecord(revision: Revision, payload: Uint8Array): Uint8Array {
  const body = new Writer(RECORD_BYTES + payload.length).u32(payload.length).u53(revision).raw(payload).take();
  return new Writer(RECORD_BYTES + payload.length).u32(crc32c(body)).raw(body).take();
}

/** One transaction as a record of the log. @throws TOO_LARGE */
export function packWrites(revision: Revision, writes: readonly Write[]): Uint8Array {
  const rows = writes.map((write) => {
    if (write.type === 'delete') return ['delete', write.key];
    return write.lease === undefined ? ['put', write.key, write.value] : ['put', write.key, write.value, write.lease];
  });
  const payload = utf8(JSON.stringify(rows));
  if (payload.length > MAX_LOG_PAYLOAD) {
    throw new WebdfsError('TOO_LARGE', `a transaction of ${payload.length} bytes, limit ${MAX_LOG_PAYLOAD}`);
  }
  return packRecord(revision, payload);
}

/** All entries as the one record of a snapshot. */
export function packEntries(revision: Revision, entries: Iterable<StoredEntry>): Uint8Array {
  const rows: unknown[] = [];
  for (const { key, value, createRevision, modRevision, lease } of entries) {
    rows.push([key, value, createRevision, modRevision, ...(lease === undefined ? [] : [lease])]);
  }
  return packRecord(revision, utf8(JSON.stringify(rows)));
}

interface Row {
  readonly revision: Revision;
  readonly payload: Uint8Array;
  readonly end: number;
}

/** The record at an offset, or undefined if there is none whole and right. */
function recordAt(bytes: Uint8Array, offset: number, maxPayload: number): Row | undefined {
  if (bytes.length - offset < RECORD_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, RECORD_BYTES);
  const length = view.getUint32(4, true);
  const high = view.getUint32(12, true);
  const end = offset + RECORD_BYTES + length;
  if (length > maxPayload || end > bytes.length || high > 0x1f_ffff) return undefined;
  if (crc32c(bytes.subarray(offset + 4, end)) !== view.getUint32(0, true)) return undefined;
  return {
    revision: high * 2 ** 32 + view.getUint32(8, true),
    payload: bytes.subarray(offset + RECORD_BYTES, end),
    end,
  };
}

function rowsOf(payload: Uint8Array, what: string): readonly (readonly unknown[])[] {
  let value: unknown;
  try {
    value = JSON.parse(fromUtf8(payload));
  } catch (error) {
    throw new WebdfsError('CORRUPT', `${what}: not JSON: ${messageOf(error)}`);
  }
  if (!Array.isArray(value) || !value.every((row) => Array.isArray(row))) {
    throw new WebdfsError('CORRUPT', `${what}: not a list of lists`);
  }
  return value as readonly (readonly unknown[])[];
}

function writeOf(row: readonly unknown[], what: string): Write {
  const [type, key, value, lease] = row;
  if (type === 'delete' && typeof key === 'string') return { type, key };
  if (type === 'put' && typeof key === 'string' && typeof value === 'string') {
    if (lease === undefined) return { type, key, value };
    if (typeof lease === 'number') return { type, key, value, lease };
  }
  throw new WebdfsError('CORRUPT', `${what}: not a write`);
}

/** What a log file holds. */
export interface LogContents {
  /** What its first transaction follows. */
  readonly base: Revision;
  readonly transactions: readonly { readonly revision: Revision; readonly writes: readonly Write[] }[];
  /** Bytes after the last whole record: a write that a crash cut short. */
  readonly torn: number;
}

/**
 * Reads a log. Only its last record can have been cut short by a crash, since each was synced before the next was begun;
 * so a bad record before a good one is damage.
 *
 * @throws CORRUPT, NEWER_FORMAT
 */
export function unpackLog(bytes: Uint8Array, name: string): LogContents {
  const base = unpackHeader('log', bytes);
  const transactions: { revision: Revision; writes: readonly Write[] }[] = [];
  let offset = HEADER_BYTES;
  let last = base;
  for (;;) {
    const record = recordAt(bytes, offset, MAX_LOG_PAYLOAD);
    if (record === undefined || record.revision !== last + 1) break;
    const what = `${name}: revision ${record.revision}`;
    transactions.push({
      revision: record.revision,
      writes: rowsOf(record.payload, what).map((row) => writeOf(row, what)),
    });
    last = record.revision;
    offset = record.end;
  }
  const stray = strayRecord(bytes, offset, last);
  if (stray !== undefined) {
    throw new WebdfsError(
      'CORRUPT',
      `${name}: the record at byte ${offset} is damaged, and revision ${stray.revision} follows at byte ${stray.offset}`,
      { details: { offset, revision: stray.revision } },
    );
  }
  return { base, transactions, torn: bytes.length - offset };
}

/** A whole record after the last that could be read. Payloads are text without zero bytes, so nothing inside one looks like it. */
function strayRecord(
  bytes: Uint8Array,
  from: number,
  last: Revision,
): { readonly offset: number; readonly revision: Revision } | undefined {
  for (let offset = from; offset + RECORD_BYTES <= bytes.length; offset++) {
    // revisions stay far below 2^48: the cheap test that almost every offset fails
    if (bytes[offset + 14] !== 0 || bytes[offset + 15] !== 0) continue;
    const record = recordAt(bytes, offset, MAX_LOG_PAYLOAD);
    if (record !== undefined && record.revision > last && record.revision <= last + MAX_LEAP) {
      return { offset, revision: record.revision };
    }
  }
  return undefined;
}

/** @throws CORRUPT, NEWER_FORMAT */
export function unpackSnapshot(bytes: Uint8Array, name: string): { revision: Revision; entries: StoredEntry[] } {
  const revision = unpackHeader('snapshot', bytes);
  const record = recordAt(bytes, HEADER_BYTES, MAX_SNAPSHOT_PAYLOAD);
  if (record === undefined || record.revision !== revision || record.end !== bytes.length) {
    throw new WebdfsError('CORRUPT', `${name}: its record is damaged`);
  }
  const entries = rowsOf(record.payload, name).map((row): StoredEntry => {
    const [key, value, createRevision, modRevision, lease] = row;
    if (typeof key !== 'string' || typeof value !== 'string') throw new WebdfsError('CORRUPT', `${name}: not an entry`);
    if (typeof createRevision !== 'number' || typeof modRevision !== 'number') {
      throw new WebdfsError('CORRUPT', `${name}: ${key} has no revisions`);
    }
    return { key, value, createRevision, modRevision, ...(typeof lease === 'number' ? { lease } : {}) };
  });
  return { revision, entries };
}
