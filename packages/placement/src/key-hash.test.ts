import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedOf } from './conformance.ts';
import * as fc from 'fast-check';
import { groupOf, hashKey, murmur128 } from './key-hash.ts';

const hex = (words: readonly number[]): string => words.map((word) => word.toString(16).padStart(8, '0')).join('');

test('passes the verification of the suite the hash comes from', () => {
  // SMHasher: hash {}, {0}, {0, 1}, … with seeds 256, 255, …, then the hashes; the first word is the published value
  const key = Uint8Array.from({ length: 256 }, (_, i) => i);
  const hashes = new DataView(new ArrayBuffer(256 * 16));
  for (let i = 0; i < 256; i++) {
    for (const [at, word] of murmur128(key.subarray(0, i), 256 - i).entries())
      hashes.setUint32(i * 16 + at * 4, word, true);
  }
  assert.equal(murmur128(new Uint8Array(hashes.buffer))[0], 0xb3ece62a);
});

test('a known sentence has its known hash', () => {
  const text = "I will not buy this tobacconist's, it is scratched.";
  assert.equal(hex(murmur128(new TextEncoder().encode(text))), '9b5b7ba2ef3f7866889adeaf00f3f98e');
  assert.equal(hex(murmur128(new Uint8Array(0))), '0'.repeat(32));
});

test('the hash does not depend on where in a buffer the key lies', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), fc.nat(9), (key, offset) => {
      const buffer = new Uint8Array(offset + key.length + 5).fill(255);
      buffer.set(key, offset);
      assert.deepEqual(hashKey(buffer.subarray(offset, offset + key.length)), hashKey(key));
    }),
    { seed: seedOf(t) },
  );
});

test('a group splits in two when the number of groups doubles', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), fc.integer({ min: 0, max: 31 }), (high, bits) => {
      assert.equal(groupOf(high, bits + 1) >>> 1, groupOf(high, bits));
      assert.ok(groupOf(high, bits) < 2 ** bits);
    }),
    { seed: seedOf(t) },
  );
});
