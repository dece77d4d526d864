import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type Mutant, MUTANTS } from './mutants.ts';
import { runSeed } from './run.ts';
import { type SourceMutant, SOURCE_MUTANTS, type SourceMutantName } from './source-mutants.ts';

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

test('every rule that can be taken out of the code stands there once', () => {
  for (const [name, { edits }] of Object.entries<SourceMutant>(SOURCE_MUTANTS)) {
    for (const { file, find } of edits) {
      const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      assert.equal(source.split(find).length, 2, `${name}: ${file}: ${find}`);
    }
  }
});

/** The rest is run by `npm run sim -- --mutants`. */
const QUICK: readonly (readonly [name: SourceMutantName, seed: number])[] = [
  ['acknowledged by all but one', 4],
  ['eligible nodes stay so with minCopies', 32],
];

for (const [name, seed] of QUICK) {
  test(`it is missed where ${name}`, async () => {
    const child = fork(new URL('main.ts', import.meta.url), ['--mutant', name, '--seed', `${seed}`], {
      stdio: 'ignore',
    });
    assert.equal(await new Promise((resolve) => child.on('exit', resolve)), 1);
  });
}
