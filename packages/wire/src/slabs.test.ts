import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokenInvariant, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { type Lender, SLAB_BYTES, SlabPool, SlabReader } from './slabs.ts';
import type { Piece } from './transport.ts';

const NOBODY: Lender = { released: () => undefined };

/** Reads `count` bytes of value `value` as a lane does, and lends them. */
function read(reader: SlabReader, count: number, value: number, lender: Lender = NOBODY): Piece {
  const bytes = reader.space().subarray(0, count).fill(value);
  assert.equal(bytes.length, count);
  reader.filled(count);
  return reader.lend(bytes, lender);
}

test('a slab is read into again once all that was lent of it is back', () => {
  const pool = new SlabPool({ slabs: 4, copiedBytes: 0 });
  const reader = new SlabReader(pool);
  for (let i = 0; i < 100; i++) read(reader, 60_000, i).release();
  assert.equal(pool.made, 1);
  assert.equal(pool.lent, 0);
});

test('SLABS bounds the slabs: when none is free the reader waits, and goes on at a release', () => {
  const pool = new SlabPool({ slabs: 2, copiedBytes: 0 });
  const reader = new SlabReader(pool);
  const pieces: Piece[] = [];
  while (reader.ready) pieces.push(read(reader, 64 * 1024, 1));
  assert.equal(pool.made, 2);
  assert.equal(pieces.length, (2 * SLAB_BYTES) / 65_536);
  let woken = 0;
  reader.whenReady(() => woken++);
  for (const piece of pieces.slice(0, 3)) piece.release();
  assert.equal(woken, 0, 'three quarters of a slab are no slab');
  pieces[3]!.release();
  assert.equal(woken, 1);
  assert.equal(reader.ready, true);
  for (const piece of pieces.slice(4)) piece.release();
  reader.close();
  assert.equal(pool.lent, 0);
});

test('what comes while no slab is free is copied, not lost', () => {
  const pool = new SlabPool({ slabs: 1, copiedBytes: 0 });
  const reader = new SlabReader(pool);
  const first = read(reader, SLAB_BYTES, 1);
  assert.equal(reader.ready, false);
  const second = read(reader, 1000, 2);
  const third = read(reader, 1000, 3);
  assert.ok(first.bytes.every((byte) => byte === 1));
  assert.ok(second.bytes.every((byte) => byte === 2));
  assert.ok(third.bytes.every((byte) => byte === 3));
  for (const piece of [first, second, third]) piece.release();
  assert.equal(pool.copiedBytes, 0);
});

test('when slabs run short pieces are copied off them, up to COPIED_BYTES, so that slow readers hold none', () => {
  const pool = new SlabPool({ slabs: 8, copiedBytes: 10 * 65_536 });
  const reader = new SlabReader(pool);
  const slow: Piece[] = [];
  while (pool.copiedBytes < 10 * 65_536) slow.push(read(reader, 65_536, slow.length));
  assert.equal(pool.made, 7, 'the last quarter is left to those who are quick');
  // Someone quick, among the slow.
  for (let i = 0; i < 100; i++) read(reader, 65_536, 255).release();
  assert.ok(slow.every(({ bytes }, i) => bytes.every((byte) => byte === i)));
  for (const piece of slow) piece.release();
  assert.equal(pool.lent, 0);
  assert.equal(pool.copiedBytes, 0);
});

test('a piece is overwritten at its last release, not before, and tells its lender', () => {
  const released: number[] = [];
  const pool = new SlabPool({ slabs: 2, copiedBytes: 0, poison: true });
  const piece = read(new SlabReader(pool), 100, 7, { released: (bytes) => released.push(bytes) });
  piece.hold();
  piece.release();
  assert.ok(piece.bytes.every((byte) => byte === 7));
  assert.deepEqual(released, []);
  piece.release();
  assert.ok(piece.bytes.every((byte) => byte === 0xdb));
  assert.deepEqual(released, [100]);
  assert.throws(() => piece.release(), BrokenInvariant);
  assert.throws(() => piece.hold(), BrokenInvariant);
});

test('whatever is lent and released in whatever order, bytes stay what they were and slabs come back', (t) => {
  const random = new SeededRandom(seedOf(t));
  const pool = new SlabPool({ slabs: 6, copiedBytes: 300_000, poison: true });
  const readers = [new SlabReader(pool), new SlabReader(pool)];
  const lent: { piece: Piece; value: number }[] = [];
  for (let i = 0; i < 800; i++) {
    const reader = readers[random.below(2)]!;
    if (reader.ready && random.below(5) > 0) {
      const count = 1 + random.below(65_536);
      lent.push({ piece: read(reader, count, i & 127), value: i & 127 });
    } else if (lent.length > 0) {
      const [one] = lent.splice(random.below(lent.length), 1);
      assert.ok(one!.piece.bytes.every((byte) => byte === one!.value));
      one!.piece.release();
    }
    assert.ok(pool.made <= 6);
  }
  for (const { piece } of lent) piece.release();
  assert.equal(pool.lent, 0);
  assert.equal(pool.copiedBytes, 0);
  for (const reader of readers) reader.close();
  let free = 0;
  while (pool.take() !== undefined) free++;
  assert.equal(free, 6);
});
