import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALGORITHMS } from '@webdfs/placement';
import { CONTESTANTS, contestantsOf } from './contestant.ts';
import { nodesOf, subcluster, subclustersOf } from './layout.ts';
import { foundingSetup, rackSetup, type Setup, setupOf } from './setups.ts';
import { Trial } from './trials.ts';

const CLUSTER = setupOf({
  name: 'a cluster',
  subclusters: [...subclustersOf([1, 2], 4), subcluster(9, { first: 30, count: 4, weight: 5 })],
  copies: 3,
  groupCount: 256,
});
const SETUPS: readonly Setup[] = [foundingSetup(256), rackSetup(256), CLUSTER];

for (const setup of SETUPS) {
  test(`${setup.title}: every algorithm places every change with as many distinct nodes as copies, none of weight 0`, () => {
    for (const contestant of contestantsOf(ALGORITHMS)) {
      const trial = new Trial(contestant, setup, 5);
      for (const change of setup.changes) {
        assert.equal(trial.refusal(change), undefined, `${contestant.name}: ${change.title}`);
        const { rows, copies, subclusters } = trial.after(change);
        const live = new Set<number>(nodesOf(subclusters).flatMap(({ id, weight }) => (weight > 0 ? [id] : [])));
        for (let start = 0; start < rows.length; start += copies) {
          const list = new Set(rows.subarray(start, start + copies));
          assert.equal(list.size, copies, `${contestant.name}: ${change.title}`);
          assert.ok(list.isSubsetOf(live), `${contestant.name}: ${change.title}`);
        }
      }
    }
  });
}

test('the changes of a cluster of one sub-cluster leave nodes to place on', () => {
  const alone = setupOf({ name: 'alone', subclusters: subclustersOf([3], 5), copies: 2, groupCount: 64 });
  assert.deepEqual(
    alone.changes.map(({ id }) => id),
    ['add', 'reweight', 'remove-first', 'remove-last', 'grow'],
  );
  assert.equal(nodesOf(alone.changes[0]!.after).length, 10);
});

test('nodes that are added stand in a rack of their own where a sub-cluster is a rack, else in the racks there are', () => {
  const racksOf = (subclusters: Setup['subclusters']): (string | undefined)[] => {
    const setup = setupOf({ name: 'racks', subclusters, copies: 2, groupCount: 64, domain: 'rack' });
    return setup.changes[0]!.after.at(-1)!.nodes.map(({ labels }) => labels.rack);
  };
  assert.deepEqual(racksOf(subclustersOf([1, 1], 2)), ['next to rack-2', 'next to rack-2']);
  const mixed = subclustersOf([1], 2).map(({ id, nodes }) => ({
    id,
    nodes: nodes.map((node) => ({ ...node, labels: { rack: `r${node.id}` } })),
  }));
  assert.deepEqual(racksOf(mixed), ['r1', 'r2']);
});

test('what has no weight is neither failed nor drained again', () => {
  const [old, young] = subclustersOf([2, 2], 4);
  const drained = { ...old!, nodes: old!.nodes.map((node) => ({ ...node, weight: 0 })) };
  const partly = { ...young!, nodes: young!.nodes.map((node, i) => (i === 0 ? { ...node, weight: 0 } : node)) };
  const setup = setupOf({ name: 'drained', subclusters: [drained, partly], copies: 2, groupCount: 64 });
  assert.deepEqual(setup.failing, [6, 8]);
  assert.ok(!setup.changes.some(({ id }) => id === 'drain'));
});

test('another seed is another placement, the same seed the same', () => {
  const [wrd] = contestantsOf(['wrd']);
  const rows = (seed: number): string => new Trial(wrd!, CLUSTER, seed).place(CLUSTER.subclusters).rows.join(' ');
  assert.equal(rows(1), rows(1));
  assert.notEqual(rows(1), rows(2));
});

test('a placement that does not exist is refused with all there are, one that is named twice with its name', () => {
  assert.throws(() => contestantsOf(['wrd', 'crush']), {
    code: 'INVALID',
    message: /unknown placement crush; there are wrd, /,
  });
  assert.throws(() => contestantsOf(['wrd', 'wrd']), { code: 'INVALID', message: /wrd is named twice/ });
  assert.equal(contestantsOf(CONTESTANTS).length, CONTESTANTS.length);
});

test('an algorithm refuses what it cannot place, baselines only what nobody can', () => {
  const narrow = { subclusters: subclustersOf([1, 1], 2), copies: 3, groupCount: 64, seed: 1 };
  const refusal = (name: string): string | undefined => contestantsOf([name])[0]!.refusal(narrow);
  assert.match(refusal('rush-p')!, /rush-p needs at least 3 nodes/);
  assert.equal(refusal('jump'), undefined);
  assert.equal(refusal('ring'), undefined);
  const [jump] = contestantsOf(['jump']);
  assert.match(jump!.refusal({ ...narrow, copies: 5 })!, /5 copies need/);
});
