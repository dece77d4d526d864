import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '@webdfs/base';
import { Rate } from './rate.ts';
import { Turns } from './turns.ts';

test('no more than the limit run at once, all run, in the order in which they came, also where some fail', async () => {
  const turns = new Turns(3);
  let running = 0;
  let most = 0;
  const order: number[] = [];
  const all = Array.from({ length: 20 }, (_, i) =>
    turns.run(async () => {
      order.push(i);
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      if (i % 5 === 0) throw new Error('one in five');
    }),
  );
  const settled = await Promise.allSettled(all);
  assert.equal(most, 3);
  assert.deepEqual(
    order,
    [...order].toSorted((a, b) => a - b),
  );
  assert.equal(settled.filter(({ status }) => status === 'rejected').length, 4);
  assert.equal(turns.running, 0);
});

test('of those that wait, the first in rank is next', async () => {
  const turns = new Turns(1);
  const order: number[] = [];
  const ranks = [0, 3, 1, 2, 1, 0];
  await Promise.all(ranks.map((rank, i) => turns.run(async () => void order.push(i), rank)));
  assert.deepEqual(order, [0, 5, 2, 4, 3, 1]);
});

test('a rate is that of the last seconds, and falls to nothing when nothing moves', () => {
  const clock = new ManualClock();
  const rate = new Rate(clock);
  assert.equal(rate.perSecond(0), 0);
  for (let second = 1; second <= 10; second++) {
    clock.advance(1_000);
    assert.equal(rate.perSecond(second * 500), 500);
  }
  for (let second = 0; second < 10; second++) {
    clock.advance(1_000);
    rate.perSecond(5_000);
  }
  assert.equal(rate.perSecond(5_000), 0);
});
