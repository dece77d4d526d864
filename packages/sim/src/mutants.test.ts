import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Mutant, MUTANTS } from './mutants.ts';
import { runSeed } from './run.ts';

/** A cluster that is broken so is seen to be within so many seeds, from `first` on, of so many milliseconds. */
const CAUGHT: Readonly<Record<keyof typeof MUTANTS, { first: number; within: number; badMs: number }>> = {
  'drops an acknowledged write': { first: 2, within: 3, badMs: 3_000 },
  'serves a stale read': { first: 2, within: 3, badMs: 3_000 },
  'loses a compare-and-swap': { first: 2, within: 3, badMs: 3_000 },
  'forgets a sync': { first: 2, within: 3, badMs: 3_000 },
  'promotes a stale member': { first: 11, within: 6, badMs: 8_000 },
};

for (const [name, mutant] of Object.entries(MUTANTS) as [keyof typeof MUTANTS, Mutant][]) {
  const { first, within, badMs } = CAUGHT[name];
  test(`a cluster that ${name} is caught within ${within} seeds`, async (t) => {
    for (let seed = first; seed < first + within; seed++) {
      const { failure } = await runSeed({ seed, badMs, ...mutant });
      if (failure === undefined) continue;
      t.diagnostic(`seed ${seed}: ${failure.message}`);
      return;
    }
    assert.fail('not caught');
  });
}
