import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Residency } from './residency.ts';

const MIB = 1024 * 1024;

test('what was touched lately is taken to be cached, within the budget', () => {
  const residency = new Residency(20 * MIB);
  residency.touch(1, 0, 10 * MIB);
  assert.equal(residency.isCached(1, 5 * MIB, 4_096), true);
  assert.equal(residency.isCached(1, 10 * MIB, 1), false);
  assert.equal(residency.isCached(2, 0, 1), false);
  residency.touch(2, 0, 15 * MIB);
  assert.equal(residency.isCached(1, 0, 1), false);
  assert.equal(residency.isCached(2, 14 * MIB, 1), true);
});

test('a range is cached if both its ends are', () => {
  const residency = new Residency(100 * MIB);
  residency.touch(1, 0, MIB);
  assert.equal(residency.isCached(1, MIB - 10, 20), false);
  residency.touch(1, MIB, 1);
  assert.equal(residency.isCached(1, MIB - 10, 20), true);
});

test('a slow read halves the budget, quick ones give it back', () => {
  const residency = new Residency(100 * MIB);
  residency.readTook(5);
  residency.touch(1, 0, 100 * MIB);
  assert.equal(residency.isCached(1, 49 * MIB, 1), false);
  assert.equal(residency.isCached(1, 50 * MIB, 1), true);
  assert.equal(residency.slowReads, 1);
  for (let i = 0; i < 6_000; i++) residency.readTook(0.01);
  residency.touch(2, 0, 100 * MIB);
  assert.equal(residency.isCached(2, 0, 1), true);
});
