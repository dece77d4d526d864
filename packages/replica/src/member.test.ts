import assert from 'node:assert/strict';
import test from 'node:test';
import { WebdfsError } from '@webdfs/base';
import { KIND, type LogEntry } from '@webdfs/store';
import type { Effect } from './events.ts';
import { anEntry, Bench, ONE, sentTo, TWO } from './step-bench.ts';

function aMember(tail: readonly LogEntry[] = [], commit = 0): Bench {
  return new Bench({ self: TWO, tail, commit });
}

const sync = (bench: Bench, after: number, receiver = 5): Effect[] =>
  bench.hear(ONE, { type: 'sync', ...bench.to, receiver, after, commit: 0 });

test('a late Sync cuts nothing that was acknowledged since', () => {
  const bench = aMember([anEntry(1, 8)]);
  sync(bench, 1);
  bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(2, 10) });
  bench.durable(2);
  const effects = sync(bench, 1);
  assert.equal(bench.state.last, 2);
  assert.ok(!effects.some(({ type }) => type === 'cut'));
  assert.deepEqual(
    sentTo(effects, ONE).map((message) => message.type === 'ack' && message.last),
    [2],
  );
});

test('a Sync for another session of this node is ignored', () => {
  const bench = aMember([anEntry(1, 8)]);
  assert.deepEqual(sync(bench, 0, 4), []);
  assert.equal(bench.state.syncedIn, 0);
});

test('a tail that the adopted log lacks is cut, and acknowledged as gone only once that is durable', () => {
  const bench = aMember([anEntry(1, 8), anEntry(2, 9)]);
  const effects = sync(bench, 1);
  assert.deepEqual(
    effects.find(({ type }) => type === 'cut'),
    { type: 'cut', after: 1, below: 10 },
  );
  assert.deepEqual(sentTo(effects, ONE), []);
  assert.deepEqual(
    sentTo(bench.durable(1), ONE).map((message) => message.type === 'ack' && message.last),
    [1],
  );
});

test('a member that was not synced in this ballot takes no append', () => {
  const bench = aMember();
  const effects = bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(1, 10) });
  assert.deepEqual(
    sentTo(effects, ONE).map(({ type }) => type),
    ['not-synced'],
  );
  assert.equal(bench.state.last, 0);
});

test('a full disk takes no puts and says so, but goes on with deletes', () => {
  const bench = aMember();
  sync(bench, 0);
  bench.full = true;
  const refused = bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(1, 10) });
  assert.deepEqual(sentTo(refused, ONE), [{ type: 'full', ...bench.to }]);
  assert.equal(bench.state.last, 0);
  bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: { ...anEntry(1, 10), kind: KIND.TOMBSTONE } });
  assert.equal(bench.state.last, 1);
});

test('a tail is told only when the mark, and all of it, are on the disk', () => {
  const bench = new Bench({ self: TWO, marked: false });
  const asked = bench.hear(ONE, { type: 'query', ...bench.to, round: 1 });
  assert.deepEqual(
    asked.map(({ type }) => type),
    ['mark'],
  );
  const told = bench.feed({ type: 'marked', at: bench.at });
  assert.deepEqual(
    sentTo(told, ONE).map(({ type }) => type),
    ['tail'],
  );
});

test('a member applies what is committed only as far as its own disk has it', () => {
  const bench = aMember();
  sync(bench, 0);
  for (const sequence of [1, 2])
    bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(sequence, 10) });
  bench.durable(1);
  bench.hear(ONE, { type: 'commit', ...bench.to, commit: 2 });
  assert.equal(bench.state.commit, 1);
  bench.durable(2);
  assert.equal(bench.state.commit, 2);
});

test('a repeated append is acknowledged again, a gap is named, and another entry in a place is our own bug', () => {
  const bench = aMember();
  sync(bench, 0);
  bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(1, 10) });
  bench.durable(1);
  const repeat = bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(1, 10) });
  assert.deepEqual(sentTo(repeat, ONE), [{ type: 'ack', ...bench.to, last: 1 }]);
  const gap = bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(3, 10) });
  assert.deepEqual(sentTo(gap, ONE), [{ type: 'ack', ...bench.to, last: 1, expects: 2 }]);
  assert.throws(() => bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(1, 9) }), /S6/);
});

test('what is not ours to answer is a WebdfsError with the revision that its asker needs', () => {
  const bench = aMember();
  const outcome = bench.outcome(bench.write().ticket);
  assert.ok(outcome?.type === 'refused' && outcome.error instanceof WebdfsError);
  assert.equal(outcome.error.details['revision'], 10);
});

// Found by the simulator: a member that was restarted just when the last commit point was told held its last entry back for
// as long as its group was idle, so members of one group differed, and a scrub would call that damage.
test('a member that holds what it does not know to be committed asks again while nothing else comes', () => {
  const bench = aMember();
  sync(bench, 0);
  bench.hear(ONE, { type: 'append', ...bench.to, commit: 0, entry: anEntry(1, 10) });
  bench.durable(1);
  assert.deepEqual(sentTo(bench.tick(2_000), ONE), [{ type: 'ack', ...bench.to, last: 1 }]);
  assert.deepEqual(sentTo(bench.tick(2_000), ONE), [{ type: 'ack', ...bench.to, last: 1 }]);
  bench.hear(ONE, { type: 'commit', ...bench.to, commit: 1 });
  assert.deepEqual(sentTo(bench.tick(10_000), ONE), []);
  const restarted = aMember([anEntry(1, 10)]);
  restarted.feed({ type: 'view', view: restarted.state.view, at: restarted.at });
  assert.deepEqual(sentTo(restarted.tick(2_000), ONE), [{ type: 'not-synced', ...restarted.to }]);
});
