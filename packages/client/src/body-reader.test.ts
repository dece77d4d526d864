import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { asPolicyId, concat, toHex } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import type { Layout } from '@webdfs/replica';
import type { Piece } from '@webdfs/wire';
import { type BlockRun, blockRuns, readBlocks } from './body-reader.ts';
import type { Groups } from './groups.ts';
import { MemoryGroups } from './memory-groups.ts';

const PIECE = 400_000;

/** Blocks of any length whose bytes are all equal to the first byte of their id; counts readers and lent pieces. */
class LentBlocks extends MemoryGroups {
  readers = 0;
  mostReaders = 0;
  lent = 0;
  mostLent = 0;
  shortBy = 0;

  override async *readBlock(...[, id, { length }]: Parameters<Groups['readBlock']>): AsyncGenerator<Piece> {
    this.readers++;
    this.mostReaders = Math.max(this.mostReaders, this.readers);
    try {
      for (let left = length - this.shortBy; left > 0; left -= PIECE) {
        await Promise.resolve();
        this.lent++;
        this.mostLent = Math.max(this.mostLent, this.lent);
        const release = (): void => void this.lent--;
        yield { bytes: new Uint8Array(Math.min(left, PIECE)).fill(id[0]!), hold: () => undefined, release };
      }
    } finally {
      this.readers--;
    }
  }
}

const policy = asPolicyId(1);
const run = (value: number, length = 3_000_000): BlockRun => ({
  id: new Uint8Array(20).fill(value),
  offset: 0,
  length,
});

test('the runs of a range are exactly its bytes, for any layout', (t) => {
  const part = fc.record({ size: fc.nat(50), attempt: fc.uint8Array({ minLength: 16, maxLength: 16 }) });
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 20 }),
      fc.nat(),
      fc.nat(),
      (parts, blockBytes, a, b) => {
        const layout: Layout = { type: 'parts', blockBytes, parts: parts.map((one, i) => ({ ...one, number: i + 1 })) };
        // each byte of the object as (attempt, position in the part)
        const bytes = parts.flatMap(({ attempt, size }) =>
          Array.from({ length: size }, (_, i) => `${toHex(attempt)} ${i}`),
        );
        const offset = a % (bytes.length + 1);
        const length = b % (bytes.length - offset + 1);
        const read = [...blockRuns(layout, bytes.length, { offset, length })].flatMap(({ id, ...range }) => {
          assert.ok(range.offset + range.length <= blockBytes && range.length > 0);
          const block = new DataView(id.buffer).getUint32(16);
          return Array.from(
            { length: range.length },
            (_, i) => `${toHex(id.subarray(0, 16))} ${block * blockBytes + range.offset + i}`,
          );
        });
        assert.deepEqual(read, bytes.slice(offset, offset + length));
      },
    ),
    { seed: seedOf(t), numRuns: 300 },
  );
});

test('blocks are read one after another, the next asked for before the present one ends', async () => {
  const groups = new LentBlocks();
  const parts: Uint8Array[] = [];
  for await (const piece of readBlocks(
    { groups, policy },
    [1, 2, 3].map((value) => run(value)),
  )) {
    parts.push(piece.bytes);
    piece.release();
    await new Promise(setImmediate);
  }
  const whole = concat(parts);
  assert.equal(whole.length, 9_000_000);
  assert.ok([0, 1, 2].every((i) => whole[i * 3_000_000] === i + 1 && whole[i * 3_000_000 + 2_999_999] === i + 1));
  assert.equal(groups.mostReaders, 2);
  assert.deepEqual([groups.readers, groups.lent], [0, 0]);
});

test('a slow reader holds at most one piece of its own and two that wait', async () => {
  const groups = new LentBlocks();
  for await (const piece of readBlocks(
    { groups, policy },
    [1, 2, 3, 4].map((value) => run(value)),
  )) {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    piece.release();
  }
  assert.ok(groups.mostLent <= 3, `${groups.mostLent} pieces`);
});

test('who stops early gives everything back', async () => {
  for (const stopAfter of [1, 6, 7, 8, 9]) {
    const groups = new LentBlocks();
    let count = 0;
    for await (const piece of readBlocks({ groups, policy }, [run(1), run(2)])) {
      piece.release();
      if (++count === stopAfter) break;
    }
    assert.deepEqual([groups.readers, groups.lent], [0, 0]);
  }
});

test('a block that ends early is an error, not a short answer', async () => {
  const groups = new LentBlocks();
  groups.shortBy = 1;
  const read = async (): Promise<void> => {
    for await (const piece of readBlocks({ groups, policy }, [run(1), run(2)])) piece.release();
  };
  await assert.rejects(read(), { code: 'CORRUPT' });
  assert.deepEqual([groups.readers, groups.lent], [0, 0]);
});

test('a missing block is an error of whoever reads it', async () => {
  const groups = new MemoryGroups();
  const pieces = readBlocks({ groups, policy }, [run(1)]);
  await assert.rejects(pieces.next(), { code: 'NOT_FOUND' });
});
