import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom } from '@webdfs/base';
import { type DiskOperation, seedOf } from '@webdfs/base/testing';
import { CrashPoints } from './simulation/crash-points.ts';
import { History } from './simulation/history.ts';

/** The long version, `crash.fuzz.ts`, runs thousands. */
const HISTORIES = 6;

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

/** Histories that once went wrong. What they do changes with the simulation; what was wrong has tests of its own. */
const FAILED = [200_147, 200_190, 200_242, 200_301, 200_333, 500_232, 700_012];
const ROTTEN = 700_147;

test('histories that went wrong once do not again', async (t) => {
  for (const seed of FAILED) {
    t.diagnostic(`history ${seed}`);
    await new History({ seed, points: new CrashPoints() }).run();
  }
  await new History({ seed: ROTTEN, points: new CrashPoints(), rot: true }).run();
});

test('whatever bits of durable bytes turn over, no wrong byte is answered and nothing is lost in silence', async (t) => {
  const seeds = new SeededRandom(seedOf(t));
  const points = new CrashPoints();
  for (let i = 0; i < HISTORIES; i++) {
    const seed = seeds.uint32();
    t.diagnostic(`history ${seed}`);
    await new History({ seed, points, rot: true }).run();
  }
  assert.ok(points.totals.flips > 0);
  assert.ok(points.totals.damaged > 0);
});

/** Mutants: a step of the store that the disk makes ineffective. The simulation must see each, or it sees nothing. */
const MUTANTS: Record<string, (operation: DiskOperation) => boolean> = {
  'commits are not synced': ({ action, path }) => action === 'datasync' && path.endsWith('.vol'),
  'folders are not synced': ({ action }) => action === 'syncFolder',
  'the index is not synced before a volume goes': ({ action, path }) =>
    action === 'datasync' && path.includes('/index'),
};

for (const [mutant, lies] of Object.entries(MUTANTS)) {
  test(`the simulation sees when ${mutant}`, async (t) => {
    const seeds = new SeededRandom(seedOf(t));
    for (let tries = 1; ; tries++) {
      assert.ok(tries <= 100, `not seen in ${tries} histories`);
      try {
        await new History({ seed: seeds.uint32(), points: new CrashPoints(), lies }).run();
      } catch {
        t.diagnostic(`seen in history ${tries}`);
        return;
      }
    }
  });
}
