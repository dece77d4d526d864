import assert from 'node:assert/strict';
import test from 'node:test';
import { aView, anEntry, appendsTo, Bench, ONE, sentTo, THREE, TWO } from './step-bench.ts';

test('nothing is committed before every member and the own disk have it', () => {
  const bench = new Bench().takeOver();
  const { ticket } = bench.write();
  bench.ack(TWO, 1);
  bench.durable(1);
  assert.equal(bench.result(ticket), 'waiting');
  bench.ack(THREE, 1);
  assert.equal(bench.result(ticket), 'done');
  assert.equal(bench.state.commit, 1);
});

test('below minCopies nothing is appended and nothing committed, not even a tail; certain keys are served', () => {
  const view = aView({ inSync: [ONE], health: 'reads-only' });
  const bench = new Bench({ view, tail: [anEntry(1, 9)] });
  bench.feed({ type: 'loaded', ballot: 10, entries: [anEntry(1, 9)], at: bench.at });
  assert.equal(bench.state.primary!.phase, 'serve');
  assert.equal(bench.state.commit, 0);
  assert.equal(bench.result(bench.write().ticket), 'NO_QUORUM');
  assert.ok(bench.state.primary!.keys.has('ra'));
});

test('a gap takes the stream back once, however often it is reported', () => {
  const bench = new Bench().takeOver();
  for (let i = 0; i < 5; i++) bench.write();
  assert.deepEqual(appendsTo(bench.ack(TWO, 1, 2), TWO), [2, 3, 4, 5]);
  assert.deepEqual(appendsTo(bench.ack(TWO, 1, 2), TWO), []);
  assert.deepEqual(appendsTo(bench.tick(250), THREE), [1, 2, 3, 4, 5]);
});

test('who acknowledges again what it acknowledged before is told the commit point again', () => {
  const bench = new Bench().takeOver();
  bench.write();
  bench.durable(1);
  bench.ack(TWO, 1);
  bench.ack(THREE, 1);
  bench.tick(250);
  assert.deepEqual(sentTo(bench.ack(TWO, 1), TWO), [{ type: 'commit', ...bench.to, commit: 1 }]);
});
