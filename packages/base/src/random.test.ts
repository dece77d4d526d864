import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHex } from './bytes.ts';
import { SystemRandom } from './random.ts';

test('ids drawn from the system never meet, within a block of the kernel and across blocks', () => {
  const random = new SystemRandom();
  const ids = new Set<string>();
  for (let i = 0; i < 1_000; i++) ids.add(toHex(random.bytes(16)));
  assert.equal(ids.size, 1_000);
});

test('bytes that were handed out stay as they were when more are drawn', () => {
  const random = new SystemRandom();
  const first = random.bytes(16);
  const before = toHex(first);
  for (let i = 0; i < 600; i++) random.bytes(16);
  assert.equal(toHex(first), before);
});

test('fractions of the system lie in [0, 1) on both sides of the middle', () => {
  const random = new SystemRandom();
  const fractions = Array.from({ length: 200 }, () => random.fraction());
  assert.ok(fractions.every((fraction) => fraction >= 0 && fraction < 1));
  assert.ok(fractions.some((fraction) => fraction < 0.5) && fractions.some((fraction) => fraction > 0.5));
});
