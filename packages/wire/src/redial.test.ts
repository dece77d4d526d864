import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { DeadlineTimer } from './deadlines.ts';
import { LIMITS } from './limits.ts';
import { Redial } from './redial.ts';

test('reconnecting backs off from 50 ms to 2 s, each ± 50 %, and starts anew after a connection that lived', (t) => {
  const clock = new ManualClock();
  let attempts = 0;
  const random = new SeededRandom(seedOf(t));
  const redial = new Redial({ clock, random, limits: LIMITS, attempt: () => attempts++ });
  /** Milliseconds until the next attempt. */
  const pause = (): number => {
    redial.down();
    const before = attempts;
    for (let ms = 1; ms <= 5000; ms++) {
      clock.advance(1);
      if (attempts > before) return ms;
    }
    return assert.fail('no further attempt');
  };
  redial.start();
  assert.equal(attempts, 1);
  for (const expected of [50, 100, 200, 400, 800, 1600, 2000, 2000]) {
    const ms = pause();
    assert.ok(ms >= expected * 0.5 && ms <= expected * 1.5 + 1, `${ms} ms where ${expected} ± 50 % are due`);
  }
  redial.up();
  clock.advance(LIMITS.pingAfterMs - 1);
  assert.ok(pause() >= 1000, 'one that fell at once is no reason to hurry');
  redial.up();
  clock.advance(LIMITS.pingAfterMs);
  assert.ok(pause() <= 76);
  redial.down();
  redial.stop();
  const before = attempts;
  clock.advance(10_000);
  assert.equal(attempts, before, 'a stopped one stays stopped');
});

test('one timer ends every deadline in its millisecond, whatever the order they came in', (t) => {
  const random = new SeededRandom(seedOf(t));
  const clock = new ManualClock();
  const due = new Set<number>();
  const ended: { due: number; at: number }[] = [];
  const timer = new DeadlineTimer(clock, (now) => {
    for (const one of due) {
      if (one > now) continue;
      due.delete(one);
      ended.push({ due: one, at: now });
    }
    return Math.min(Infinity, ...due);
  });
  for (let i = 0; i < 500; i++) {
    const at = clock.monotonic() + random.below(300);
    due.add(at);
    timer.watch(at);
    clock.advance(random.below(3));
  }
  clock.advance(1000);
  assert.equal(due.size, 0);
  assert.ok(ended.length > 100);
  assert.ok(ended.every(({ due, at }) => at === due));
});
