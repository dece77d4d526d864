import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from './clock.ts';
import { TokenBucket } from './token-bucket.ts';

test('bytes pass at the rate', () => {
  const clock = new ManualClock();
  const bucket = new TokenBucket(1000, clock);
  let passed = 0;
  for (let i = 0; i < 10; i++) bucket.take(100, () => passed++);
  clock.advance(450);
  assert.equal(passed, 4);
  clock.advance(550);
  assert.equal(passed, 10);
});

test('a late timer loses nothing, a long pause saves nothing', () => {
  const clock = new ManualClock();
  const bucket = new TokenBucket(1000, clock);
  const passed: number[] = [];
  bucket.take(10, () => passed.push(clock.monotonic()));
  clock.advance(1000);
  for (let i = 0; i < 3; i++) bucket.take(10, () => passed.push(clock.monotonic() - 1000));
  clock.advance(1000);
  assert.deepEqual(passed.slice(1), [0, 0, 10]);
});

test('a new rate holds for what is owed already, too', () => {
  const clock = new ManualClock();
  const bucket = new TokenBucket(1000, clock);
  assert.equal(bucket.reserve(1000), 1000);
  bucket.setRate(2000);
  assert.equal(bucket.reserve(1000), 1000);
  bucket.setRate(Infinity);
  assert.equal(bucket.reserve(1e9), 0);
  bucket.setRate(1000);
  assert.equal(bucket.reserve(100), 100);
});
