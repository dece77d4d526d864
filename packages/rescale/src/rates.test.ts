import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pieceBytes } from './piece-size.ts';
import { throttledRates } from './rates.ts';
import { rescaleRatios } from './ratios.ts';
import { unequalBound } from './unequal-bound.ts';

const RATES = { network: 100, read: 40, write: 20 };

test('a rescale takes its share of what clients leave, and no more than its cap', () => {
  const left = throttledRates(RATES, { share: 0.5, cap: 30, foreground: { network: 20, read: 50 } });
  assert.deepEqual(left, { network: 30, read: 0, write: 10 });
  assert.deepEqual(throttledRates(RATES, {}), RATES);
});

test('each ratio tells whose loss it is, and their product is the promise', () => {
  const ratios = rescaleRatios({ movedBytes: 105, leastBytes: 100, planSeconds: 11, boundSeconds: 10, seconds: 12.1 });
  assert.equal(ratios.move, 1.05);
  assert.ok(Math.abs(ratios.place * ratios.exec - ratios.total) < 1e-12);
  const nothing = { movedBytes: 0, leastBytes: 0, planSeconds: 0, boundSeconds: 0, seconds: 0 };
  assert.deepEqual(rescaleRatios(nothing), { move: 1, place: 1, exec: 1, total: 1 });
});

test('pieces are a two-hundredth of the pace, within what the wire takes', () => {
  assert.equal(pieceBytes(1_000), 16_384);
  assert.equal(pieceBytes(200_000_000), 1_000_000);
  assert.equal(pieceBytes(1e12), 8_388_608);
});

test('of unequal nodes the one that lacks most for its rate sets the bound', () => {
  const rates = { network: 10, read: Infinity, write: Infinity };
  const old = { before: 100, after: 60, rates };
  const nodes = [old, old, { before: 0, after: 80, rates: { ...rates, network: 5 } }];
  assert.deepEqual([unequalBound(nodes, 1).seconds, unequalBound(nodes, 1).resource], [16, 'receive']);
});

test('holders read once for all copies, in the time that their writing leaves', () => {
  const rates = { network: Infinity, read: 10, write: 10 };
  const nodes = [
    { before: 120, after: 0, rates },
    { before: 120, after: 180, rates },
    { before: 120, after: 180, rates },
  ];
  // 120 bytes written and, for two copies each, 60 read, by three devices
  assert.deepEqual([unequalBound(nodes, 2).seconds, unequalBound(nodes, 2).resource], [6, 'write']);
  assert.equal(unequalBound(nodes, 2).terms.device, 6);
});
