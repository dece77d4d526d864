import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, codeOf } from '@webdfs/base';
import type { Topology } from '@webdfs/placement';
import { joinKey } from './keys.ts';
import { allGroups } from './map-view.ts';
import { aMap } from './model/map-builder.ts';
import { propose } from './propose.ts';
import {
  newNodesOf,
  progressOf,
  proposeAbort,
  proposeMoveLimits,
  proposePause,
  proposeTarget,
  waitingFolders,
} from './retarget.ts';

function grown(topology: Topology, count: number): Topology {
  const [first, ...rest] = topology.subclusters;
  const highest = Math.max(...topology.subclusters.flatMap(({ nodes }) => nodes.map(({ id }) => id)));
  const added = Array.from({ length: count }, (_, i) => ({
    id: asNodeId(highest + 1 + i),
    weight: 65_536,
    labels: {},
  }));
  return { ...topology, subclusters: [{ ...first!, nodes: [...first!.nodes, ...added] }, ...rest] };
}

test('a new node is given to the folder that asked for it, in the transaction that makes the target', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  map.put(joinKey('aa'), '{"labels":{"rack":"r1"},"weight":2}');
  const entries = [
    { key: joinKey('aa'), value: '{"labels":{"rack":"r1"},"weight":2}', createRevision: 9, modRevision: 9 },
  ];
  const [folder] = waitingFolders({ revision: map.snapshot.revision, entries });
  assert.deepEqual(folder!.joining, { labels: { rack: 'r1' }, weight: 2 });
  const target = grown(map.snapshot.map.settled, 1);
  assert.deepEqual(newNodesOf(map.snapshot, target), [4]);
  const { write, compare } = proposeTarget(map.snapshot, target, { folders: [folder!] });
  assert.deepEqual(
    write.map(({ key }) => key),
    ['map', 'disk/4', joinKey('aa')],
  );
  assert.ok(compare.some((each) => each.type === 'modified' && each.key === joinKey('aa') && each.is === 9));
  assert.ok(
    write.some((each) => each.type === 'delete' && each.key === joinKey('aa')),
    'no second place for it',
  );
});

test('a target moves goals; giving it up, and pausing, change nothing else', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  assert.equal(progressOf(map.snapshot).atGoal, 64);
  assert.ok(map.transact(proposeTarget(map.snapshot, grown(map.snapshot.map.settled, 1))));
  assert.ok(progressOf(map.snapshot).atGoal < 64);
  assert.ok(map.transact(proposePause(map.snapshot, true)));
  assert.equal(map.snapshot.map.paused, true);
  assert.notEqual(map.snapshot.map.target, undefined);
  assert.ok(map.transact(proposePause(map.snapshot, false)));
  assert.equal(map.snapshot.map.paused, undefined);
  assert.ok(map.transact(proposeAbort(map.snapshot)));
  assert.equal(map.snapshot.map.target, undefined);
  assert.equal(progressOf(map.snapshot).atGoal, 64);
  assert.throws(
    () => proposeAbort(map.snapshot),
    (error) => codeOf(error) === 'NOT_FOUND',
  );
});

test('what moving may take is kept in the map, changed and lifted; what makes no sense is refused', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  assert.ok(map.transact(proposeMoveLimits(map.snapshot, { bytesPerSecond: 20_971_520, share: 0.5 })));
  assert.deepEqual(map.snapshot.map.moveLimits, { bytesPerSecond: 20_971_520, share: 0.5 });
  assert.ok(map.transact(proposePause(map.snapshot, true)));
  assert.deepEqual(map.snapshot.map.moveLimits, { bytesPerSecond: 20_971_520, share: 0.5 });
  assert.ok(map.transact(proposeMoveLimits(map.snapshot, {})));
  assert.equal(map.snapshot.map.moveLimits, undefined);
  for (const wrong of [
    { bytesPerSecond: 10 },
    { bytesPerSecond: 2 ** 52 },
    { bytesPerSecond: Number.NaN },
    { share: 0 },
    { share: 2 },
  ]) {
    assert.throws(
      () => proposeMoveLimits(map.snapshot, wrong),
      (error) => codeOf(error) === 'INVALID',
    );
  }
});

test('of two changes that saw the same topology, the second is refused', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  const seen = map.snapshot;
  assert.ok(map.transact(proposeTarget(seen, grown(seen.map.settled, 1))));
  assert.ok(!map.transact(proposeTarget(seen, grown(seen.map.settled, 2))));
});

test('a topology that cannot hold all copies is refused', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  const { settled } = map.snapshot.map;
  const [first] = settled.subclusters;
  const shrunk = { ...settled, subclusters: [{ ...first!, nodes: first!.nodes.slice(0, 2) }] };
  assert.throws(
    () => proposeTarget(map.snapshot, shrunk),
    (error) => codeOf(error) === 'INVALID',
  );
});

test('a node that holds a group belongs to the cluster, though the target that brought it was given up', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  map.live(asNodeId(4));
  assert.ok(map.transact(proposeTarget(map.snapshot, grown(map.snapshot.map.settled, 1))));
  const moved = [...allGroups(map.snapshot.map)].find((group) => map.snapshot.goal(group).includes(asNodeId(4)))!;
  const learners = [{ node: asNodeId(4), session: map.snapshot.live(asNodeId(4))!.session }];
  assert.ok(map.transact(propose(map.snapshot, moved, { type: 'join', learners }).transaction));
  assert.ok(map.transact(proposeAbort(map.snapshot)));
  assert.deepEqual(map.snapshot.nodes(), [1, 2, 3, 4]);
});

test('a node that still runs after its target was given up keeps its folder when it is wanted again', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  const target = grown(map.snapshot.map.settled, 1);
  assert.ok(map.transact(proposeTarget(map.snapshot, target)));
  map.live(asNodeId(4));
  assert.ok(map.transact(proposeAbort(map.snapshot)));
  assert.deepEqual(map.snapshot.nodes(), [1, 2, 3]);
  assert.deepEqual(newNodesOf(map.snapshot, target), []);
  const folder = { storeId: 'aa', joining: { labels: {}, weight: 1 }, revision: 9 };
  assert.throws(
    () => proposeTarget(map.snapshot, target, { folders: [folder] }),
    (error) => codeOf(error) === 'INVALID',
  );
  assert.ok(map.transact(proposeTarget(map.snapshot, target)));
});
