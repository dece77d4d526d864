import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, systemClock } from '@webdfs/base';
import { randomOf, seedOf } from '@webdfs/base/testing';
import { testGroups } from '@webdfs/client/conformance';
import { decodeVerifyAnswer, encodeVerifyRequest, VERB, type VerifyItem } from '@webdfs/replica';
import { assertHoldsAll, assertMembersHoldAll, Client } from './cluster-contents.ts';
import { InProcessCluster, POLICY } from './cluster-in-process.ts';
import { SimulatedStores } from './simulated-stores.ts';

const THIRD = asNodeId(3);

/** A cluster with some objects, small and large. */
async function aCluster(
  seed: number,
  options: { objects: number; groupBits?: number },
): Promise<{ cluster: InProcessCluster; client: Client; stores: SimulatedStores } & AsyncDisposable> {
  const stores = new SimulatedStores(seed);
  const cluster = await InProcessCluster.start({ stores, groupBits: options.groupBits ?? 4 });
  const client = new Client(cluster, 1, seed);
  await client.begin();
  for (let i = 0; i < options.objects; i++) await client.put(`key ${i}`, i % 10 === 0 ? 3_000 : 100);
  return { cluster, client, stores, [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose]() };
}

/**
 * Until the last commit point has travelled and lies in every index (a walk waits for that): a node killed before would
 * fetch entries that it has, but does not know to be committed.
 */
async function untilTold(cluster: InProcessCluster): Promise<void> {
  for (const node of cluster.running.values()) {
    for (const key of cluster.groups()) {
      const primary = node.map.view.group(key).primary!;
      const { commit } = cluster.node(primary).store.log(key);
      await cluster.until(`node ${node.id} was told`, () => node.store.log(key).commit >= commit);
      await node.store.walkRecords(key, undefined, 1);
    }
  }
}

test('a node that was away gets only what changed meanwhile, and is a member again', async (t) => {
  await using house = await aCluster(seedOf(t), { objects: 60 });
  const { cluster, client } = house;
  await untilTold(cluster);
  await cluster.kill(THIRD);
  // 5 new, 5 overwritten, one of them and one new of three blocks, 5 deleted: one of those had three blocks
  for (let i = 0; i < 5; i++) await client.put(`new ${i}`, i === 0 ? 3_000 : 100);
  for (let i = 0; i < 5; i++) await client.put(`key ${i}`, i === 0 ? 3_000 : 100);
  for (let i = 10; i < 15; i++) await client.remove(`key ${i}`);
  const { replica } = await cluster.begin(THIRD);
  await cluster.whenWhole();
  const { fetchedEntries } = replica.catchUp.status();
  // ten records, two times three blocks
  assert.equal(fetchedEntries, 16);
  assert.equal(replica.catchUp.counters().removedEntries, 5);
  await assertHoldsAll(cluster, THIRD);
  await client.check();
});

test('a node that missed nothing gets nothing', async (t) => {
  await using house = await aCluster(seedOf(t), { objects: 30 });
  const { cluster } = house;
  await untilTold(cluster);
  await cluster.kill(THIRD);
  await cluster.whenServed();
  const { replica } = await cluster.begin(THIRD);
  await cluster.whenWhole();
  assert.equal(replica.catchUp.status().fetchedEntries, 0);
  assert.equal(replica.catchUp.counters().equalGroups, 16);
});

test('an empty disk gets everything', async (t) => {
  await using house = await aCluster(seedOf(t), { objects: 40 });
  const { cluster, client, stores } = house;
  await cluster.kill(THIRD);
  stores.wipe(THIRD);
  await cluster.begin(THIRD);
  await cluster.whenWhole();
  await assertHoldsAll(cluster, THIRD);
  await client.check();
});

test('what is written while a node catches up is on it when it is a member', async (t) => {
  await using house = await aCluster(seedOf(t), { objects: 60 });
  const { cluster, client, stores } = house;
  await cluster.kill(THIRD);
  stores.wipe(THIRD);
  let isBack = false;
  const writing = (async () => {
    for (let i = 0; !isBack || i < 30; i++) {
      if (i % 7 === 3) await client.remove(`key ${i % 60}`);
      else await client.put(`key ${(i * 13) % 60}`, i % 5 === 0 ? 2_500 : 100);
    }
  })();
  await cluster.begin(THIRD);
  await cluster.whenWhole();
  isBack = true;
  await writing;
  await assertHoldsAll(cluster, THIRD);
  await client.check();
});

