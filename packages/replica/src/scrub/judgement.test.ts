import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { judge, type Witness } from './judgement.ts';
import type { Look } from './look-codec.ts';

const NOTHING_KNOWN = { buriedAt: 0, isNamed: false };

function intact(sequence: number, check = 7): Look {
  return { state: 'intact', sequence, bytes: 10, check, commit: 100 };
}

function damaged(sequence: number): Look {
  return { state: 'damaged', sequence, bytes: 10, check: 0, commit: 100 };
}

const ABSENT: Look = { state: 'absent', sequence: 0, bytes: 0, check: 0, commit: 100 };

/** Nodes 1, 2, 3 …, the first of them primary. */
function say(...looks: Look[]): Witness[] {
  return looks.map((look, i) => ({ node: asNodeId(i + 1), look, suspect: false }));
}

test('what all have alike is held by all', () => {
  const judgement = judge(say(intact(5), intact(5), intact(5)), NOTHING_KNOWN);
  assert.deepEqual(judgement, { type: 'held', sequence: 5, check: 7, good: [1, 2, 3], wrong: [] });
});

test('each sort of wrong copy is told by its name', () => {
  const judgement = judge(say(intact(5), ABSENT, damaged(5), intact(4), intact(5, 8), intact(5)), NOTHING_KNOWN);
  assert.deepEqual(judgement, {
    type: 'held',
    sequence: 5,
    check: 7,
    good: [1, 6],
    wrong: [
      { node: 2, fault: 'missing' },
      { node: 3, fault: 'damaged' },
      { node: 4, fault: 'stale' },
      { node: 5, fault: 'differs' },
    ],
  });
});

test('a primary that has lost what two others have gets it back', () => {
  const judgement = judge(say(ABSENT, intact(5), intact(5)), NOTHING_KNOWN);
  assert.deepEqual(judgement.type === 'held' && judgement.wrong, [{ node: 1, fault: 'missing' }]);
});

test('an older version at the primary is stale, however it came there', () => {
  const judgement = judge(say(intact(4), intact(5), ABSENT), NOTHING_KNOWN);
  assert.deepEqual(judgement.type === 'held' && judgement.good, [2]);
});

test('the only copy is not destroyed because the others have none', () => {
  assert.equal(judge(say(ABSENT, ABSENT, intact(5)), NOTHING_KNOWN).type, 'disputed');
});

test('a member whose disk has lost entries does not vouch for what it lacks', () => {
  const witnesses = say(ABSENT, intact(5)).map((one, i) => ({ ...one, suspect: i === 0 }));
  assert.equal(judge(witnesses, NOTHING_KNOWN).type, 'held');
  assert.equal(judge(say(ABSENT, intact(5)), NOTHING_KNOWN).type, 'disputed');
});

test('a tombstone above the row makes its copies surplus, one below it does not', () => {
  const looks = say(ABSENT, ABSENT, intact(5));
  const gone = judge(looks, { buriedAt: 6, isNamed: false });
  assert.deepEqual(gone, { type: 'gone', wrong: [{ node: 3, fault: 'surplus' }] });
  assert.equal(judge(looks, { buriedAt: 4, isNamed: false }).type, 'disputed');
});

test('a block that a record names is never given up while somebody has it', () => {
  assert.equal(judge(say(ABSENT, ABSENT, intact(5)), { buriedAt: 0, isNamed: true }).type, 'held');
});

test('two that contradict each other are disputed, three have a majority', () => {
  assert.equal(judge(say(intact(5, 1), intact(5, 2)), NOTHING_KNOWN).type, 'disputed');
  const judgement = judge(say(intact(5, 1), intact(5, 2), intact(5, 2)), NOTHING_KNOWN);
  assert.deepEqual(judgement.type === 'held' && judgement.wrong, [{ node: 1, fault: 'differs' }]);
});

test('whatever members say: nobody is both right and wrong, and nothing goes without a tombstone', (t) => {
  const random = randomOf(t);
  const some = [ABSENT, intact(4), intact(5), intact(5, 8), intact(6), damaged(5), damaged(6)];
  for (let round = 0; round < 5_000; round++) {
    const looks = Array.from({ length: 1 + random.below(5) }, () => some[random.below(some.length)]!);
    const witnesses = say(...looks).map((one) => ({ ...one, suspect: random.below(4) === 0 }));
    const buriedAt = random.below(2) * random.below(8);
    const judgement = judge(witnesses, { buriedAt, isNamed: random.below(2) === 0 });
    const newest = Math.max(...looks.map(({ sequence }) => sequence));
    if (judgement.type === 'gone') assert.ok(newest === 0 || buriedAt > newest);
    if (judgement.type !== 'held') continue;
    assert.equal(judgement.sequence, newest);
    const all = [...judgement.good, ...judgement.wrong.map(({ node }) => node)];
    assert.deepEqual(
      all.toSorted((a, b) => a - b),
      witnesses.map(({ node }) => node),
    );
    for (const node of judgement.good) {
      const { look } = witnesses[node - 1]!;
      assert.ok(look.state === 'intact' && look.sequence === newest && look.check === judgement.check);
    }
  }
});
