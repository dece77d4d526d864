import { equalBytes, type GroupKey, type NodeId, WebdfsError } from '@webdfs/base';
import type { LogEntry, Store } from '@webdfs/store';
import type { CallContext, Incoming, Link, Message, Outgoing } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { encodeReadBlock, type ReadBlockHead } from './block-codec.ts';
import { packBlockBody, unpackBlockBody } from './block-entry.ts';
import type { MoveMeter } from './move-meter.ts';
import { READ_BYTES, ReadBuffers } from './read-buffers.ts';
import { REQUEST_FORMAT } from './request-codec.ts';
import { VERB } from './verbs.ts';

const DEADLINE_MS = 30_000;

const DONE: Message = { head: Uint8Array.of(REQUEST_FORMAT), attached: NO_ATTACHMENT };

/**
 * READ_BLOCK at any node that has the block committed, and FETCH_STAGED, which also gives bytes that are only staged.
 *
 * @throws NOT_FOUND, RANGE_NOT_SATISFIABLE, CORRUPT (damaged here: ask another member)
 */
export async function serveBlock(
  store: Store,
  read: ReadBlockHead,
  body: Outgoing,
  options: { context: CallContext; staged: boolean; buffers?: ReadBuffers; moves?: MoveMeter },
): Promise<Message> {
  const source = sourceOf(store, read, options.staged);
  const end = read.length === 0 ? source.size : read.offset + read.length;
  if (end > source.size || read.offset > end) {
    throw new WebdfsError('RANGE_NOT_SATISFIABLE', `block has ${source.size} bytes, asked for ${read.offset}..${end}`);
  }
  const { context, moves, buffers = new ReadBuffers() } = options;
  for (let at = read.offset; at < end;) {
    context.signal.throwIfAborted();
    const length = Math.min(READ_BYTES - (at % READ_BYTES), end - at);
    const piece = buffers.take(length);
    try {
      if (moves === undefined) await source.read(at, piece.bytes);
      else await moves.read(length, () => source.read(at, piece.bytes));
    } catch (error) {
      piece.release();
      throw error;
    }
    moves?.sent(length);
    if (!body.write(piece)) await body.ready();
    at += length;
  }
  body.end();
  return DONE;
}

interface Source {
  readonly size: number;
  read(offset: number, target: Uint8Array): Promise<void>;
}

function sourceOf(store: Store, { policy, group, id }: ReadBlockHead, staged: boolean): Source {
  const row = store.findBlock({ policy, group }, id);
  if (row !== undefined) return { size: row.size, read: (offset, target) => store.readBlock(row, offset, target) };
  const whole = staged ? store.staged(id) : undefined;
  if (whole === undefined) throw new WebdfsError('NOT_FOUND', 'this node does not have the block');
  return { size: whole.size, read: (offset, target) => store.readStaged(id, offset, target) };
}

/**
 * Stages a block's bytes from another node, as its entry says they must be.
 *
 * @throws CHECKSUM_MISMATCH if that node has others, or the link's errors
 */
export async function copyBlock(store: Store, link: Link, entry: LogEntry, signal?: AbortSignal): Promise<void> {
  const group: GroupKey = { policy: entry.policy, group: entry.group };
  const head = encodeReadBlock({ ...group, id: entry.key, offset: 0, length: 0 }, 0);
  const options = signal === undefined ? { deadlineMs: DEADLINE_MS } : { deadlineMs: DEADLINE_MS, signal };
  const { body, answer } = link.fetch(VERB.FETCH_STAGED, head, options);
  answer.catch(() => undefined);
  const staging = store.stage(group, entry.key);
  try {
    const { size } = unpackBlockBody(entry.body);
    await drain(body, size, (bytes) => staging.write(bytes));
    await answer;
    const whole = await staging.finish();
    if (equalBytes(packBlockBody(whole.size, whole.sums), entry.body)) return;
    throw new WebdfsError('CHECKSUM_MISMATCH', `node ${link.peer} sent a block of ${whole.size} bytes that is another`);
  } catch (error) {
    staging.abort();
    body.cancel('given up');
    throw error;
  }
}

/** Takes a body of at most `limit` bytes to its end. @throws TOO_LARGE, and the link's errors */
export async function drain(
  body: Incoming,
  limit: number,
  write: (bytes: Uint8Array) => Promise<void> | undefined,
): Promise<void> {
  let size = 0;
  for (;;) {
    const piece = body.take();
    if (piece === undefined) {
      if (body.ended) return;
      await body.ready();
      continue;
    }
    size += piece.bytes.length;
    let written: Promise<void> | undefined;
    try {
      if (size > limit) throw new WebdfsError('TOO_LARGE', `block has ${limit} bytes, more were sent`);
      written = write(piece.bytes);
    } finally {
      piece.release();
    }
    if (written !== undefined) await written;
  }
}

/** Tries one node after another. @throws the last one's error, NOT_FOUND if there is none */
export async function fromAny<Value>(nodes: readonly NodeId[], ask: (node: NodeId) => Promise<Value>): Promise<Value> {
  let last: unknown = new WebdfsError('NOT_FOUND', 'there is no other member to ask');
  for (const node of nodes) {
    try {
      return await ask(node);
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      last = error;
    }
  }
  throw last;
}
