import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, ManualClock, SeededRandom } from '@webdfs/base';
import { createCluster, FIRST_POLICY, type NewCluster } from './create-cluster.ts';
import { sliceCount } from './keys.ts';
import { allGroups, MapSnapshot } from './map-view.ts';
import { MemoryMapStore } from './memory-map-store.ts';

const options = (count: number, more: Partial<NewCluster> = {}): NewCluster => ({
  name: 'test',
  nodes: Array.from({ length: count }, (_, i) => ({ id: asNodeId(i + 1), address: `host:${i}` })),
  random: new SeededRandom(3),
  ...more,
});

test('a cluster is made with its nodes, all slices and, last, its map', async () => {
  await using store = new MemoryMapStore(new ManualClock());
  const { revision } = await createCluster(store, options(3, { groupBits: 12 }));
  const contents = await store.read();
  const view = MapSnapshot.of(contents);
  assert.equal(view.mapRevision, revision);
  assert.equal(contents.revision, revision);
  assert.ok(contents.entries.every(({ key, modRevision }) => key === 'map' || modRevision < revision));
  for (let slice = 0; slice < sliceCount(12); slice++) assert.ok(view.sliceRevision(FIRST_POLICY, slice) > 0);
  assert.deepEqual(view.policy(FIRST_POLICY), {
    id: 1,
    name: 'replicas=3',
    copies: 3,
    minCopies: 2,
    minCopiesSince: 0,
  });
  for (const group of allGroups(view.map)) assert.equal(view.group(group).health, 'whole');
});

test('fewer nodes than three mean fewer copies, and the default of minCopies follows', async () => {
  for (const [nodes, copies, minCopies] of [
    [1, 1, 1],
    [2, 2, 1],
    [3, 3, 2],
    [5, 3, 2],
  ] as const) {
    await using store = new MemoryMapStore(new ManualClock());
    const { map } = await createCluster(store, options(nodes));
    assert.deepEqual([map.policies[0]?.copies, map.policies[0]?.minCopies], [copies, minCopies]);
  }
});

test('a store that holds a cluster is left alone', async () => {
  await using store = new MemoryMapStore(new ManualClock());
  await createCluster(store, options(3));
  const before = await store.read();
  await assert.rejects(createCluster(store, options(4)), { code: 'ALREADY_EXISTS' });
  assert.deepEqual(await store.read(), before);
});

test('what an unfinished try left is removed', async () => {
  await using store = new MemoryMapStore(new ManualClock());
  const put = (key: string) => ({ type: 'put', key, value: '{}' }) as const;
  const down = { type: 'put', key: 'down/2', value: '{"reason":"","session":0}' } as const;
  await store.transact({ compare: [], write: [put('slice/7/0'), down] });
  await createCluster(store, options(3));
  const view = MapSnapshot.of(await store.read());
  assert.deepEqual(view.marked(), []);
  assert.equal(view.sliceRevision(7 as typeof FIRST_POLICY, 0), 0);
});

test('of two that make a cluster at once, one is refused', async () => {
  await using store = new MemoryMapStore(new ManualClock());
  const outcomes = await Promise.allSettled([
    createCluster(store, options(3, { random: new SeededRandom(1) })),
    createCluster(store.connect(), options(3, { random: new SeededRandom(2) })),
  ]);
  const made = outcomes.filter(({ status }) => status === 'fulfilled');
  assert.ok(made.length <= 1);
  const again = await createCluster(store, options(3)).catch((error: { code: string }) => error.code);
  if (made.length === 1) assert.equal(again, 'ALREADY_EXISTS');
});

test('what makes no cluster is refused before anything is written', async () => {
  await using store = new MemoryMapStore(new ManualClock());
  for (const bad of [
    options(0),
    options(2, { copies: 3 }),
    options(3, { minCopies: 4 }),
    options(3, { minCopies: 0 }),
    options(3, { groupBits: 30 }),
    options(3, { nodes: [1, 1].map((id) => ({ id: asNodeId(id), address: 'a' })) }),
  ]) {
    await assert.rejects(createCluster(store, bad), { code: 'BAD_CONFIG' });
  }
  assert.deepEqual((await store.read()).entries, []);
});
