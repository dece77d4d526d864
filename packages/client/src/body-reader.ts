import { assert, type PolicyId, WebdfsError } from '@webdfs/base';
import type { Layout } from '@webdfs/replica';
import type { Piece } from '@webdfs/wire';
import type { Groups } from './groups.ts';
import { blockId } from './ids.ts';
import { PREFETCH_BYTES } from './limits.ts';
import type { Extent } from './ranges.ts';

/** A run of bytes inside one block. */
export interface BlockRun {
  readonly id: Uint8Array;
  readonly offset: number;
  readonly length: number;
}

/** The runs of blocks that make up an extent of an object, in order. A generator: an object may have a million blocks. */
export function* blockRuns(
  layout: Exclude<Layout, { type: 'inline' }>,
  size: number,
  extent: Extent,
): Generator<BlockRun> {
  const stretches = layout.type === 'blocks' ? [{ attempt: layout.attempt, size }] : layout.parts;
  const end = extent.offset + extent.length;
  let start = 0;
  for (const stretch of stretches) {
    const from = Math.max(extent.offset, start) - start;
    const to = Math.min(end, start + stretch.size) - start;
    for (let at = from; at < to;) {
      const number = Math.floor(at / layout.blockBytes);
      const offset = at - number * layout.blockBytes;
      const length = Math.min(layout.blockBytes - offset, to - at);
      yield { id: blockId(stretch.attempt, number), offset, length };
      at += length;
    }
    start += stretch.size;
  }
}

/** One block being read, its next piece asked for. */
interface Reading {
  readonly pieces: AsyncIterator<Piece>;
  readonly run: BlockRun;
  next: Promise<IteratorResult<Piece>>;
  done: number;
}

async function close(reading: Reading | undefined): Promise<void> {
  if (reading === undefined) return;
  await reading.next.then(
    (result) => void (result.done !== true && result.value.release()),
    () => undefined,
  );
  await reading.pieces.return?.();
}

/**
 * The bytes of an extent in pieces, which the caller releases. While one piece is being used the next is on its way, and the
 * next block is asked for before the present one ends; so at most two blocks' windows and two pieces are in memory.
 *
 * @throws the errors of `Groups.readBlock`; CORRUPT if a block gives fewer bytes than it should
 */
export async function* readBlocks(
  source: { groups: Groups; policy: PolicyId; signal?: AbortSignal },
  runs: Iterable<BlockRun>,
): AsyncGenerator<Piece, void, undefined> {
  const { groups, policy, signal } = source;
  const left = runs[Symbol.iterator]();
  const open = (): Reading | undefined => {
    const { done, value: run } = left.next();
    if (done === true) return undefined;
    const range = { offset: run.offset, length: run.length, ...(signal && { signal }) };
    const pieces = groups.readBlock(policy, run.id, range)[Symbol.asyncIterator]();
    const reading: Reading = { pieces, run, next: pieces.next(), done: 0 };
    reading.next.catch(() => undefined); // whoever awaits it hears of it; nobody may, after an earlier failure
    return reading;
  };

  let current = open();
  let following: Reading | undefined;
  try {
    while (current !== undefined) {
      const result: IteratorResult<Piece> = await current.next;
      if (result.done === true) {
        if (current.done !== current.run.length) throw shortBlock(current);
        current = following ?? open();
        following = undefined;
        continue;
      }
      current.done += result.value.bytes.length;
      assert(current.done <= current.run.length, 'a block gives no more than was asked for');
      current.next = current.pieces.next();
      current.next.catch(() => undefined);
      if (following === undefined && current.run.length - current.done <= PREFETCH_BYTES) following = open();
      yield result.value;
    }
  } finally {
    await Promise.all([close(current), close(following)]);
  }
}

function shortBlock({ run, done }: Reading): WebdfsError {
  return new WebdfsError('CORRUPT', `a block gave ${done} of ${run.length} bytes`);
}
