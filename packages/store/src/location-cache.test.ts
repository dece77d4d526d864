import assert from 'node:assert/strict';
import { test } from 'node:test';
import { equalBytes, SeededRandom, toHex, utf8 } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { RECORD_VALUE_BYTES } from './index-rows.ts';
import { LocationCache, MAX_CACHED_KEY_BYTES } from './location-cache.ts';

test('what the cache answers is what was set last, through any history; it may forget, never invent', (t) => {
  const random = randomOf(t);
  const cache = new LocationCache({ random, slots: 16 });
  const model = new Map<string, Uint8Array>();
  let hits = 0;
  for (let step = 0; step < 20_000; step++) {
    const key = random.bytes(1 + random.below(2)).map((byte) => byte & 7);
    const name = toHex(key);
    const action = random.below(10);
    if (action < 4) {
      const value = random.bytes(RECORD_VALUE_BYTES);
      cache.set(key, value);
      model.set(name, value.slice());
      value.fill(0);
    } else if (action < 5) {
      cache.delete(key);
      model.delete(name);
    } else {
      const value = cache.get(key);
      if (value !== undefined) {
        hits += 1;
        const expected = model.get(name);
        assert.ok(expected !== undefined && equalBytes(value, expected));
        value.fill(0);
      }
    }
    if (random.below(5000) === 0) {
      cache.clear();
      model.clear();
    }
  }
  assert.ok(hits > 1000);
  assert.equal(cache.hits, hits);
});

test('of a few keys in many slots nearly all are found again', () => {
  const cache = new LocationCache({ random: new SeededRandom(1), slots: 4096 });
  const keyOf = (i: number): Uint8Array => utf8(`bucket/object-${i}.jpg`);
  for (let i = 0; i < 400; i++) cache.set(keyOf(i), new Uint8Array(RECORD_VALUE_BYTES).fill(i));
  const found = Array.from({ length: 400 }, (_, i) => cache.get(keyOf(i))).filter((value) => value !== undefined);
  assert.ok(found.length > 350, `${found.length} of 400`);
});

test('keys at the limit are held, longer and empty ones are left out', () => {
  const cache = new LocationCache({ random: new SeededRandom(2), slots: 4 });
  const value = new Uint8Array(RECORD_VALUE_BYTES).fill(9);
  const longest = new Uint8Array(MAX_CACHED_KEY_BYTES).fill(1);
  cache.set(longest, value);
  assert.deepEqual(cache.get(longest), value);
  const longer = new Uint8Array(MAX_CACHED_KEY_BYTES + 1).fill(1);
  cache.set(longer, value);
  assert.equal(cache.get(longer), undefined);
  const empty = new Uint8Array(0);
  cache.set(empty, value);
  assert.equal(cache.get(empty), undefined);
});
