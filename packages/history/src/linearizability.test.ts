import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { checkKey } from './linearizability.ts';
import type { Action, Operation, Result } from './operation.ts';
import { type RegisterState, registerStep } from './register.ts';

const UNKNOWN: Result = { type: 'unknown' };

function op(askedAt: number, answeredAt: number, action: Action, result: Result): Operation {
  return {
    client: 1,
    key: 'k',
    action,
    result,
    askedAt,
    answeredAt: result.type === 'unknown' ? Infinity : answeredAt,
  };
}
const read = (from: number, to: number, value?: string): Operation =>
  op(from, to, { type: 'read' }, { type: 'read', value });
const write = (from: number, to: number, value: string, result: Result = { type: 'done' }): Operation =>
  op(from, to, { type: 'write', value }, result);
const swap = (from: number, to: number, value: string, is: string, result: Result = { type: 'done' }): Operation =>
  op(from, to, { type: 'write', value, condition: { type: 'is', value: is } }, result);
const create = (from: number, to: number, value: string, result: Result = { type: 'done' }): Operation =>
  op(from, to, { type: 'write', value, condition: { type: 'absent' } }, result);
const remove = (from: number, to: number, result: Result = { type: 'done' }): Operation =>
  op(from, to, { type: 'delete' }, result);
const REFUSED: Result = { type: 'refused' };

/** All orders, by brute force: what the search must agree with. */
function isLinearizable(operations: readonly Operation[], state?: string): boolean {
  const known = operations.filter(({ result }) => result.type !== 'unknown');
  if (known.length === 0) return true;
  const firstAnswer = Math.min(...known.map(({ answeredAt }) => answeredAt));
  return operations.some((operation) => {
    if (operation.askedAt > firstAnswer) return false;
    const after = registerStep(state, operation);
    return (
      after !== 'no' &&
      isLinearizable(
        operations.filter((other) => other !== operation),
        after.state,
      )
    );
  });
}

/** A few overlapping operations on one key, their answers mostly such as a sound store would give. */
function aHistory(random: SeededRandom): Operation[] {
  const operations: Operation[] = [];
  let at = 0;
  let state: RegisterState;
  const seen: RegisterState[] = [undefined];
  for (let i = 0; i < 2 + random.below(6); i++) {
    at += random.below(3);
    const value = `v${i}`;
    const dice = random.below(10);
    const other = `v${random.below(i + 1)}`;
    const action: Action =
      dice < 4
        ? { type: 'read' }
        : dice < 6
          ? { type: 'write', value }
          : dice < 7
            ? { type: 'write', value, condition: { type: 'absent' } }
            : dice < 9
              ? { type: 'write', value, condition: { type: 'is', value: state ?? other } }
              : { type: 'delete' };
    const shown = random.below(5) === 0 ? seen[random.below(seen.length)] : state;
    const wouldBe = registerStep(state, { action, result: UNKNOWN });
    const after = wouldBe === 'no' ? state : wouldBe.state;
    const result: Result =
      random.below(6) === 0
        ? UNKNOWN
        : action.type === 'read'
          ? { type: 'read', value: shown }
          : { type: after === state && random.below(4) > 0 ? 'refused' : 'done' };
    operations.push(op(at, at + random.below(4), action, result));
    state = after;
    seen.push(state);
  }
  return operations.filter(({ action, result }) => action.type !== 'read' || result.type !== 'unknown');
}

test('the search finds an order if and only if there is one', (t) => {
  const random = randomOf(t);
  const counts = { yes: 0, no: 0 };
  for (let run = 0; run < 4_000; run++) {
    const history = aHistory(random);
    const expected = isLinearizable(history);
    counts[expected ? 'yes' : 'no'] += 1;
    const { type } = checkKey(history);
    assert.equal(type, expected ? 'linearizable' : 'not-linearizable', JSON.stringify(history, undefined, 1));
  }
  assert.ok(counts.yes > 400 && counts.no > 400, JSON.stringify(counts));
});

test('a read that overlaps a write may see the value before or after it, and later reads must not go back', () => {
  const base = [write(0, 1, 'a'), write(2, 9, 'b')];
  assert.equal(checkKey([...base, read(3, 4, 'a'), read(5, 6, 'b')]).type, 'linearizable');
  assert.equal(checkKey([...base, read(3, 4, 'b'), read(5, 6, 'a')]).type, 'not-linearizable');
});

test('a lost write is one that no later read sees', () => {
  assert.equal(checkKey([write(0, 1, 'a'), read(2, 3)]).type, 'not-linearizable');
  assert.equal(checkKey([write(0, 1, 'a', UNKNOWN), read(2, 3)]).type, 'linearizable');
  assert.equal(
    checkKey([write(0, 1, 'a'), remove(0, 1, UNKNOWN), read(2, 3), read(4, 5, 'a')]).type,
    'not-linearizable',
  );
});

test('a write of unknown outcome may happen long after its client gave up, but only once', () => {
  const history = [write(0, 1, 'a'), write(2, 3, 'b', UNKNOWN), read(4, 5, 'a'), read(6, 7, 'b')];
  assert.equal(checkKey(history).type, 'linearizable');
  assert.equal(checkKey([...history, write(8, 9, 'c'), read(10, 11, 'b')]).type, 'not-linearizable');
});

test('of two swaps of one value one is done, and of two creations', () => {
  const start = write(0, 1, 'a');
  assert.equal(checkKey([start, swap(2, 5, 'b', 'a'), swap(3, 6, 'c', 'a', REFUSED)]).type, 'linearizable');
  assert.equal(checkKey([start, swap(2, 5, 'b', 'a'), swap(3, 6, 'c', 'a')]).type, 'not-linearizable');
  assert.equal(checkKey([create(0, 3, 'x'), create(1, 4, 'y')]).type, 'not-linearizable');
  assert.equal(checkKey([create(0, 3, 'x', REFUSED), create(1, 4, 'y', REFUSED)]).type, 'not-linearizable');
  assert.equal(checkKey([create(0, 3, 'x', UNKNOWN), create(1, 4, 'y', REFUSED)]).type, 'linearizable');
});

test('a long history is decided in time that grows with it, not faster', (t) => {
  const random = randomOf(t);
  const history: Operation[] = [];
  let state: RegisterState;
  for (let i = 0; i < 20_000; i++) {
    // three clients, always overlapping; each operation takes effect in the middle of its time
    const at = i * 10;
    if (random.below(2) === 0) {
      state = `v${i}`;
      history.push(write(at - 12, at + 12, state, random.below(100) === 0 ? UNKNOWN : { type: 'done' }));
    } else history.push(read(at - 12, at + 12, state));
  }
  assert.equal(checkKey(history, { maxSteps: 40 * history.length }).type, 'linearizable');
  const old = history.find(({ action, result }) => action.type === 'write' && result.type === 'done')!.action;
  assert.ok(old.type === 'write');
  history.push(read(300_000, 300_001, old.value));
  assert.equal(checkKey(history, { maxSteps: 40 * history.length }).type, 'not-linearizable');
});

test('what is not found within the limit is called undecided', () => {
  const history = [write(0, 1, 'a'), read(2, 3, 'a'), read(4, 5, 'a')];
  assert.deepEqual(checkKey(history, { maxSteps: 1 }), { type: 'undecided', steps: 1 });
});
