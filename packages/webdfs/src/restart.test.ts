import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ChildState,
  FIRST_BACK_OFF_MS,
  firstChild,
  GOOD_RUN_MS,
  LAST_BACK_OFF_MS,
  SILENCE_MS,
  stepChild,
} from './restart.ts';

function up(atMs: number): ChildState {
  return stepChild(firstChild(atMs).state, { type: 'ready' }, atMs).state;
}

test('a process that died is started again, after a wait that doubles with each early death', () => {
  let state = up(0);
  let now = 0;
  const waits: number[] = [];
  for (let death = 0; death < 8; death++) {
    state = stepChild(state, { type: 'exit' }, now).state;
    assert.equal(state.type, 'waiting');
    const { untilMs } = state as Extract<ChildState, { type: 'waiting' }>;
    waits.push(untilMs - now);
    assert.equal(stepChild(state, { type: 'tick' }, untilMs - 1).effect, undefined);
    const started = stepChild(state, { type: 'tick' }, untilMs);
    assert.equal(started.effect, 'spawn');
    now = untilMs;
    state = stepChild(started.state, { type: 'ready' }, now).state;
  }
  assert.equal(waits[0], FIRST_BACK_OFF_MS);
  assert.equal(waits[1], FIRST_BACK_OFF_MS * 2);
  assert.equal(waits.at(-1), LAST_BACK_OFF_MS);
});

test('after a good run the first wait is short again', () => {
  let state = stepChild(up(0), { type: 'exit' }, 1).state;
  state = stepChild(state, { type: 'tick' }, 10_000).state;
  state = stepChild(state, { type: 'ready' }, 10_000).state;
  state = stepChild(state, { type: 'exit' }, 10_000 + GOOD_RUN_MS).state;
  assert.deepEqual(state, { type: 'waiting', untilMs: 10_000 + GOOD_RUN_MS + FIRST_BACK_OFF_MS, backOffMs: 400 });
});

test('a process that is up and silent is killed, one that beats is not', () => {
  const silent = stepChild(up(0), { type: 'tick' }, SILENCE_MS);
  assert.equal(silent.effect, 'kill');
  const beating = stepChild(up(0), { type: 'beat' }, SILENCE_MS - 1).state;
  assert.equal(stepChild(beating, { type: 'tick' }, SILENCE_MS).effect, undefined);
});

test('a killed process is not killed twice, and started again only once it has ended', () => {
  const killed = stepChild(up(0), { type: 'tick' }, SILENCE_MS).state;
  assert.equal(stepChild(killed, { type: 'tick' }, SILENCE_MS * 2).effect, undefined);
  assert.equal(stepChild(killed, { type: 'exit' }, SILENCE_MS * 2).state.type, 'waiting');
});

test('after a stop nothing is started', () => {
  const stopped = stepChild(up(0), { type: 'stop' }, 1).state;
  const ended = stepChild(stopped, { type: 'exit' }, 2).state;
  assert.equal(stepChild(ended, { type: 'tick' }, 1_000_000).effect, undefined);
});
