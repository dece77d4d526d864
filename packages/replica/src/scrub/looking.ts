import { codeOf, crc32c, type GroupKey, WebdfsError, Writer } from '@webdfs/base';
import type { BlockRow, LogEntry, Store } from '@webdfs/store';
import type { VerifyItem } from '../verify-codec.ts';
import type { Look, LookAnswer } from './look-codec.ts';

/** Bytes read for one answer; what would go beyond is left to the next call. */
const MAX_READ_BYTES = 2_097_152;
/** What a look costs at least, as bytes read: the disk must go there, however little it reads. */
const LEAST_COST = 4_096;
/** Read and verified at once. */
const READ_BYTES = 262_144;
/** Tries where a thing is replaced while it is read. */
const LOOK_TRIES = 4;

export type Readable = Pick<Store, 'find' | 'read' | 'findBlock' | 'readBlock' | 'readBlockEntry' | 'log' | 'facts'>;

/** What bounds the reading. */
export interface Pace {
  /** Resolves when so many bytes may be read. */
  take(bytes: number): Promise<void>;
}

/**
 * What this node has of some things, every checksum verified from the disk now. Damage found on the way is reported by the
 * store as any other.
 *
 * @param pace  undefined: only the index is asked
 * @throws the signal's reason; DISK_FAILED
 */
export async function lookAt(
  store: Readable,
  items: readonly VerifyItem[],
  options: { pace: Pace | undefined; signal: AbortSignal },
): Promise<LookAnswer> {
  const looks: Look[] = [];
  let read = 0;
  for (const item of items) {
    options.signal.throwIfAborted();
    if (looks.length > 0 && options.pace !== undefined && read + sizeOf(store, item) > MAX_READ_BYTES) break;
    const look = await lookAtOne(store, item, options);
    read += look.bytes;
    looks.push(look);
  }
  return { suspect: store.facts().suspect, looks };
}

function sizeOf(store: Readable, item: VerifyItem): number {
  if (item.type === 'record') return store.find(item.id)?.entryBytes ?? 0;
  return store.findBlock(item, item.id)?.size ?? 0;
}

async function lookAtOne(
  store: Readable,
  item: VerifyItem,
  options: { pace: Pace | undefined; signal: AbortSignal },
): Promise<Look> {
  for (let tries = 1; ; tries++) {
    try {
      const look = item.type === 'record' ? lookAtRecord : lookAtBlock;
      return await look(store, item, options);
    } catch (error) {
      const isReplaced = codeOf(error) === 'CONFLICT' || codeOf(error) === 'NOT_FOUND';
      if (!isReplaced) throw error;
      if (tries === LOOK_TRIES)
        throw new WebdfsError('BUSY', 'the thing changes as fast as it is read', { cause: error });
    }
  }
}

function absent(commit: number): Look {
  return { state: 'absent', sequence: 0, bytes: 0, check: 0, commit };
}

async function lookAtRecord(store: Readable, item: VerifyItem, { pace }: { pace: Pace | undefined }): Promise<Look> {
  const { commit } = store.log(item);
  const row = store.find(item.id);
  if (row === undefined || !isOf(row, item)) return absent(commit);
  const { sequence } = row;
  if (pace === undefined) return { state: 'unread', sequence, bytes: 0, check: 0, commit };
  await pace.take(Math.max(LEAST_COST, row.entryBytes));
  const check = await verified(async () => checkOf(await store.read(row)));
  if (check === undefined) return { state: 'damaged', sequence, bytes: row.entryBytes, check: 0, commit };
  return { state: 'intact', sequence, bytes: row.entryBytes, check, commit };
}

function isOf(row: GroupKey, group: GroupKey): boolean {
  return row.policy === group.policy && row.group === group.group;
}

async function lookAtBlock(
  store: Readable,
  item: VerifyItem,
  { pace, signal }: { pace: Pace | undefined; signal: AbortSignal },
): Promise<Look> {
  const { commit } = store.log(item);
  const row = store.findBlock(item, item.id);
  if (row === undefined) return absent(commit);
  const { sequence, size } = row;
  if (pace === undefined) return { state: 'unread', sequence, bytes: 0, check: 0, commit };
  const check = await verified(async () => {
    await readAll(store, row, pace, signal);
    return checkOf(await store.readBlockEntry(row));
  });
  if (check === undefined) return { state: 'damaged', sequence, bytes: size, check: 0, commit };
  return { state: 'intact', sequence, bytes: size, check, commit };
}

async function readAll(store: Readable, row: BlockRow, pace: Pace, signal: AbortSignal): Promise<void> {
  const buffer = new Uint8Array(Math.min(READ_BYTES, row.size));
  for (let offset = 0; offset < row.size; offset += READ_BYTES) {
    signal.throwIfAborted();
    const length = Math.min(READ_BYTES, row.size - offset);
    await pace.take(Math.max(LEAST_COST, length));
    await store.readBlock(row, offset, buffer.subarray(0, length));
  }
}

/** Undefined: damaged. */
async function verified(read: () => Promise<number>): Promise<number | undefined> {
  try {
    return await read();
  } catch (error) {
    if (codeOf(error) === 'CORRUPT') return undefined;
    throw error;
  }
}

/**
 * One number for what an entry says, the same on every member: kind, flags, placement hash, time, meta, and the sums of
 * its body. Not where it lies, nor how far the log was committed when it was written.
 */
export function checkOf(entry: LogEntry): number {
  const fixed = new Writer(32).u8(entry.kind).u16(entry.flags).u32(entry.hashHigh).u32(entry.hashLow);
  fixed.u53(entry.timeMs).u32(entry.meta.length).u32(entry.body.length);
  const { buffer, byteOffset, byteLength } = entry.sums;
  return crc32c(new Uint8Array(buffer, byteOffset, byteLength), crc32c(entry.meta, crc32c(fixed.take())));
}
