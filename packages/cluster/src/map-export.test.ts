import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asNodeId, ManualClock } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { FIRST_POLICY } from './create-cluster.ts';
import { formatExport, isFrozen, parseExport, takeOut, unfreeze } from './map-export.ts';
import { putIn } from './map-import.ts';
import type { MapContents } from './map-store.ts';
import { MapSnapshot } from './map-view.ts';
import { MemoryMapStore } from './memory-map-store.ts';
import { MapCluster } from './model/map-cluster.ts';
import { happen } from './model/events.ts';
import { World } from './model/world.ts';

/** A store that holds a map as it is, revisions included: only to be read. */
function holding(contents: MapContents): MemoryMapStore {
  const store = new MemoryMapStore(new ManualClock());
  return Object.assign(store, {
    read: async () => contents,
    transact: async () => ({ done: true, revision: contents.revision + 1 }),
  });
}

function withoutSessions({ revision, entries }: MapContents): MapContents {
  return { revision, entries: entries.filter(({ key }) => !/^(live\/|controller$)/.test(key)) };
}

/** What follows from a map and does not depend on the store's numbers. */
function meaningOf(map: MapSnapshot): unknown[] {
  return Array.from({ length: 2 ** map.map.groupBits }, (_, number) => {
    const view = map.group({ policy: FIRST_POLICY, group: asGroupId(number) });
    const { inSync, members, eligible, goal, health, overridden, minCopies } = view;
    return { inSync, members, eligible: eligible.toSorted(), goal, health, overridden, minCopies };
  });
}

test('whatever a map has been through, in another store the same follows from it, and its ballots are above all before', async (t) => {
  const random = randomOf(t);
  let degraded = 0;
  for (let run = 0; run < 40; run++) {
    const seed = random.below(2 ** 31);
    const world = new World({ seed, nodes: 5, copies: 3, minCopies: 2 });
    const events = random.below(300);
    for (let i = 0; i < events; i++) happen(world);
    const contents = withoutSessions(world.now.contents());
    const before = MapSnapshot.of(contents);
    const exported = parseExport(formatExport(await takeOut(holding(contents))));
    const store = new MemoryMapStore(new ManualClock());
    for (let i = random.below(1_000); i > 0; i--) {
      await store.transact({ compare: [], write: [{ type: 'put', key: 'other', value: String(i) }] });
    }
    await putIn(store, exported, 'moved');
    const after = MapSnapshot.of(await store.read());
    assert.deepEqual(meaningOf(after), meaningOf(before), `seed ${seed}, ${events} events`);
    assert.equal(after.map.era, before.map.era + 1);
    assert.deepEqual(after.map.importedFrom, { era: before.map.era, revision: contents.revision });
    assert.equal(after.map.cluster, before.map.cluster);
    if (before.marked().length > 0) degraded++;
  }
  assert.ok(degraded > 5, `only ${degraded} of the maps had marks: the runs are about nothing`);
});

async function stopped(): Promise<MapCluster> {
  const cluster = await MapCluster.of(3);
  for (const id of cluster.running.keys()) await cluster.stop(id);
  return cluster;
}

test('a map cannot be taken out while a node has a session', async () => {
  await using cluster = await MapCluster.of(3);
  await assert.rejects(takeOut(cluster.store), { code: 'LOCKED' });
  assert.ok(!isFrozen(await cluster.store.read()));
});

test('once it is out, no node can register there any more, until it is given back', async () => {
  await using cluster = await stopped();
  await takeOut(cluster.store);
  assert.ok(isFrozen(await cluster.store.read()));
  const again = await takeOut(cluster.store);
  assert.equal(
    again.entries.some(({ key }) => key === 'frozen'),
    false,
  );
  await assert.rejects(cluster.start(asNodeId(1)), { code: 'BAD_CONFIG' });
  await unfreeze(cluster.store);
  await cluster.start(asNodeId(1));
});

test('an import that was cut short is done again from the beginning', async () => {
  await using cluster = await stopped();
  const exported = await takeOut(cluster.store);
  const store = new MemoryMapStore(new ManualClock());
  const transact = store.transact.bind(store);
  let left = 2;
  store.transact = async (transaction) => {
    if (left-- === 0) throw new Error('cut');
    return await transact(transaction);
  };
  await assert.rejects(putIn(store, exported, 'moved'), /cut/);
  assert.ok(!MapSnapshot.of(await store.read()).founded);
  left = 1_000;
  await putIn(store, exported, 'moved');
  assert.deepEqual(
    meaningOf(MapSnapshot.of(await store.read())),
    meaningOf(MapSnapshot.of(await cluster.store.read())),
  );
  await assert.rejects(putIn(store, exported, 'again'), { code: 'ALREADY_EXISTS' });
});

test('a map that comes back replaces the one that was frozen, and no other', async () => {
  await using cluster = await stopped();
  const first = await takeOut(cluster.store);
  const elsewhere = new MemoryMapStore(new ManualClock());
  await putIn(elsewhere, first, 'moved');
  const second = await takeOut(elsewhere);
  const map = await putIn(cluster.store, second, 'back');
  assert.equal(map.era, 2);
  assert.ok(!isFrozen(await cluster.store.read()));
  // what was taken out first is older than what is there now
  await assert.rejects(putIn(cluster.store, first, 'old'), { code: 'ALREADY_EXISTS' });
  await takeOut(cluster.store);
  await assert.rejects(putIn(cluster.store, first, 'old'), { code: 'OLD_STORE' });
  await using other = await MapCluster.of(3);
  for (const id of other.running.keys()) await other.stop(id);
  await takeOut(other.store);
  await assert.rejects(putIn(other.store, { ...second, map: { ...second.map, cluster: 'f'.repeat(32) } }, 'other'), {
    code: 'ALREADY_EXISTS',
  });
});

test('an export that was cut anywhere is refused', async () => {
  await using cluster = await stopped();
  const text = formatExport(await takeOut(cluster.store));
  for (let length = 0; length < text.length; length += 7) {
    assert.throws(() => parseExport(text.slice(0, length)), { code: 'CORRUPT' });
  }
  assert.throws(() => parseExport(text.replace('"webdfsMap":1', '"webdfsMap":2')), { code: 'NEWER_FORMAT' });
});
