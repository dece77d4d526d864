import assert from 'node:assert/strict';
import test from 'node:test';
import { aView, anEntry, appendsTo, Bench, FOUR, ONE, sentTo, THREE, TWO } from './step-bench.ts';

test('a takeover adopts the furthest log, gets what it lacks from its holder and levels the others', () => {
  const mine = [anEntry(1, 8)];
  const bench = new Bench({ tail: mine });
  const { members } = bench.state.primary!;
  const runs = [
    { ballot: 8, last: 2 },
    { ballot: 9, last: 3 },
  ];
  bench.hear(TWO, {
    type: 'tail',
    ...bench.to,
    round: members.get(TWO)!.round,
    commit: 0,
    last: 3,
    lastBallot: 9,
    runs,
  });
  const effects = bench.hear(THREE, {
    type: 'tail',
    ...bench.to,
    round: members.get(THREE)!.round,
    commit: 0,
    last: 1,
    lastBallot: 8,
    runs: [{ ballot: 8, last: 1 }],
  });
  assert.ok(effects.some(({ type }) => type === 'load'));
  const loaded = bench.feed({ type: 'loaded', ballot: 10, entries: mine, at: bench.at });
  const fetch = loaded.find(({ type }) => type === 'fetch');
  assert.deepEqual(fetch, { type: 'fetch', ballot: 10, from: TWO, after: 1, upTo: 3 });
  const entries = [anEntry(2, 8), anEntry(3, 9)];
  const fetched = bench.feed({ type: 'fetched', ballot: 10, entries, at: bench.at });
  const afters = [TWO, THREE].map((node) => sentTo(fetched, node).find(({ type }) => type === 'sync'));
  assert.deepEqual(
    afters.map((sync) => sync?.type === 'sync' && [sync.after, sync.receiver]),
    [
      [3, 200],
      [1, 300],
    ],
  );
  bench.ack(TWO, 3);
  assert.deepEqual(appendsTo(bench.ack(THREE, 1), THREE), [2, 3]);
  bench.durable(3);
  assert.equal(bench.state.primary!.phase, 'sync');
  bench.ack(THREE, 3);
  assert.equal(bench.state.primary!.phase, 'serve');
  assert.equal(bench.state.commit, 3);
});

test('a member whose log ends before a commit point is told that its disk is old, and nothing is served with it', () => {
  const bench = new Bench({ commit: 5 });
  const { members } = bench.state.primary!;
  bench.hear(TWO, {
    type: 'tail',
    ...bench.to,
    round: members.get(TWO)!.round,
    commit: 3,
    last: 4,
    lastBallot: 8,
    runs: [],
  });
  const effects = bench.hear(THREE, {
    type: 'tail',
    ...bench.to,
    round: members.get(THREE)!.round,
    commit: 5,
    last: 5,
    lastBallot: 8,
    runs: [],
  });
  assert.ok(sentTo(effects, TWO).some(({ type }) => type === 'lost'));
  assert.equal(bench.state.primary!.phase, 'gather');
});

test('an answer to an earlier question is not taken for the present one', () => {
  const bench = new Bench().takeOver();
  bench.hear(TWO, { type: 'not-synced', ...bench.to });
  const { round } = bench.state.primary!.members.get(TWO)!;
  bench.hear(TWO, { type: 'tail', ...bench.to, round: round - 1, commit: 0, last: 0, lastBallot: 0, runs: [] });
  assert.equal(bench.state.primary!.members.get(TWO)!.phase, 'query');
});

test('a member that registered anew within the ballot is asked where its log ends now', () => {
  const bench = new Bench().takeOver();
  const effects = bench.hear(TWO, { type: 'ack', ...bench.to, last: 0 }, 201);
  assert.deepEqual(
    sentTo(effects, TWO).map(({ type }) => type),
    ['query'],
  );
});

test('a new primary serves nothing before the one it follows has stopped, or its time is over', () => {
  const fence = [{ node: FOUR, session: 3 }];
  const released = new Bench({ view: aView({ fence }) });
  assert.ok(sentTo(released.effects, FOUR).some(({ type }) => type === 'release'));
  released.takeOver();
  assert.equal(released.state.primary!.phase, 'sync');
  released.hear(FOUR, { type: 'released', ...released.to });
  assert.equal(released.state.primary!.phase, 'serve');
  const waited = new Bench({ view: aView({ fence }) }).takeOver();
  waited.tick(3_499);
  assert.equal(waited.state.primary!.phase, 'sync');
  waited.tick(1);
  assert.equal(waited.state.primary!.phase, 'serve');
  const gone = new Bench({ view: aView({ fence }) }).takeOver();
  gone.feed({ type: 'view', view: aView(), at: gone.at });
  assert.equal(gone.state.primary!.phase, 'serve');
});

test('a primary alone whose disk lost what nobody can name serves nothing while somebody can come back to compare with', () => {
  const alone = { inSync: [ONE], members: [ONE, TWO, THREE], health: 'reads-only' } as const;
  const waiting = new Bench({ suspect: true, view: aView({ ...alone, eligible: [TWO] }), commit: 5 });
  assert.equal(waiting.state.primary!.phase, 'gather');
  const sound = new Bench({ view: aView({ ...alone, eligible: [TWO] }), commit: 5 });
  assert.equal(sound.state.primary!.phase, 'serve');
  // nobody has more: what is left is shown, as where there is one copy only
  const last = new Bench({ suspect: true, view: aView({ ...alone, eligible: [] }), commit: 5 });
  assert.equal(last.state.primary!.phase, 'serve');
});
