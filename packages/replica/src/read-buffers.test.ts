import assert from 'node:assert/strict';
import { test } from 'node:test';
import { READ_BYTES, ReadBuffers } from './read-buffers.ts';

test('a buffer is used again once its last holder has released it, and not before', () => {
  const buffers = new ReadBuffers();
  const first = buffers.take(READ_BYTES);
  first.hold();
  first.release();
  const second = buffers.take(READ_BYTES - 1);
  assert.notEqual(second.bytes.buffer, first.bytes.buffer);
  first.release();
  const third = buffers.take(READ_BYTES / 2);
  assert.equal(third.bytes.buffer, first.bytes.buffer);
  assert.equal(third.bytes.length, READ_BYTES / 2);
});

test('small pieces have memory of their own size', () => {
  const piece = new ReadBuffers().take(100);
  assert.equal(piece.bytes.buffer.byteLength, 100);
  piece.release();
  assert.throws(() => piece.release(), /as often/);
  assert.throws(() => piece.hold(), /not held again/);
});
