import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomOf } from '@webdfs/base/testing';
import { type RunOptions, runSeed } from './run.ts';

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

/** Runs that failed once, for what is said of them; the bugs have tests of their own beside the code, where these could be small. */
const ONCE_BROKEN: readonly (RunOptions & { readonly claim: string })[] = [
  {
    seed: 32,
    badMs: 12_000,
    claim: 'a block whose own entry is damaged is repaired, and its group’s garbage collected',
  },
  {
    seed: 5_027,
    badMs: 5_000,
    faults: ['write-fails', 'sync-fails'],
    claim: 'a member that was restarted while the last commit point was told learns of it, though its group is idle',
  },
  {
    seed: 58,
    badMs: 3_000,
    claim: 'a node whose tail of a group is damaged catches up again, instead of ending at every start',
  },
];

for (const { claim, ...options } of ONCE_BROKEN) {
  test(`seed ${options.seed}: ${claim}`, async () => {
    const { failure } = await runSeed(options);
    assert.equal(failure, undefined, failure?.message);
  });
}
