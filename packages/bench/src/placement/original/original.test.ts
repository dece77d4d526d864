import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { contestantsOf } from '../contestant.ts';
import { dropNode, subclustersOf } from '../layout.ts';
import { loadsOf, partnersOf } from '../placed.ts';
import { foundingSetup } from '../setups.ts';
import { Trial } from '../trials.ts';
import { AdditiveRandom } from './additive-random.ts';
import { MersenneTwister, scaleDraw } from './mersenne-twister.ts';
import { ORIGINAL_KEYS, originalKey, originalRushP, originalRushR } from './original-locators.ts';
import { originalKeys, originalNames } from './original-names.ts';
import { PUBLISHED_PARTNERS_RUSH_R, PUBLISHED_RUSH_R } from './published.ts';

const DISKS = Array.from({ length: 15 }, (_, i) => i + 1);
const setup = foundingSetup(10_000);
const [rushR, rushP] = contestantsOf(['original-rush-r', 'original-rush-p']).map(
  (contestant) => new Trial(contestant, setup, 0),
);
const changeOf = (id: string): (typeof setup.changes)[number] => setup.changes.find((change) => change.id === id)!;

test('without its defect the twister is the published one', () => {
  const twister = new MersenneTwister(5489, { twist: 'right' });
  assert.deepEqual([twister.uint32(), twister.uint32()], [3_499_211_612, 581_869_302]);
  for (let i = 2; i < 9999; i++) twister.uint32();
  assert.equal(twister.uint32(), 4_123_659_995, 'the 10 000th');
});

test('the defect shows only where the low bits of two words differ', () => {
  const right = new MersenneTwister(1, { twist: 'right' });
  const defect = new MersenneTwister(1, { twist: 'php5' });
  const same = Array.from({ length: 200 }, () => right.uint32() === defect.uint32()).filter(Boolean).length;
  assert.ok(same > 60 && same < 140, `${same} of 200`);
});

test('the C library generator gives the sequence that everybody knows', () => {
  const random = new AdditiveRandom();
  random.seed(1);
  assert.deepEqual([random.uint31(), random.uint31(), random.uint31()], [1_804_289_383, 846_930_886, 1_681_692_777]);
});

test('a range is scaled, never taken modulo, and has both its ends', () => {
  assert.equal(scaleDraw(0, 3, 9), 3);
  assert.equal(scaleDraw(0x7fff_ffff, 3, 9), 9);
});

test('a key has 15 bits, so that 10 000 names share 8 600', () => {
  assert.equal(originalNames()[0], 'C7C30570-A0BE-4070-A3AE-73F256CE22DB');
  assert.equal(new Set(originalKeys()).size, 8600);
  assert.ok(originalKeys().every((key) => key < ORIGINAL_KEYS));
  assert.equal(originalKey('123456789'), (0xcbf43926 >>> 16) & 0x7fff);
});

test('RUSH_R of 2009 spreads its objects over the disks as published, to the digit', () => {
  const loads = loadsOf(rushR!.place(setup.subclusters));
  assert.deepEqual(
    DISKS.map((disk) => loads.get(disk)),
    [...PUBLISHED_RUSH_R.distribution],
  );
});

for (const [id, total] of [
  ['add-8', 15_935],
  ['drain', 5581],
  ['reweight', 5368],
  ['remove-1', 2762],
] as const) {
  test(`RUSH_R of 2009 moves ${total} copies, and from each disk as published: ${changeOf(id).title}`, () => {
    const moves = rushR!.compare(changeOf(id));
    const published = PUBLISHED_RUSH_R[id === 'add-8' ? 'add' : id];
    assert.equal(moves.count, total);
    assert.deepEqual(
      DISKS.map((disk) => moves.from.get(disk) ?? 0),
      [...published],
    );
  });
}

for (const disk of [1, 7, 15] as const) {
  test(`RUSH_R of 2009 shares the objects of disk ${disk} with the others as published, to the digit`, () => {
    const partners = partnersOf(rushR!.place(setup.subclusters), asNodeId(disk));
    assert.deepEqual(
      DISKS.map((other) => partners.get(other) ?? 0),
      [...PUBLISHED_PARTNERS_RUSH_R[disk]],
    );
  });
}

test('the figures hang on the defect of PHP 5: its corrected twister gives others', () => {
  const keys = originalKeys();
  const subclusters = subclustersOf([1, 2, 4], 5).map(({ nodes }, i) => ({
    weight: 2 ** i,
    disks: nodes.map(({ id }) => id),
  }));
  const locate = originalRushR(subclusters, 3, 'right');
  const held = [...keys].filter((key) => locate(key).includes(1)).length;
  assert.notEqual(held, PUBLISHED_RUSH_R.distribution[0]);
});

test('RUSH_P of 2009 moves nearly everything, as counted with the names of RUSH_R', () => {
  const counts = (id: string): number[] => {
    const moves = rushP!.compare(changeOf(id));
    return [moves.ranks, moves.count];
  };
  assert.deepEqual(counts('drop'), [27_606, 21_583]);
  assert.deepEqual(counts('remove-15'), [16_632, 14_058]);
  assert.deepEqual(counts('reweight-last'), [16_567, 13_151]);
  assert.equal(counts('drain')[1], 21_065);
});

test('dropping the entry costs RUSH_R of 2009 as much as RUSH_P: seeds are positions', () => {
  assert.equal(rushR!.compare(changeOf('drop')).count, 21_782);
});

test('the primes of 2009 may divide: small sub-clusters put two copies on one disk', () => {
  const locate = originalRushP(
    [
      { weight: 1, disks: [1, 2, 3, 4, 5] },
      { weight: 1, disks: [6] },
      { weight: 1, disks: [7] },
    ],
    4,
  );
  const keys = Array.from({ length: ORIGINAL_KEYS }, (_, key) => key);
  const doubled = keys.filter((key) => new Set(locate(key)).size < 4).length / keys.length;
  assert.ok(doubled > 0.14 && doubled < 0.22, `${doubled}`);
});

test('what a locator of 2009 cannot express is refused: weights inside a sub-cluster, racks, more groups than names', () => {
  const [contestant] = contestantsOf(['original-rush-r']);
  const task = { subclusters: setup.subclusters, copies: 3, groupCount: 10_000, seed: 0 };
  assert.equal(contestant!.refusal(task), undefined);
  assert.equal(contestant!.refusal({ ...task, subclusters: dropNode(setup.subclusters, asNodeId(1)) }), undefined);
  assert.match(contestant!.refusal({ ...task, subclusters: changeOf('drain-7').after })!, /one weight/);
  assert.match(contestant!.refusal({ ...task, domain: 'rack' })!, /racks/);
  assert.match(contestant!.refusal({ ...task, groupCount: 10_001 })!, /10000 objects/);
});
