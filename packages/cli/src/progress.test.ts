import assert from 'node:assert/strict';
import { test } from 'node:test';
import { progressLine } from './progress.ts';

const MIB = 1024 * 1024;

test('a bar shows share, bytes, rate and time left', () => {
  const line = progressLine({ label: 'film', done: 25 * MIB, total: 100 * MIB, seconds: 5, columns: 120 });
  assert.equal(line, 'film  [######..................] 25 %  25.0 MiB of 100.0 MiB  5.0 MiB/s  15 s left');
});

test('without a known end there is no bar, and nothing is wider than the terminal', () => {
  assert.equal(
    progressLine({ label: '-', done: MIB, total: undefined, seconds: 1, columns: 80 }),
    '-  1.0 MiB  1.0 MiB/s',
  );
  const long = progressLine({ label: 'x'.repeat(300), done: 1, total: 2, seconds: 1, columns: 80 });
  assert.ok(long.length < 80);
  assert.ok(long.includes('50 %'));
});
