import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, EMPTY, type GroupKey, systemClock, toHex, utf8 } from '@webdfs/base';
import { randomOf, seedOf } from '@webdfs/base/testing';
import { hashKey } from '@webdfs/placement';
import { blockId, type GarbageLimits, packOwner, packSummary, type WriteRequest } from '@webdfs/replica';
import { BLOCK_BYTES, BUCKET, Client } from './cluster-contents.ts';
import { InProcessCluster, POLICY } from './cluster-in-process.ts';
import { SimulatedStores } from './simulated-stores.ts';

/** Blocks of a cluster at its primaries, as hexadecimal ids. */
async function blocksOf(cluster: InProcessCluster): Promise<string[]> {
  const ids: string[] = [];
  for (const key of cluster.groups()) {
    const { rows } = await primaryOf(cluster, key).store.walkBlocks(key, undefined, 10_000);
    ids.push(...rows.map(({ id }) => toHex(id)));
  }
  return ids;
}

function primaryOf(cluster: InProcessCluster, key: GroupKey): ReturnType<InProcessCluster['node']> {
  return cluster.node(cluster.node(1).map.view.group(key).primary!);
}

async function aCluster(
  seed: number,
  garbage: Partial<GarbageLimits>,
): Promise<{ cluster: InProcessCluster; client: Client } & AsyncDisposable> {
  const never = { scanMs: 3_600_000, releaseMs: 3_600_000 };
  const options = { stores: new SimulatedStores(seed), groupBits: 3, garbage: { ...never, ...garbage } };
  const cluster = await InProcessCluster.start(options);
  const client = new Client(cluster, 1, seed);
  await client.begin();
  return { cluster, client, [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose]() };
}

async function scanAll(cluster: InProcessCluster): Promise<void> {
  for (const { replica } of cluster.running.values()) await replica.garbage.scan(0);
}

/** An attempt that begins now. */
function anAttempt(random: { bytes(count: number): Uint8Array }): Uint8Array {
  const attempt = random.bytes(16);
  new DataView(attempt.buffer).setUint16(0, Math.floor(systemClock.now() / 2 ** 32));
  new DataView(attempt.buffer).setUint32(2, systemClock.now() % 2 ** 32);
  return attempt;
}

/** What a gateway sends last: the record that names the blocks of an attempt. */
function namingWrite(cluster: InProcessCluster, key: Uint8Array, attempt: Uint8Array): WriteRequest {
  const { high, low } = hashKey(key);
  const layout = { type: 'blocks', attempt, blockBytes: BLOCK_BYTES } as const;
  return {
    ...cluster.router(1).groupOf(POLICY, high),
    requestId: new Uint8Array(16).fill(7),
    ageMs: 0,
    kind: 'put',
    key,
    hashHigh: high,
    hashLow: low,
    conditions: {},
    requires: [],
    summary: packSummary({ size: BLOCK_BYTES, etag: new Uint8Array(16), parts: 0, flags: 0 }),
    owner: packOwner(layout, '{}').owner,
    body: EMPTY,
  };
}

test('blocks of replaced and deleted objects go after the time for late readers, those of others stay', async (t) => {
  await using house = await aCluster(seedOf(t), { releaseMs: 30 });
  const { cluster, client } = house;
  for (const key of ['kept', 'replaced', 'deleted']) await client.put(key, 5_000);
  assert.equal((await blocksOf(cluster)).length, 15);
  await client.put('replaced', 2_000);
  await client.remove('deleted');
  await cluster.until('old blocks are gone', async () => (await blocksOf(cluster)).length === 5 + 2);
  await client.check();
});

test('a block that no record names is gone once it is old, and the late record that names it is FENCED', async (t) => {
  const random = randomOf(t);
  await using house = await aCluster(1, { orphanMs: 20 });
  const { cluster } = house;
  const attempt = anAttempt(random);
  const key = utf8('\0\0\0\u0009late');
  const upload = cluster.router(1).putBlock(POLICY, blockId(attempt, 0), { key, uploadId: new Uint8Array(16) });
  await upload.write(random.bytes(BLOCK_BYTES));
  await upload.finish();
  assert.equal((await blocksOf(cluster)).length, 1);
  await cluster.until('the block is gone', async () => {
    await scanAll(cluster);
    return (await blocksOf(cluster)).length === 0;
  });
  await assert.rejects(cluster.router(1).write(namingWrite(cluster, key, attempt)), { code: 'FENCED' });
});

test('a scan removes no block that a record names, however old', async (t) => {
  await using house = await aCluster(seedOf(t), { orphanMs: 1 });
  const { cluster, client } = house;
  await client.put('large', 5_000);
  await scanAll(cluster);
  const examined = [...cluster.running.values()].reduce(
    (sum, { replica }) => sum + replica.garbage.counters().examined,
    0,
  );
  assert.equal(examined, 5);
  await client.check();
});

