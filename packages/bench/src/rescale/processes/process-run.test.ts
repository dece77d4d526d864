import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemClock } from '@webdfs/base';
import { UNIFORM } from '../distribution/uniform.ts';
import { filesOfOneSize } from '../file-sizes.ts';
import { membershipOf } from '../scenario.ts';
import { MIN_MAX } from '../schedulers/min-max.ts';
import { type ProcessSetup, runProcesses } from './process-run.ts';

const PIECE = 16_384;
const SCENARIO = { nodes: 2, change: 2, copies: 2, bytesPerNode: 40 * PIECE };

function setup(signal: AbortSignal): ProcessSetup {
  return {
    membership: membershipOf(SCENARIO),
    bytesPerNode: SCENARIO.bytesPerNode,
    rates: { network: 64 * PIECE, read: 256 * PIECE, write: 256 * PIECE },
    limits: { windowBytes: 4 * PIECE, keepBytes: 8 * PIECE, depth: 2 },
    storage: { kind: 'memory' },
    metadata: filesOfOneSize(PIECE),
    distribution: UNIFORM,
    scheduler: MIN_MAX,
    seed: 1,
    signal,
  };
}

test('processes move every copy over real sockets, intact, and not faster than their caps', async () => {
  const figures = await runProcesses(setup(new AbortController().signal));
  assert.deepEqual(figures.faults, []);
  assert.equal(figures.movedBytes, 40 * PIECE);
  // a burst of 20 ms may come on top
  assert.ok(
    figures.seconds > figures.planSeconds - 0.05,
    `${figures.seconds} s, the plan needs ${figures.planSeconds} s`,
  );
});

test('processes with drives do as well, and leave nothing behind', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-rescale-'));
  after(() => rm(folder, { recursive: true }));
  const storage = { kind: 'drive', folder, cached: false } as const;
  const figures = await runProcesses({ ...setup(new AbortController().signal), storage });
  assert.deepEqual(figures.faults, []);
  assert.equal(figures.movedBytes, 40 * PIECE);
  assert.deepEqual(await readdir(folder), []);
});

test('a run that is told to stop ends its processes and gives the reason', async () => {
  const controller = new AbortController();
  const slow = { ...setup(controller.signal), rates: { network: PIECE, read: Infinity, write: Infinity } };
  const run = runProcesses(slow);
  systemClock.after(1500, () => controller.abort(new Error('enough')));
  await assert.rejects(run, /enough/);
});
