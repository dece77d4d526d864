import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedOf } from '@webdfs/base/testing';
import * as fc from 'fast-check';
import { BACK_OFF, backOffStep, type MovingPace, type MovingSample, UNHURRIED } from './back-off.ts';

const MIB = 1_048_576;

/** A second in which so much moved and reads waited so long. */
function second(at: number, bytes: number, waitMs?: number): MovingSample {
  return { at, seconds: 1, bytes, waits: new Map(waitMs === undefined ? [] : [['read', waitMs]]) };
}

function after(samples: Iterable<MovingSample>, pace: MovingPace = UNHURRIED): MovingPace {
  let now = pace;
  for (const sample of samples) now = backOffStep(now, sample);
  return now;
}

/** Seconds of any weather, a minute apart now and then. */
const weather = fc
  .array(
    fc.record({
      bytes: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1_000 * MIB })),
      waitMs: fc.option(fc.double({ min: 0.1, max: 2_000, noNaN: true }), { nil: undefined }),
      pause: fc.constantFrom(1, 1, 1, 60, 900),
    }),
    { maxLength: 60 },
  )
  .map((seconds) => {
    let at = 0;
    return seconds.map(({ bytes, waitMs, pause }) => second((at += pause), bytes, waitMs));
  });

test('whatever happens, moving goes on at the least rate or more', (t) => {
  fc.assert(
    fc.property(weather, (samples) => {
      const { limit, fastest } = after(samples);
      return (
        limit >= Math.max(BACK_OFF.leastBytes, 0) &&
        (limit === Infinity || limit <= Math.max(fastest, BACK_OFF.leastBytes))
      );
    }),
    { seed: seedOf(t) },
  );
});

test('where nothing moved, or clients did not wait longer than when it is calm, nothing is slowed', (t) => {
  fc.assert(
    fc.property(weather, fc.integer({ min: 0, max: 100 }), (samples, mib) => {
      const pace = after(samples);
      const at = (samples.at(-1)?.at ?? 0) + 1;
      const still = backOffStep(pace, second(at, 0, 100_000));
      const quiet = backOffStep(pace, second(at, mib * MIB));
      const calm = backOffStep(pace, second(at, mib * MIB, 0.05));
      return [still, quiet, calm].every(({ limit }) => limit >= pace.limit);
    }),
    { seed: seedOf(t) },
  );
});

test('clients that wait too long halve what moves, down to the least', (t) => {
  fc.assert(
    fc.property(weather, fc.integer({ min: 1, max: 1_000 }), (samples, mib) => {
      const before = after(samples);
      const at = (samples.at(-1)?.at ?? 0) + 1;
      const pace = backOffStep(before, second(at, mib * MIB, 1));
      const { limit, fastest } = backOffStep(pace, second(at + 1, mib * MIB, 50));
      const half = Math.min(pace.limit, mib * MIB) / 2;
      return limit <= Math.max(half, BACK_OFF.leastBytes, fastest * BACK_OFF.leastPart);
    }),
    { seed: seedOf(t) },
  );
});

test('once clients are calm again all is given back, a part at a time', () => {
  const calm = after([second(0, 0, 1), second(1, 100 * MIB, 1)]);
  assert.equal(calm.limit, Infinity);
  const slow = after([second(2, 100 * MIB, 90), second(3, 50 * MIB, 90)], calm);
  assert.equal(slow.limit, 25 * MIB);
  assert.equal(slow.slowdowns, 2);
  assert.equal(after([second(4, 25 * MIB, 1)], slow).limit, 30 * MIB);
  const seconds = Array.from({ length: 15 }, (_, i) => second(4 + i, 25 * MIB, 1));
  assert.equal(after(seconds.slice(0, 14), slow).limit, 95 * MIB);
  assert.equal(after(seconds, slow).limit, Infinity);
});

test('what has been so for ten minutes is calm', () => {
  const began = after([second(0, 0, 1)]);
  const minutes = Array.from({ length: 11 }, (_, i) => second(60 * (i + 1), 0, 30));
  const early = after(minutes.slice(0, 8), began);
  assert.ok(backOffStep(early, second(541, 10 * MIB, 40)).limit < Infinity);
  const late = after(minutes, began);
  assert.equal(backOffStep(late, second(661, 10 * MIB, 40)).limit, Infinity);
});
