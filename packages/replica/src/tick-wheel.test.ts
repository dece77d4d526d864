import assert from 'node:assert/strict';
import test from 'node:test';
import { ManualClock } from '@webdfs/base';
import { TickWheel } from './tick-wheel.ts';

function aWheel(): { clock: ManualClock; wheel: TickWheel<string>; due: string[] } {
  const clock = new ManualClock();
  const due: string[] = [];
  const wheel = new TickWheel<string>(clock, (things, at) => {
    for (const thing of things) due.push(`${thing}@${at}`);
  });
  return { clock, wheel, due };
}

test('things fall due once, never early, those of one slot together', () => {
  const { clock, wheel, due } = aWheel();
  wheel.put('late', 95);
  wheel.put('a', 21);
  wheel.put('b', 28);
  clock.advance(29);
  assert.deepEqual(due, []);
  clock.advance(1);
  assert.deepEqual(due, ['a@30', 'b@30']);
  clock.advance(1_000);
  assert.deepEqual(due, ['a@30', 'b@30', 'late@100']);
});

test('what is put down while things fall due is not lost', () => {
  const clock = new ManualClock();
  const due: number[] = [];
  const wheel = new TickWheel<number>(clock, (things, at) => {
    for (const thing of things) {
      due.push(thing);
      if (thing < 5) wheel.put(thing + 1, at + 20);
    }
  });
  wheel.put(1, 20);
  clock.advance(1_000);
  assert.deepEqual(due, [1, 2, 3, 4, 5]);
});

test('a stopped wheel hands out nothing', () => {
  const { clock, wheel, due } = aWheel();
  wheel.put('a', 20);
  wheel.stop();
  clock.advance(100);
  assert.deepEqual(due, []);
});
