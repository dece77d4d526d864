import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedOf } from './conformance.ts';
import * as fc from 'fast-check';
import { logUnit } from './logarithm.ts';

test('differs from the logarithm by at most 1.1e-13', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (h) => {
      assert.ok(Math.abs(logUnit(h) - Math.log((h + 0.5) / 2 ** 32)) <= 1.1e-13);
    }),
    { numRuns: 5_000, seed: seedOf(t) },
  );
});

test('is finite and below 0 at both ends', () => {
  assert.ok(logUnit(0) > -23);
  assert.ok(logUnit(0xffff_ffff) < 0);
});

test('keeps the order of neighbours around every power of two', () => {
  for (let e = 1; e <= 32; e++) {
    for (let h = Math.max(1, 2 ** e - 300); h < Math.min(2 ** 32, 2 ** e + 300); h++) {
      assert.ok(logUnit(h) > logUnit(h - 1), `at ${h}`);
    }
  }
});
