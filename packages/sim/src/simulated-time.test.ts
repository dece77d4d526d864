import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomOf } from '@webdfs/base/testing';
import { MachineClock } from './machine-clock.ts';
import { SimulatedTime } from './simulated-time.ts';

test('things happen in the order of their time, those of one instant in the order in which they were asked for', async (t) => {
  const random = randomOf(t);
  const time = new SimulatedTime();
  const expected: { at: number; number: number }[] = [];
  const happened: number[] = [];
  for (let number = 0; number < 500; number++) {
    const at = random.below(50);
    const timer = time.after(at, random.below(3), () => void happened.push(number));
    if (random.below(5) === 0) timer.cancel();
    else expected.push({ at, number });
  }
  await time.run(100);
  expected.sort((a, b) => a.at - b.at || a.number - b.number);
  assert.deepEqual(
    happened,
    expected.map(({ number }) => number),
  );
  assert.equal(time.now, 100);
});

test('all that follows from one happening at once comes before the next', async () => {
  const time = new SimulatedTime();
  const seen: string[] = [];
  const follow = async (name: string): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
    seen.push(name);
  };
  time.after(1, 0, () => void follow('first'));
  time.after(1, 0, () => void follow('second'));
  await time.run(1);
  assert.deepEqual(seen, ['first', 'second']);
});

test('a machine that stands still does nothing, then everything that was due; one that slept has lost that time', async () => {
  for (const asleep of [false, true]) {
    const time = new SimulatedTime();
    const clock = new MachineClock(time, 1, 0);
    const wall = clock.now();
    const seen: number[] = [];
    clock.after(10, () => void seen.push(time.now));
    clock.after(100, () => void seen.push(time.now));
    clock.pause(asleep);
    await time.run(50);
    assert.deepEqual(seen, []);
    clock.resume();
    await time.run(300);
    // awake its monotonic clock went on; asleep its timers are late by the time it slept
    assert.deepEqual(seen, asleep ? [60, 150] : [50, 100]);
    assert.equal(clock.monotonic(), asleep ? 250 : 300);
    assert.equal(clock.now() - wall, 300);
  }
});

test('timers of a life end with it, and a fast clock is early', async () => {
  const time = new SimulatedTime();
  const clock = new MachineClock(time, 1, 0);
  clock.drift(2);
  const life = clock.life();
  const seen: string[] = [];
  life.after(10, () => void seen.push(`life ${time.now}`));
  life.after(40, () => void seen.push('after its end'));
  await time.run(10);
  life.end();
  life.soon(() => void seen.push('after its end'));
  await time.run(100);
  assert.deepEqual(seen, ['life 5']);
});
