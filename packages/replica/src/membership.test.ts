import assert from 'node:assert/strict';
import test from 'node:test';
import type { Effect } from './events.ts';
import { aView, anEntry, appendsTo, Bench, FOUR, ONE, TWO } from './step-bench.ts';

test('a member without progress is dropped while minCopies remain, and complained of where they would not', () => {
  const bench = new Bench().takeOver();
  bench.write();
  bench.durable(1);
  bench.ack(TWO, 1);
  bench.tick(1_900);
  assert.ok(!bench.effects.some(({ type }) => type === 'transact'));
  const effects = bench.tick(100);
  assert.ok(effects.some(({ type }) => type === 'transact'));
  const two = new Bench({ view: aView({ inSync: [ONE, TWO], health: 'degraded' }) }).takeOver([TWO]);
  two.write();
  const complaints = two.tick(2_000).flatMap((effect) => (effect.type === 'complain' ? [effect.node] : []));
  assert.deepEqual(complaints, [TWO]);
});

test('a member whose disk is full is dropped at once, and puts are tried again meanwhile', () => {
  const bench = new Bench().takeOver();
  bench.write();
  const effects = bench.hear(TWO, { type: 'full', ...bench.to });
  assert.ok(effects.some(({ type }) => type === 'transact'));
  assert.equal(bench.result(bench.write().ticket), 'BUSY');
});

test('where too few would remain, a full member ends puts with DISK_FULL, for as long as it says so', () => {
  const bench = new Bench({ view: aView({ inSync: [ONE, TWO], health: 'degraded' }) }).takeOver([TWO]);
  const effects = bench.hear(TWO, { type: 'full', ...bench.to });
  assert.ok(!effects.some(({ type }) => type === 'transact'));
  assert.equal(bench.result(bench.write().ticket), 'DISK_FULL');
  bench.at += 2_000;
  assert.equal(bench.result(bench.write().ticket), 'waiting');
});

function aLearner(bench: Bench): void {
  bench.feed({ type: 'learner-start', node: FOUR, session: 400, at: bench.at });
}

const transactionOf = (effects: readonly Effect[]): { ballot: number; id: number } => {
  const effect = effects.find(({ type }) => type === 'transact');
  assert.ok(effect?.type === 'transact', 'a change was proposed');
  return { ballot: effect.ballot, id: effect.id };
};

test('commits wait for a learner from before it is proposed until its fate is known', () => {
  const bench = new Bench().takeOver();
  aLearner(bench);
  const ready = transactionOf(bench.feed({ type: 'learner-ready', node: FOUR, at: bench.at }));
  const { ticket } = bench.write();
  bench.settle();
  assert.equal(bench.result(ticket), 'waiting');
  bench.feed({ type: 'learner-failed', node: FOUR, at: bench.at });
  bench.feed({ type: 'transaction', ...ready, outcome: 'unknown', at: bench.at });
  assert.equal(bench.result(ticket), 'waiting');
  const effects = bench.feed({ type: 'transaction', ...ready, outcome: 'failed', at: bench.at });
  assert.equal(bench.result(ticket), 'done');
  assert.ok(effects.some(({ type }) => type === 'learner-lost'));
});

test('a learner joins only with the whole tail of a primary that cannot move its commit point', () => {
  const view = aView({ inSync: [ONE], health: 'reads-only', goal: [ONE, FOUR] });
  const tail = [anEntry(1, 9)];
  const bench = new Bench({ view, tail });
  bench.feed({ type: 'loaded', ballot: 10, entries: tail, at: bench.at });
  aLearner(bench);
  assert.deepEqual(appendsTo(bench.effects, FOUR), [1]);
  const early = bench.feed({ type: 'learner-ready', node: FOUR, at: bench.at });
  assert.ok(!early.some(({ type }) => type === 'transact'));
  transactionOf(bench.hear(FOUR, { type: 'ack', ...bench.to, last: 1 }));
});

test('a primary that hands the group over stops first, and goes on only if the change surely failed', () => {
  const bench = new Bench().takeOver();
  bench.yields = true;
  const change = transactionOf(bench.feed({ type: 'arrange', at: bench.at }));
  assert.equal(bench.state.primary!.phase, 'yielded');
  assert.equal(bench.result(bench.write().ticket), 'NOT_PRIMARY');
  bench.feed({ type: 'transaction', ...change, outcome: 'unknown', at: bench.at });
  assert.equal(bench.state.primary!.phase, 'yielded');
  bench.feed({ type: 'transaction', ...change, outcome: 'failed', at: bench.at });
  assert.equal(bench.state.primary!.phase, 'serve');
});

test('a learner that falls too far behind is let go of, with what was kept for it', () => {
  const bench = new Bench().takeOver();
  aLearner(bench);
  for (let i = 0; i < 520; i++) {
    bench.write();
    bench.settle();
  }
  bench.tick(250);
  assert.equal(bench.state.primary!.learner, undefined);
  assert.equal(bench.state.primary!.flight.length, 0);
});
