import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { type Instant, type LeaseEvent, leaseHolds, type LeaseState, leaseStep, NO_LEASE } from './lease.ts';

const TTL = 3_000;
const MARGIN = 500;
const at = (ms: number): Instant => ({ monotonicMs: ms, wallMs: 1_000_000 + ms });
const after = (...events: readonly LeaseEvent[]): LeaseState => events.reduce(leaseStep, NO_LEASE);
const holds = (state: LeaseState, ms: number): boolean => leaseHolds(state, at(ms), MARGIN);

const whole: readonly LeaseEvent[] = [
  { type: 'durable', beganMs: -100 },
  { type: 'attempt', id: 1, at: at(0) },
  { type: 'kept', id: 1, ttlMs: TTL },
  { type: 'fresh', id: 1, revision: 7 },
  { type: 'map', revision: 7 },
];

test('a whole renewal holds from before it was sent, less the margin', () => {
  const state = after(...whole);
  assert.ok(holds(state, 0));
  assert.ok(holds(state, TTL - MARGIN - 1));
  assert.ok(!holds(state, TTL - MARGIN));
});

test('a renewal that lacks any part does not count', () => {
  for (const missing of whole) assert.ok(!holds(after(...whole.filter((event) => event !== missing)), 0), missing.type);
});

test('a renewal counts only once the map has reached what was there when it was sent', () => {
  const state = after(...whole.slice(0, 4), { type: 'map', revision: 6 });
  assert.ok(!holds(state, 0));
  assert.ok(holds(leaseStep(state, { type: 'map', revision: 8 }), 0));
});

test('a durable write of more than a lease ago proves nothing', () => {
  const events = whole.slice(1);
  assert.ok(!holds(after({ type: 'durable', beganMs: -TTL - 1 }, ...events), 0));
  assert.ok(holds(after({ type: 'durable', beganMs: -TTL }, ...events), 0));
});

test('answers to an attempt that another followed are not taken for the other’s', () => {
  const state = after(...whole.slice(0, 3), { type: 'attempt', id: 2, at: at(900) }, ...whole.slice(3));
  assert.ok(!holds(state, 900));
});

test('a suspended machine shows by its wall clock', () => {
  const state = after(...whole);
  assert.ok(!leaseHolds(state, { monotonicMs: 10, wallMs: 1_000_000 + TTL }, MARGIN));
});

test('a wall clock that goes back does not prolong a lease', () => {
  const state = after(...whole);
  assert.ok(!leaseHolds(state, { monotonicMs: TTL, wallMs: 0 }, MARGIN));
});

test('a lease that is gone holds at no time', () => {
  assert.ok(!holds(after(...whole, { type: 'gone' }), 0));
});

test('whatever happens, a lease holds only within its time of an attempt that was kept and proved complete', (t) => {
  const id = fc.integer({ min: 1, max: 3 });
  const event: fc.Arbitrary<LeaseEvent> = fc.oneof(
    fc.record({ type: fc.constant('kept' as const), id, ttlMs: fc.constant(TTL) }),
    fc.record({ type: fc.constant('fresh' as const), id, revision: fc.nat(5) }),
    fc.record({ type: fc.constant('map' as const), revision: fc.nat(5) }),
    fc.record({ type: fc.constant('durable' as const), beganMs: fc.integer({ min: -4_000, max: 4_000 }) }),
    fc.constant({ type: 'gone' as const }),
    fc.record({
      type: fc.constant('attempt' as const),
      id,
      at: fc.integer({ min: 0, max: 4_000 }).map((ms) => at(ms)),
    }),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 25 }), fc.integer({ min: 0, max: 8_000 }), (events, now) => {
      if (!holds(after(...events), now)) return;
      const began = events.findLastIndex((each) => each.type === 'gone') + 1;
      const live = events.slice(began);
      const proof = live.some((attempt, i) => {
        if (attempt.type !== 'attempt' || now - attempt.at.monotonicMs >= TTL - MARGIN) return false;
        const answers = live.slice(i + 1);
        return (
          answers.some((each) => each.type === 'kept' && each.id === attempt.id) &&
          answers.some((each) => each.type === 'fresh' && each.id === attempt.id)
        );
      });
      assert.ok(proof);
    }),
    { seed: seedOf(t), numRuns: 1_000 },
  );
});
