import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asPolicyId, groupNumber, utf8 } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { FAULTS } from './judgement.ts';
import { adopt, dueAt, emptyState, keep, MOST_AHEAD_MS, packState, type PassState, unpackState } from './pass.ts';
import { emptyTally, MAX_NODE_PROBLEMS, type Tally } from './tally.ts';

const NOW = 1_800_000_000_000;

function aTally(below: (bound: number) => number): Tally {
  const tally = emptyTally();
  tally.objects.push(0, below(3), below(9));
  tally.bytes = below(1_000);
  if (below(2) === 0) return tally;
  for (const fault of FAULTS) tally.found[fault] = below(3);
  tally.left = 1 + below(3);
  tally.omitted = below(2);
  const wrong = [{ node: 2, fault: 'stale' as const }];
  tally.problems.push({
    policy: 1,
    group: 2,
    key: 'ff',
    what: 'block 3',
    copies: 1,
    wrong,
    mended: false,
    why: 'because',
  });
  return tally;
}

function aState(below: (bound: number) => number): PassState {
  const state = emptyState();
  adopt(state, { id: NOW, bytesPerSecond: 5_000_000 }, NOW);
  for (let group = 0; group < 50; group++) {
    const number = groupNumber({ policy: asPolicyId(1 + below(2)), group: asGroupId(below(1_000)) });
    state.results.set(number, { members: '3,1,2', tally: aTally(below) });
  }
  state.volumes.add(7).add(9);
  state.areVolumesRead = below(2) === 0;
  state.completion = { pass: 5, atMs: 6, objects: 7, clean: false };
  return state;
}

test('what is kept on the disk is what is found there', (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 20; round++) {
    const state = aState((bound) => random.below(bound));
    assert.deepEqual(unpackState(packState(state)), state);
  }
});

test('what is not understood is counted anew, whatever it is', (t) => {
  const random = randomOf(t);
  for (const text of ['', 'null', '[]', '{"format":2}', '{"format":1,"pass":{"id":-1}}']) {
    assert.deepEqual(unpackState(utf8(text)), emptyState());
  }
  const whole = packState(aState((bound) => random.below(bound)));
  for (let round = 0; round < 500; round++) {
    const bytes = whole.slice();
    for (let count = 0; count < 3; count++) bytes[random.below(bytes.length)] = random.below(128);
    for (const { tally } of unpackState(bytes).results.values()) {
      assert.ok(tally.objects.every((count) => count >= 0 && Number.isFinite(count)));
    }
  }
});

test('a later pass begins anew, an earlier or the same one changes nothing', () => {
  const state = aState(() => 0);
  assert.equal(adopt(state, { id: NOW, bytesPerSecond: 9_000_000 }, NOW), false);
  assert.equal(adopt(state, { id: NOW - 1, bytesPerSecond: 9_000_000 }, NOW), false);
  assert.equal(state.results.size > 0, true);
  assert.equal(adopt(state, { id: NOW + 1, bytesPerSecond: 9_000_000 }, NOW), true);
  assert.deepEqual([state.results.size, state.volumes.size, state.areVolumesRead], [0, 0, false]);
});

test('a pass of the future is refused, or no other could begin until then', () => {
  const late = { id: NOW + MOST_AHEAD_MS + 1, bytesPerSecond: 9_000_000 };
  assert.throws(() => adopt(emptyState(), late, NOW), { code: 'INVALID' });
});

test('a node names so many problems, and counts the others', () => {
  const state = emptyState();
  const problem = { policy: 1, group: 2, key: 'ff', what: 'record', copies: 1, wrong: [], mended: false };
  const groups = MAX_NODE_PROBLEMS / 10 + 5;
  for (let group = 0; group < groups; group++) {
    const tally = { ...emptyTally(), problems: Array.from({ length: 10 }, () => problem) };
    keep(state, group, { members: '1', tally });
    keep(state, group, { members: '1', tally });
  }
  const tallies = [...state.results.values()].map(({ tally }) => tally);
  assert.equal(tallies.flatMap(({ problems }) => problems).length, MAX_NODE_PROBLEMS);
  assert.equal(
    tallies.reduce((sum, { omitted }) => sum + omitted, 0),
    50,
  );
});

test('all nodes name the pass that is due alike, and one that is never due not at all', () => {
  assert.equal(dueAt(NOW + 5, 604_800_000), dueAt(NOW + 70_000, 604_800_000));
  assert.equal(dueAt(NOW, Number.POSITIVE_INFINITY), 0);
});
