import { codeOf, WebdfsError } from '@webdfs/base';
import type { BlockRow, Store } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { unpackSummary } from './record.ts';
import { decodeVerifyRequest, encodeVerifyAnswer, type VerifyItem, type VerifyResult } from './verify-codec.ts';

/** Read and verified at once. */
const READ_BYTES = 262_144;
const LOOK_TRIES = 4;

const ABSENT: VerifyResult = { state: 'absent', sequence: 0, size: 0 };

type Readable = Pick<Store, 'find' | 'read' | 'findBlock' | 'readBlock' | 'readBlockEntry'>;

/**
 * What this node has of some things, every checksum verified from the disk for this answer: what `webdfs where` shows.
 * Damage found on the way is reported by the store as any other.
 *
 * @throws the signal's reason; DISK_FAILED
 */
export async function verifyItems(
  store: Readable,
  items: readonly VerifyItem[],
  signal: AbortSignal,
): Promise<VerifyResult[]> {
  const results: VerifyResult[] = [];
  for (const item of items) {
    signal.throwIfAborted();
    const look = item.type === 'record' ? () => verifyRecord(store, item) : () => verifyBlock(store, item, signal);
    results.push(await settled(look));
  }
  return results;
}

/** Looks again where the thing was replaced while it was read. */
async function settled(look: () => Promise<VerifyResult>): Promise<VerifyResult> {
  for (let tries = 1; ; tries++) {
    try {
      return await look();
    } catch (error) {
      const isReplaced = codeOf(error) === 'CONFLICT' || codeOf(error) === 'NOT_FOUND';
      if (!isReplaced || tries === LOOK_TRIES) throw error;
    }
  }
}

async function verifyRecord(store: Readable, item: VerifyItem): Promise<VerifyResult> {
  const row = store.find(item.id);
  if (row === undefined || row.policy !== item.policy || row.group !== item.group) return ABSENT;
  const facts = { sequence: row.sequence, size: unpackSummary(row.summary).size };
  return { ...facts, state: await stateOf(async () => void (await store.read(row))) };
}

async function verifyBlock(store: Readable, item: VerifyItem, signal: AbortSignal): Promise<VerifyResult> {
  const row = store.findBlock(item, item.id);
  if (row === undefined) return ABSENT;
  return { sequence: row.sequence, size: row.size, state: await stateOf(() => readAll(store, row, signal)) };
}

/** The entry that names a block's owner, and all its bytes. */
async function readAll(store: Readable, row: BlockRow, signal: AbortSignal): Promise<void> {
  await store.readBlockEntry(row);
  const buffer = new Uint8Array(Math.min(READ_BYTES, row.size));
  for (let offset = 0; offset < row.size; offset += READ_BYTES) {
    signal.throwIfAborted();
    await store.readBlock(row, offset, buffer.subarray(0, Math.min(READ_BYTES, row.size - offset)));
  }
}

async function stateOf(read: () => Promise<void>): Promise<'intact' | 'damaged'> {
  try {
    await read();
    return 'intact';
  } catch (error) {
    if (error instanceof WebdfsError && codeOf(error) === 'CORRUPT') return 'damaged';
    throw error;
  }
}

/** VERIFY at the node that is asked. @throws CORRUPT, INVALID, TOO_LARGE */
export async function serveVerify(store: Readable, message: Message, signal: AbortSignal): Promise<Message> {
  return encodeVerifyAnswer(await verifyItems(store, decodeVerifyRequest(message), signal));
}
