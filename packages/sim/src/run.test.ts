import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomOf } from '@webdfs/base/testing';
import { runSeed } from './run.ts';

const BRIEF = { badMs: 3_000, logLevel: 'warn' } as const;

test('the same seed gives the same run, to the last happening', async () => {
  const [first, second] = [await runSeed({ seed: 12, ...BRIEF }), await runSeed({ seed: 12, ...BRIEF })];
  assert.equal(first.failure, undefined, first.failure?.message);
  assert.deepEqual(first, second);
  const other = await runSeed({ seed: 13, ...BRIEF });
  assert.notEqual(other.digest, first.digest);
});

test('fresh seeds: nothing acknowledged is lost, nothing old or damaged is shown, and the cluster becomes whole', async (t) => {
  const random = randomOf(t);
  for (let i = 0; i < 3; i++) {
    const seed = random.below(1_000_000_000);
    const { failure, operations, faults } = await runSeed({ seed, ...BRIEF });
    t.diagnostic(`seed ${seed}: ${operations} operations, ${faults} faults`);
    assert.equal(failure, undefined, `npm run sim -- --seed ${seed} --bad-ms ${BRIEF.badMs}: ${failure?.message}`);
  }
});
