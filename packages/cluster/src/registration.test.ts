import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { diskKey, nodeKey } from './keys.ts';
import { aMap, type MapBuilder } from './model/map-builder.ts';
import { type NodeMemory, packMemory, unpackMemory } from './node-memory.ts';
import { planRegistration } from './registration.ts';

const node = asNodeId(2);

function aNode(life: number, disk = 'disk 2'): { map: MapBuilder; memory: NodeMemory } {
  const map = aMap({ nodes: 3 });
  map.put(nodeKey(node), JSON.stringify({ address: 'old:1', labels: { rack: 'a' }, life }));
  map.put(diskKey(node), JSON.stringify({ id: disk, founding: true }));
  const { cluster, era } = map.snapshot.map;
  return { map, memory: { cluster, era, revision: map.snapshot.revision, life } };
}

const facts = { node, address: 'new:2', disk: 'disk 2' };

test('a node with its own disk raises its life and keeps its labels', () => {
  const { map, memory } = aNode(7);
  const plan = planRegistration(map.snapshot, facts, memory);
  assert.equal(plan.verdict, 'same');
  assert.equal(plan.memory.life, 8);
  assert.ok(map.transact(plan));
  assert.deepEqual(map.snapshot.node(node), {
    address: 'new:2',
    labels: { rack: 'a' },
    life: 8,
    revision: map.snapshot.revision,
  });
});

test('a crash between the disk and the map leaves a life that is one ahead, and is no loss', () => {
  const { map, memory } = aNode(7);
  const plan = planRegistration(map.snapshot, facts, { ...memory, life: 8 });
  assert.deepEqual([plan.verdict, plan.memory.life], ['same', 8]);
});

test('a life further ahead says that the map is old', () => {
  const { map, memory } = aNode(7);
  assert.throws(() => planRegistration(map.snapshot, facts, { ...memory, life: 9 }), { code: 'OLD_STORE' });
});

test('a revision or an era that the map has not reached says that the map is old', () => {
  const { map, memory } = aNode(7);
  const { revision } = memory;
  assert.throws(() => planRegistration(map.snapshot, facts, { ...memory, revision: revision + 1 }), {
    code: 'OLD_STORE',
  });
  assert.throws(() => planRegistration(map.snapshot, facts, { ...memory, era: 1, revision: 1 }), { code: 'OLD_STORE' });
});

test('data of another cluster is refused', () => {
  const { map, memory } = aNode(7);
  const other = 'f'.repeat(32);
  assert.throws(() => planRegistration(map.snapshot, facts, { ...memory, cluster: other }), { code: 'WRONG_PEER' });
});

test('an old, an empty and an exchanged disk come with a mark in the same transaction', () => {
  const { map, memory } = aNode(7);
  for (const [disk, known] of [
    ['disk 2', { ...memory, life: 6 }],
    ['disk 2', undefined],
    ['a new disk', undefined],
  ] as const) {
    const plan = planRegistration(map.snapshot, { ...facts, disk }, known);
    assert.equal(plan.verdict, 'lost');
    assert.deepEqual(
      plan.write.map(({ key }) => key),
      ['node/2', 'disk/2', 'down/2'],
    );
  }
});

test('a lost disk is in sync nowhere, whatever else it was', () => {
  const { map } = aNode(7);
  assert.ok(map.view().inSync.includes(node));
  assert.ok(map.transact(planRegistration(map.snapshot, facts, undefined)));
  assert.ok(!map.view().inSync.includes(node));
  assert.ok(!map.view().eligible.includes(node));
});

test('the first data folder claims the place of a founding node once', () => {
  const { map } = aNode(0, '');
  const plan = planRegistration(map.snapshot, facts, undefined);
  assert.equal(plan.verdict, 'founding');
  assert.ok(map.transact(plan));
  assert.equal(map.view().health, 'whole');
  const again = planRegistration(map.snapshot, { ...facts, disk: 'another' }, undefined);
  assert.equal(again.verdict, 'lost');
  assert.ok(!map.transact(plan), 'two folders do not both claim it');
});

test('a node that joins later is a learner from the start', () => {
  const map = aMap({ nodes: 3 });
  const late = asNodeId(9);
  const plan = planRegistration(map.snapshot, { node: late, address: 'x:1', disk: 'd' }, undefined);
  assert.equal(plan.verdict, 'lost');
  assert.ok(map.transact(plan));
  assert.deepEqual(map.snapshot.marked(), [late]);
});

test('the memory file is read as it was written, and refused when it is not one', () => {
  const { memory } = aNode(7);
  assert.deepEqual(unpackMemory(packMemory(memory)), memory);
  for (const text of ['', '{}', 'null', '{"version":1,"cluster":"a","era":-1,"revision":0,"life":0}']) {
    assert.throws(() => unpackMemory(new TextEncoder().encode(text)), { code: 'CORRUPT' }, text);
  }
  const later = new TextEncoder().encode('{"version":2}');
  assert.throws(() => unpackMemory(later), { code: 'NEWER_FORMAT' });
});
