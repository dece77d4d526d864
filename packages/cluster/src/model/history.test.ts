import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomOf } from '@webdfs/base/testing';
import { runHistory } from './run.ts';
import { type Flaw, FLAWS } from './world.ts';

/** Short runs of what `history.fuzz.ts` does for as long as one likes. */
const RUNS = 60;
const EVENTS = 400;

test('whatever happens to a map: ballots never go back, each has one meaning, and nothing told is lost', (t) => {
  const random = randomOf(t);
  let told = 0;
  for (let i = 0; i < RUNS; i++) {
    const seed = random.below(2 ** 31);
    const result = runHistory(seed, EVENTS);
    assert.equal(result.broken, undefined, `seed ${seed}, event ${result.events}`);
    told += result.told;
  }
  assert.ok(told > RUNS, `${told} entries were told: the runs are about nothing`);
});

test('so it is while the numbers of copies change, up and down, with targets that are replaced and given up', (t) => {
  const random = randomOf(t);
  let told = 0;
  let settled = 0;
  for (let i = 0; i < RUNS; i++) {
    const seed = random.below(2 ** 31);
    const result = runHistory(seed, EVENTS, { changesPolicies: true });
    assert.equal(result.broken, undefined, `seed ${seed}, event ${result.events}`);
    told += result.told;
    settled += result.policies;
  }
  assert.ok(
    told > RUNS && settled > RUNS / 10,
    `${told} entries told, ${settled} policies: the runs are about nothing`,
  );
});

/** For each rule a seed that shows what it is for. When events change, `history.fuzz.ts` finds others. */
const CAUGHT_BY: Readonly<Record<Flaw, number>> = {
  'marks are not compared': 1593,
  'the configuration is not compared': 567,
  'the session of a learner is not compared': 301,
  'the session of the primary is not compared': 433,
  'a learner counts before it is waited for': 645,
  'a slice is swept without being rewritten': 1159,
  'slices are swept while nodes are marked': 1026,
  'a new disk is registered without a mark': 1361,
  'a mark forgets those before it': 1729,
  'marks are removed early': 174,
  'a primary that moves away goes on serving': 311,
  'nobody waits for a fenced primary': 207,
  'an override forgets who may still serve': 109,
  'eligible nodes stay so when enough are in sync': 1440,
};

for (const flaw of FLAWS) {
  test(`it is noticed when ${flaw}`, () => {
    assert.notEqual(runHistory(CAUGHT_BY[flaw], 600, { flaw }).broken, undefined);
    assert.equal(runHistory(CAUGHT_BY[flaw], 600).broken, undefined);
  });
}