test('a learner that dies while it learns begins again where its disk stands', async (t) => {
  await using house = await aCluster(seedOf(t), { objects: 60 });
  const { cluster, client, stores } = house;
  await cluster.kill(THIRD);
  stores.wipe(THIRD);
  for (let i = 0; i < 3; i++) {
    const { replica } = await cluster.begin(THIRD);
    await cluster.until('something was learned', () => replica.catchUp.status().fetchedEntries > i * 5);
    await cluster.kill(THIRD);
    await client.put(`key ${i}`, 2_500);
  }
  await cluster.begin(THIRD);
  await cluster.whenWhole();
  await assertHoldsAll(cluster, THIRD);
  await client.check();
});

test('a primary killed under writes loses nothing that was acknowledged, and no client sees an error', async (t) => {
  await using house = await aCluster(seedOf(t), { objects: 10 });
  const { cluster, client } = house;
  let isOver = false;
  const writing = (async () => {
    for (let i = 0; !isOver; i++) {
      await client.put(`key ${i % 20}`, 100);
      if (i % 9 === 0) await client.remove(`key ${(i + 7) % 20}`);
    }
  })();
  for (let round = 0; round < 3; round++) {
    await cluster.kill(2 + (round % 2));
    await cluster.whenServed();
    await cluster.begin(asNodeId(2 + (round % 2)));
    await cluster.whenWhole();
  }
  isOver = true;
  await writing;
  await client.check();
  for (const id of [1, 2, 3]) await assertHoldsAll(cluster, asNodeId(id));
});

test('groups of a node that is written off move to others, and its own copies go once they are whole there', async (t) => {
  const seed = seedOf(t);
  const stores = new SimulatedStores(seed);
  const leftovers = { dropMs: 30, lookMs: 10 };
  await using cluster = await InProcessCluster.start({ stores, nodes: 5, groupBits: 4, leftovers });
  const client = new Client(cluster, 1, seed);
  await client.begin();
  for (let i = 0; i < 30; i++) await client.put(`key ${i}`, i % 5 === 0 ? 2_500 : 100);
  const before = cluster.node(1).map.view;
  const held = [...cluster.groups()].filter((key) => before.group(key).inSync.includes(THIRD));
  assert.ok(held.length > 0);
  await cluster.kill(THIRD);
  await cluster.writeOff([3]);
  await cluster.whenWhole();
  const { view } = cluster.node(1).map;
  for (const key of held) assert.equal(view.group(key).inSync.includes(THIRD), false);
  await client.check();
  const { store } = await cluster.begin(THIRD);
  await cluster.until('its copies are gone', () =>
    held.every((key) => store.log(key).objects + store.log(key).blocks === 0),
  );
  await client.check();
  // taken back, it gets everything anew
  await cluster.writeOff([]);
  await cluster.until('it is a member again', () => {
    const now = cluster.node(1).map.view;
    return held.every((key) => now.group(key).inSync.includes(THIRD));
  });
  await cluster.whenWhole();
  for (const id of [1, 2, 3, 4, 5]) await assertMembersHoldAll(cluster, asNodeId(id));
  await client.check();
});

test('bits that turn on a member’s disk are found by VERIFY and replaced by another member’s copy', async (t) => {
  const random = randomOf(t);
  await using house = await aCluster(1, { objects: 60, groupBits: 2 });
  const { cluster, client, stores } = house;
  for (const id of [1, 2, 3]) await assertHoldsAll(cluster, asNodeId(id));
  const volumes = [...stores.disks.get(THIRD)!.files()].filter(([path]) => path.endsWith('.vol'));
  let turned = 0;
  for (const [, inode] of volumes) {
    // behind the magic, which only opening looks at
    for (let at = 2_048; at + 500 < inode.size; at += 500) {
      inode.flip(at + random.below(500), random.below(8));
      turned++;
    }
  }
  assert.ok(turned > 10, `${turned} bits`);
  const { store, replica } = cluster.node(THIRD);
  const items: VerifyItem[] = [];
  for (const key of cluster.groups()) {
    for (const row of (await store.walkRecords(key, undefined, 1_000)).rows)
      items.push({ ...key, type: 'record', id: row.key });
    for (const row of (await store.walkBlocks(key, undefined, 1_000)).rows)
      items.push({ ...key, type: 'block', id: row.id });
  }
  const states = async (): Promise<string[]> => {
    const message = encodeVerifyRequest(items);
    const answer = await cluster.node(1).transport.link(THIRD).call(VERB.VERIFY, message, { deadlineMs: 20_000 });
    return decodeVerifyAnswer(answer).map(({ state }) => state);
  };
  const found = await states();
  assert.ok(found.includes('damaged') && !found.includes('absent'), found.join(' '));
  await cluster.until('all is intact', async () => (await states()).every((state) => state === 'intact'));
  assert.ok(replica.repair.counters().repaired > 0);
  await client.check();
});

testGroups('router', async () => {
  const cluster = await InProcessCluster.start({
    stores: new SimulatedStores(systemClock.now() % 1_000_000),
    groupBits: 3,
  });
  return {
    groups: cluster.router(1),
    policy: POLICY,
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
});
