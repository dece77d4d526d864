import { WebdfsError } from '@webdfs/base';
import { closesOf, summaryOf } from './closes.ts';
import { BLOCK_ID_BYTES, FLAG, KIND, type LogEntry, REQUEST_ID_BYTES } from './entry.ts';
import { chunkCount } from './entry-format.ts';
import { MAX_BLOCK_BYTES, MAX_INLINE_BYTES, MAX_KEY_BYTES, MAX_META_BYTES } from './limits.ts';
import { isNumbered } from './logged.ts';

const AUTHOR_FLAGS = FLAG.LATEST_ONLY | FLAG.DELETE_MARKER | FLAG.COMPRESSED | FLAG.CLOSES;
/** Sequences have six bytes in rows. */
const MAX_SEQUENCE = 2 ** 48 - 1;

function check(holds: boolean, message: string): void {
  if (!holds) throw new WebdfsError('INVALID', message);
}

/** Refuses an entry that no volume could hold or no row could name. @throws INVALID, TOO_LARGE */
export function checkEntry(entry: LogEntry): void {
  const { kind, key, meta, body, flags, sequence } = entry;
  check(isNumbered(kind), `entries of kind ${kind} are not appended`);
  check((flags & ~AUTHOR_FLAGS) === 0, `unknown flags ${flags}`);
  check(Number.isSafeInteger(sequence) && sequence >= 1 && sequence <= MAX_SEQUENCE, `sequence ${sequence}`);
  check(meta.length >= REQUEST_ID_BYTES, 'meta begins with a request id');
  if (key.length > MAX_KEY_BYTES) throw new WebdfsError('TOO_LARGE', `key has ${key.length} bytes`);
  if (meta.length > MAX_META_BYTES) throw new WebdfsError('TOO_LARGE', `meta has ${meta.length} bytes`);
  if (body.length > MAX_INLINE_BYTES) throw new WebdfsError('TOO_LARGE', `body has ${body.length} bytes`);
  check(entry.sums.length === chunkCount(body.length), 'an entry has one sum per chunk of its body');
  if (kind === KIND.RECORD) {
    summaryOf(meta);
    closesOf(entry);
  }
  if (kind === KIND.BLOCK || kind === KIND.BLOCK_GONE) check(key.length === BLOCK_ID_BYTES, 'a block id has 20 bytes');
  if (kind === KIND.BLOCK) checkBlockBody(body);
}

function checkBlockBody(body: Uint8Array): void {
  check(body.length >= 4, 'a block says its size');
  const size = new DataView(body.buffer, body.byteOffset, 4).getUint32(0, true);
  if (size > MAX_BLOCK_BYTES) throw new WebdfsError('TOO_LARGE', `block has ${size} bytes`);
  check(body.length === 4 + 4 * chunkCount(size), 'a block has one sum per chunk');
}

/** Whether an entry takes space for good, and so is refused when the disk is full. */
export function isPut(entry: { readonly kind: number; readonly flags: number }): boolean {
  if (entry.kind === KIND.BLOCK) return true;
  return entry.kind === KIND.RECORD && (entry.flags & FLAG.DELETE_MARKER) === 0;
}
