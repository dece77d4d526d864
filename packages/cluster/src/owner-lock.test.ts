import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf } from '@webdfs/base';
import { randomOf, SimulatedDisk } from '@webdfs/base/testing';
import { OwnerLock } from './owner-lock.ts';
import type { ProcessTable } from './process-table.ts';

function aProcess(pid: number, gone: ReadonlySet<number>): ProcessTable {
  return { own: async () => ({ pid, start: '1', boot: 'b-o-o-t' }), gone: async (mark) => gone.has(mark.pid) };
}

test('of several that contend at once, after a crash or not, never two own the folder', async (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 60; round++) {
    const disk = new SimulatedDisk({ seed: random.below(2 ** 31) });
    const gone = new Set([1]);
    if (round % 2 === 0) await OwnerLock.take(disk, '/map', aProcess(1, new Set()));
    const outcomes = await Promise.allSettled(
      [2, 3, 4].map((pid) => OwnerLock.take(disk, '/map', aProcess(pid, gone))),
    );
    const owners = outcomes.filter(({ status }) => status === 'fulfilled');
    assert.ok(owners.length <= 1, `${owners.length} owners`);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.equal(codeOf(outcome.reason), 'LOCKED');
    }
    // those that gave way left nothing behind
    assert.equal((await disk.list('/map')).length, owners.length);
  }
});

test('a lock that is given up is free', async () => {
  const disk = new SimulatedDisk({ seed: 1 });
  const first = await OwnerLock.take(disk, '/map', aProcess(1, new Set()));
  await assert.rejects(OwnerLock.take(disk, '/map', aProcess(2, new Set())), { code: 'LOCKED', details: { pid: 1 } });
  await first[Symbol.asyncDispose]();
  await OwnerLock.take(disk, '/map', aProcess(2, new Set()));
});
