import assert from 'node:assert/strict';
import { test } from 'node:test';
import { usageOf } from './process-usage.ts';

test(
  'the CPU time of this process grows as it works, and its memory is not nothing',
  { skip: process.platform !== 'linux' },
  () => {
    const before = usageOf([process.pid]);
    const until = process.cpuUsage().user + 100_000;
    let sum = 0;
    while (process.cpuUsage().user < until) sum += Math.sqrt(sum + 1);
    const after = usageOf([process.pid]);
    assert.ok(after.cpuMs - before.cpuMs >= 50, `${after.cpuMs - before.cpuMs} ms`);
    assert.ok(after.anonymousBytes > 1024 * 1024);
  },
);

test('a process that is gone voids the measurement', () => {
  assert.throws(() => usageOf([2 ** 22 + 1]));
});
