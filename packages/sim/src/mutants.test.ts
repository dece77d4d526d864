import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Mutant, MUTANTS } from './mutants.ts';
import { runSeed } from './run.ts';

/** Seeds from 1 on within which a broken cluster is seen to be broken. */
const CAUGHT_WITHIN: Readonly<Record<keyof typeof MUTANTS, number>> = {
  'drops an acknowledged write': 2,
  'serves a stale read': 2,
  'loses a compare-and-swap': 3,
  'forgets a sync': 3,
  'promotes a stale member': 6,
};

for (const [name, mutant] of Object.entries(MUTANTS) as [keyof typeof MUTANTS, Mutant][]) {
  test(`a cluster that ${name} is caught within ${CAUGHT_WITHIN[name]} seeds`, async (t) => {
    for (let seed = 1; seed <= CAUGHT_WITHIN[name]; seed++) {
      const { failure } = await runSeed({ seed, ...mutant });
      if (failure === undefined) continue;
      t.diagnostic(`seed ${seed}: ${failure.message}`);
      return;
    }
    assert.fail('not caught');
  });
}
