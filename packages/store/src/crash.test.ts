import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { CrashPoints } from './simulation/crash-points.ts';
import { History } from './simulation/history.ts';

/** The long version, `crash.fuzz.ts`, runs thousands. */
const HISTORIES = 10;

test('after any crash all that was answered is there, byte by byte, and nothing else', async (t) => {
  const seeds = new SeededRandom(seedOf(t));
  const points = new CrashPoints();
  for (let i = 0; i < HISTORIES; i++) {
    const seed = seeds.uint32();
    t.diagnostic(`history ${seed}`);
    await new History({ seed, points }).run();
  }
  assert.ok(points.totals.kill + points.totals.power >= HISTORIES);
});

test('a disk whose syncs do nothing is found out', async (t) => {
  const seeds = new SeededRandom(seedOf(t));
  for (let tries = 1; ; tries++) {
    assert.ok(tries <= 40, 'the simulation sees a disk that lies');
    try {
      await new History({ seed: seeds.uint32(), points: new CrashPoints(), syncs: 'lie' }).run();
    } catch {
      t.diagnostic(`found in history ${tries}`);
      return;
    }
  }
});
