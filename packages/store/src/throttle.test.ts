import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, ManualClock } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { Throttle } from './throttle.ts';

/** Lets promises that are ready go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
}

test('never more goes through than rate times time, but for one burst and one step', async (t) => {
  const random = randomOf(t);
  const clock = new ManualClock();
  const throttle = new Throttle({ clock, bytesPerSecond: 1000 });
  let through = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      const bytes = 1 + random.below(400);
      await throttle.take(bytes);
      through += bytes;
    }
  };
  void work();
  for (let elapsed = 0; elapsed <= 20_000; elapsed += 100) {
    assert.ok(through <= elapsed + 200 + 400, `${through} bytes in ${elapsed} ms`);
    await settle();
    clock.advance(100);
  }
  await settle();
  assert.ok(through > 19_000, `${through} bytes in 20 s`);
});

test('a throttle waits while others are busy, though not for ever, and not at all when it is urgent', async () => {
  const clock = new ManualClock();
  let busy = true;
  let urgent = false;
  const throttle = new Throttle({ clock, bytesPerSecond: Infinity, busy: () => busy, urgent: () => urgent });
  const steps = async (): Promise<number> => {
    const state = { done: false };
    void throttle.take(10).then(() => (state.done = true));
    let waited = 0;
    await settle();
    while (!state.done) {
      clock.advance(100);
      waited += 100;
      await settle();
    }
    return waited;
  };
  assert.equal(await steps(), 5000);
  urgent = true;
  assert.equal(await steps(), 0);
  urgent = false;
  busy = false;
  assert.equal(await steps(), 0);
});

test('an aborted signal ends the wait at once', async () => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const throttle = new Throttle({ clock, bytesPerSecond: 1, signal: abort.signal });
  const taken = throttle.take(1_000_000);
  abort.abort();
  await assert.rejects(taken, (error) => codeOf(error) === 'CANCELLED');
  await assert.rejects(throttle.take(1), (error) => codeOf(error) === 'CANCELLED');
});
