import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asNodeId, asPolicyId, ManualClock, SeededRandom } from '@webdfs/base';
import { isOutOfOrder, lacking, Pauses } from './learner-needs.ts';

const nodes = (...ids: number[]): ReturnType<typeof asNodeId>[] => ids.map(asNodeId);

test('a group lacks the nodes of its goal that are not in sync, but not those that are eligible', () => {
  assert.deepEqual(lacking({ goal: nodes(1, 2, 3), inSync: nodes(2), eligible: [] }), nodes(1, 3));
  assert.deepEqual(lacking({ goal: nodes(1, 2, 3), inSync: nodes(2), eligible: nodes(3) }), nodes(1));
  assert.deepEqual(lacking({ goal: nodes(1, 2), inSync: nodes(2, 1, 4), eligible: [] }), []);
});

test('a group is out of order only when all of its goal are in sync, in another order or with others', () => {
  assert.equal(isOutOfOrder({ goal: nodes(1, 2, 3), inSync: nodes(1, 2, 3) }), false);
  assert.equal(isOutOfOrder({ goal: nodes(1, 2, 3), inSync: nodes(2, 1, 3) }), true);
  assert.equal(isOutOfOrder({ goal: nodes(1, 2, 3), inSync: nodes(1, 2, 3, 4) }), true);
  assert.equal(isOutOfOrder({ goal: nodes(1, 2, 3), inSync: nodes(2, 1) }), false);
  assert.equal(isOutOfOrder({ goal: [], inSync: nodes(1) }), false);
});

test('pauses double with each failure up to their limit, and begin anew after a success or a long quiet', () => {
  const clock = new ManualClock();
  const pauses = new Pauses({ clock, random: new SeededRandom(1) }, { firstPauseMs: 100, lastPauseMs: 800 });
  const key = { policy: asPolicyId(1), group: asGroupId(1) };
  const node = asNodeId(2);
  const lengths: number[] = [];
  for (let i = 0; i < 6; i++) {
    pauses.lengthen(key, node);
    let ms = 0;
    for (; pauses.isPaused(key, node); ms++) clock.advance(1);
    lengths.push(ms);
  }
  for (const [i, expected] of [100, 200, 400, 800, 800, 800].entries()) {
    assert.ok(lengths[i]! >= expected / 2 && lengths[i]! <= expected * 1.5 + 1, lengths.join(' '));
  }
  pauses.forget(key, node);
  pauses.lengthen(key, node);
  clock.advance(151);
  assert.equal(pauses.isPaused(key, node), false);
  clock.advance(1_000);
  pauses.expire();
  pauses.lengthen(key, node);
  clock.advance(151);
  assert.equal(pauses.isPaused(key, node), false);
});