test('parts of an open upload keep their blocks, those of an aborted one lose them', async (t) => {
  const random = randomOf(t);
  await using house = await aCluster(2, { orphanMs: 1 });
  const { cluster, client } = house;
  const facts = { headers: {}, user: {} };
  const key = utf8('in parts');
  const part = random.bytes(3_000);
  const { uploadId } = await client.layer.createUpload(BUCKET, key, { facts });
  const { etag } = await client.layer.putPart(BUCKET, key, { uploadId, number: 1 }, part, {});
  await scanAll(cluster);
  assert.equal((await blocksOf(cluster)).length, 3);
  await client.layer.completeUpload(BUCKET, key, uploadId, { parts: [{ number: 1, etag }] });
  await scanAll(cluster);
  client.told.set('in parts', part);
  await client.check();

  const second = await client.layer.createUpload(BUCKET, key, { facts });
  await client.layer.putPart(BUCKET, key, { uploadId: second.uploadId, number: 1 }, part, {});
  await client.layer.abortUpload(BUCKET, key, second.uploadId);
  await cluster.until('the blocks of the aborted upload are gone', async () => {
    await scanAll(cluster);
    return (await blocksOf(cluster)).length === 3;
  });
  await client.check();
});

test('a node that does not serve the key’s group says neither named nor gone', async (t) => {
  const random = randomOf(t);
  await using house = await aCluster(3, { orphanMs: 1 });
  const { cluster } = house;
  const attempt = anAttempt(random);
  const key = utf8('\0\0\0\u0009key');
  const upload = cluster.router(1).putBlock(POLICY, blockId(attempt, 0), { key, uploadId: new Uint8Array(16) });
  await upload.write(random.bytes(10));
  await upload.finish();
  // the key's primary has lost its lease: nobody serves its group
  const home = cluster.router(1).groupOf(POLICY, hashKey(key).high);
  primaryOf(cluster, home).lease.held = false;
  await scanAll(cluster);
  assert.equal((await blocksOf(cluster)).length, 1);
});

test('fences end when attempts that old are refused anyway', async (t) => {
  const random = randomOf(t);
  await using house = await aCluster(4, { orphanMs: 1, fenceKeepMs: 1_200 });
  const { cluster } = house;
  const upload = cluster.router(1).putBlock(POLICY, blockId(anAttempt(random), 0), {
    key: utf8('\0\0\0\u0009key'),
    uploadId: new Uint8Array(16),
  });
  await upload.write(random.bytes(10));
  await upload.finish();
  const fences = async (): Promise<number> => {
    let count = 0;
    for (const key of cluster.groups()) {
      const notes = await primaryOf(cluster, key).store.notes(key, EMPTY);
      count += notes.filter(({ value }) => value.length > 0).length;
    }
    return count;
  };
  await cluster.until('there is a fence', async () => {
    await scanAll(cluster);
    return (await fences()) === 1;
  });
  await cluster.until('the fence has ended', async () => {
    await scanAll(cluster);
    return (await fences()) === 0;
  });
});

test('hints beyond the limit are counted as lost, and the scan finds their blocks', async (t) => {
  await using house = await aCluster(seedOf(t), { hints: 0, orphanMs: 1 });
  const { cluster, client } = house;
  await client.put('replaced', 2_000);
  await client.put('replaced', 2_000);
  const lost = [...cluster.running.values()].map(({ replica }) => replica.garbage.counters().hintsLost);
  assert.equal(Math.max(...lost), 1);
  await cluster.until('old blocks are gone', async () => {
    await scanAll(cluster);
    return (await blocksOf(cluster)).length === 2;
  });
  await client.check();
});

test('a learner that missed fences and ended blocks has them when it is a member', async (t) => {
  await using house = await aCluster(seedOf(t), { releaseMs: 20 });
  const { cluster, client } = house;
  await client.put('kept', 3_000);
  await client.put('deleted', 3_000);
  await cluster.kill(3);
  await cluster.whenServed();
  await client.remove('deleted');
  await cluster.until('blocks are gone', async () => (await blocksOf(cluster)).length === 3);
  const { store, map } = await cluster.begin(asNodeId(3));
  await cluster.whenWhole();
  let blocks = 0;
  for (const key of cluster.groups()) {
    const { rows } = await store.walkBlocks(key, undefined, 100);
    blocks += rows.length;
    const primary = cluster.node(map.view.group(key).primary!).store;
    const named = async (at: typeof store): Promise<string[]> =>
      (await at.notes(key, EMPTY)).filter(({ value }) => value.length > 0).map(({ name }) => toHex(name));
    assert.deepEqual(await named(store), await named(primary));
  }
  assert.equal(blocks, 3);
  await client.check();
});
