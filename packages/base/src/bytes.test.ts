import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plain, Reader } from './bytes.ts';

test('a slice of what was read from a Buffer is a copy: changing it changes nothing else', () => {
  const buffer = Buffer.from([3, 0, 1, 2, 3]);
  const read = new Reader(buffer).short();
  read.slice().fill(9);
  assert.deepEqual([...buffer], [3, 0, 1, 2, 3]);
});

test('the plain form of a Buffer has the same bytes, of an array it is the array itself', () => {
  const buffer = Buffer.from([1, 2, 3]).subarray(1);
  const form = plain(buffer);
  assert.equal(Buffer.isBuffer(form), false);
  assert.deepEqual([...form], [2, 3]);
  form[0] = 7;
  assert.equal(buffer[0], 7);
  const array = Uint8Array.of(1);
  assert.equal(plain(array), array);
});
