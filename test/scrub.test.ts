import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunkSums, EMPTY, type GroupKey, type NodeId, SeededRandom, systemClock, toHex, utf8 } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { objectKey } from '@webdfs/client';
import { hashKey } from '@webdfs/placement';
import { blockId, type Survey, survey, unpackOwner } from '@webdfs/replica';
import { FLAG, KIND, type LogEntry, REQUEST_ID_BYTES, SUMMARY_BYTES } from '@webdfs/store';
import { BLOCK_BYTES, BUCKET, Client } from './cluster-contents.ts';
import { InProcessCluster, POLICY, type RunningNode } from './cluster-in-process.ts';
import { SimulatedStores } from './simulated-stores.ts';

const FAST = { lookMs: 10, surveyMs: 3_600_000, saveMs: 3_600_000 };
const PACE = 2 ** 34;
const NODES = 3;

interface Bed extends AsyncDisposable {
  readonly cluster: InProcessCluster;
  readonly client: Client;
  readonly stores: SimulatedStores;
  readonly random: SeededRandom;
  readonly bucket: number;
}

async function aCluster(seed: number): Promise<Bed> {
  const stores = new SimulatedStores(seed);
  const isObject = (key: Uint8Array): boolean => new DataView(key.buffer, key.byteOffset).getUint32(0) > 0;
  const cluster = await InProcessCluster.start({
    stores,
    groupBits: 3,
    garbage: { scanMs: 3_600_000, releaseMs: 3_600_000, orphanMs: 0 },
    scrub: { ...FAST, isObject },
  });
  const client = new Client(cluster, 1, seed);
  await client.begin();
  const { id: bucket } = await client.layer.bucket(BUCKET);
  const close = (): Promise<void> => cluster[Symbol.asyncDispose]();
  return { cluster, client, stores, random: new SeededRandom(seed), bucket, [Symbol.asyncDispose]: close };
}

/** Nothing is put right but by the scrub: what is found is what was planted. */
function withoutRepair({ cluster }: Bed): void {
  for (const { replica } of cluster.running.values()) replica.repair.stop();
}

/** Waits until all members have applied what the primaries have. */
async function applied({ cluster }: Bed): Promise<void> {
  await cluster.until('everybody has applied everything', () => {
    const nodes = [...cluster.running.values()];
    return [...cluster.groups()].every(
      (group) => new Set(nodes.map(({ store }) => store.log(group).commit)).size === 1,
    );
  });
}

let passes = 0;

/** Begins a pass at one node and waits until nobody has anything left to do. */
async function pass({ cluster }: Bed, at = 1): Promise<Survey> {
  const { map, transport } = cluster.node(at);
  const seams = { map, clock: systemClock, link: (node: NodeId) => transport.link(node) };
  const begun = { id: systemClock.now() + passes++, bytesPerSecond: PACE };
  let last = await survey(seams, { pass: begun });
  await cluster.until('a pass has ended', async () => {
    last = await survey(seams);
    return last.nodes.every(
      ({ said }) => typeof said !== 'string' && said.pass?.id === begun.id && said.state !== 'working',
    );
  });
  return last;
}

/** Where something is kept: its group, and the members with the primary first. */
function homeOf({ cluster }: Bed, id: Uint8Array): { group: GroupKey; members: readonly NodeId[] } {
  const group = cluster.router(1).groupOf(POLICY, hashKey(id).high);
  return { group, members: cluster.node(1).map.view.group(group).inSync };
}

function entryOf(group: GroupKey, kind: LogEntry['kind'], key: Uint8Array, sequence: number): LogEntry {
  const { high: hashHigh, low: hashLow } = hashKey(key);
  const numbers = { sequence, ballot: 1, commit: 0, timeMs: 1, timeCount: 0, hashHigh, hashLow };
  const meta = new Uint8Array(REQUEST_ID_BYTES);
  return { ...group, kind, ...numbers, flags: FLAG.LATEST_ONLY, key, meta, body: EMPTY, sums: chunkSums(EMPTY) };
}

/** Takes a record or block away from one node, and all trace of it: nothing shows that it ever was, or was deleted. */
async function remove(bed: Bed, node: RunningNode, group: GroupKey, id: Uint8Array): Promise<void> {
  const record = node.store.find(id);
  const sequence = (record ?? node.store.findBlock(group, id))!.sequence + 1;
  const kind = record === undefined ? KIND.BLOCK_GONE : KIND.TOMBSTONE;
  await node.store.install({
    ...entryOf(group, kind, id, sequence),
    flags: record === undefined ? 0 : FLAG.LATEST_ONLY,
  });
  await forget(bed, node, group, id);
  assert.equal(node.store.find(id), undefined);
  if (record === undefined) assert.equal(node.store.findBlock(group, id), undefined);
}

/** Takes the rows of a key or block out of a node's index, tombstones included. */
async function forget(bed: Bed, node: RunningNode, group: GroupKey, id: Uint8Array): Promise<void> {
  // a walk waits until everything is in the index
  await node.store.walkRecords(group, undefined, 1);
  const index = bed.stores.indexes.get(node.id)!;
  for (const letter of ['b', 'h']) {
    const rows = await index.range({ gte: utf8(letter), lt: utf8(`${letter}\xff`), limit: 10_000 });
    const traces = rows.filter(({ key }) => Buffer.from(key).subarray(-id.length).equals(id));
    await index.batch(
      traces.map(({ key }) => ({ key: key.slice() })),
      { sync: true },
    );
  }
}

/** Flips a byte of every place in a node's volumes where these bytes lie. */
async function spoil({ stores }: Bed, node: NodeId, bytes: Uint8Array): Promise<void> {
  const disk = stores.disks.get(node)!;
  let spoiled = 0;
  for (const name of await disk.list('/data/volumes')) {
    const file = await disk.open(`/data/volumes/${name}`, 'write');
    const whole = Buffer.alloc(await file.size());
    await file.read(whole, 0);
    for (let at = whole.indexOf(bytes); at >= 0; at = whole.indexOf(bytes, at + 1)) {
      await file.writev([Uint8Array.of(whole[at]! ^ 0x40)], at);
      spoiled++;
    }
    await file.close();
  }
  assert.ok(spoiled > 0, 'the bytes are in no volume');
}

async function blocksOf(bed: Bed, key: Uint8Array, size: number): Promise<Uint8Array[]> {
  const { members } = homeOf(bed, key);
  const { store } = bed.cluster.node(members[0]!);
  const entry = await store.read(store.find(key)!);
  const { layout } = unpackOwner(entry.meta.subarray(REQUEST_ID_BYTES + SUMMARY_BYTES), entry.body);
  assert.equal(layout.type, 'blocks');
  const { attempt } = layout as { attempt: Uint8Array };
  return Array.from({ length: Math.ceil(size / BLOCK_BYTES) }, (_, number) => blockId(attempt, number));
}

/** Plants damage in one object. @returns good copies that are left of it */
async function plant(bed: Bed, name: string, body: Uint8Array): Promise<number> {
  const { cluster, random, bucket } = bed;
  const key = objectKey(bucket, utf8(name));
  const isInline = body.length <= 256;
  const blocks = isInline ? [] : await blocksOf(bed, key, body.length);
  const number = random.below(blocks.length + 1);
  const isRecord = isInline || number === blocks.length;
  const { group, members } = homeOf(bed, isRecord ? key : blocks[number]!);
  const damages = random.below(4);
  const victims = [...members].toSorted(() => random.below(3) - 1).slice(0, damages);
  for (const victim of victims) {
    // a record that is nowhere never was: one copy must be left to show it
    const isTaken = random.below(2) === 0 && !(isRecord && victims.length === NODES);
    const node = cluster.node(victim);
    if (isRecord && (isTaken || !isInline)) {
      if (victims.length < NODES) await remove(bed, node, group, key);
      else return NODES;
    } else if (isTaken) await remove(bed, node, group, blocks[number]!);
    else await spoil(bed, victim, isRecord ? body : body.subarray(number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES));
  }
  return NODES - damages;
}

function byCopies(counts: Iterable<number>): number[] {
  const sums: number[] = [];
  for (const count of counts) {
    while (sums.length <= count) sums.push(0);
    sums[count]!++;
  }
  return sums;
}

test('a report counts exactly the damage that was planted, and after mending the next one finds none', async (context) => {
  const seed = seedOf(context);
  for (let round = 0; round < 2; round++) {
    await using bed = await aCluster(seed + round);
    withoutRepair(bed);
    for (let i = 0; i < 40; i++)
      await bed.client.put(
        `key-${i}`,
        i % 3 === 0 ? 500 + BLOCK_BYTES * (1 + bed.random.below(4)) : 64 + bed.random.below(190),
      );
    await applied(bed);
    const left = new Map<string, number>();
    for (const [name, body] of bed.client.told) left.set(name, await plant(bed, name, body!));
    const first = await pass(bed);
    assert.equal(first.complete, true, JSON.stringify(first.uncounted));
    const { tally } = first.policies[0]!;
    assert.deepEqual(tally.objects, byCopies(left.values()), JSON.stringify([...left, ...tally.problems]));
    const lost = [...left].filter(([, copies]) => copies === 0);
    const second = await pass(bed, 2);
    assert.equal(second.complete, true);
    const { objects } = second.policies[0]!.tally;
    const disputed = tally.problems.filter(({ why }) => why !== undefined && /nothing shows/.test(why));
    assert.equal(objects[NODES], 40 - lost.length - disputed.length, JSON.stringify(second.policies[0]!.tally));
    assert.equal(second.clean, lost.length + disputed.length === 0);
  }
});

test('copies of what was deleted are removed where a tombstone proves it, and never without', async (context) => {
  await using bed = await aCluster(seedOf(context));
  const { cluster, client, bucket } = bed;
  await client.put('deleted', 100);
  const deleted = objectKey(bucket, utf8('deleted'));
  const { members } = homeOf(bed, deleted);
  const holder = cluster.node(members[2]!);
  await applied(bed);
  const kept = await holder.store.read(holder.store.find(deleted)!);
  await client.remove('deleted');
  await applied(bed);
  // what a deletion that was missed leaves behind: the row, and no tombstone here
  await forget(bed, holder, homeOf(bed, deleted).group, deleted);
  await holder.store.install(kept);
  assert.notEqual(holder.store.find(deleted), undefined);
  const never = objectKey(bucket, utf8('never deleted'));
  const home = homeOf(bed, never);
  const other = cluster.node(home.members[1]!);
  const { high: hashHigh, low: hashLow } = hashKey(never);
  await other.store.install({ ...kept, ...home.group, key: never, hashHigh, hashLow, sequence: 1 });
  const report = await pass(bed);
  assert.equal(report.complete, true);
  assert.equal(report.clean, false);
  const { tally } = report.policies[0]!;
  assert.deepEqual([tally.found.surplus, tally.mended, tally.left], [1, 1, 1], JSON.stringify(tally));
  assert.equal(holder.store.find(deleted), undefined);
  assert.deepEqual(
    tally.problems.filter(({ mended }) => !mended).map(({ key }) => key),
    [toHex(never)],
  );
  assert.notEqual(other.store.find(never), undefined, 'the only copy of something is not destroyed on suspicion');
});

test('a block that one member kept though its object is gone is removed, behind a fence', async (context) => {
  await using bed = await aCluster(seedOf(context));
  const { cluster, client, bucket } = bed;
  await client.put('gone', 500 + BLOCK_BYTES);
  await client.put('kept', 500 + BLOCK_BYTES);
  await applied(bed);
  const [id] = await blocksOf(bed, objectKey(bucket, utf8('gone')), 500 + BLOCK_BYTES);
  const { group, members } = homeOf(bed, id!);
  const holder = cluster.node(members[2]!);
  const row = holder.store.findBlock(group, id!)!;
  const entry = await holder.store.readBlockEntry(row);
  const bytes = new Uint8Array(row.size);
  await holder.store.readBlock(row, 0, bytes);
  await client.remove('gone');
  for (const { replica } of cluster.running.values()) await replica.garbage.scan(0);
  await cluster.until('the block is gone', () => holder.store.findBlock(group, id!) === undefined);
  // what would be if this member had never heard of it
  await forget(bed, holder, group, id!);
  const staging = holder.store.stage(group, id!);
  await staging.write(bytes);
  await staging.finish();
  await holder.store.install(entry);
  assert.notEqual(holder.store.findBlock(group, id!), undefined);
  const report = await pass(bed);
  const { tally } = report.policies[0]!;
  assert.deepEqual([tally.found.surplus, tally.mended, tally.left], [1, 1, 0], JSON.stringify(tally));
  assert.equal(holder.store.findBlock(group, id!), undefined);
  assert.equal((await pass(bed)).clean, true);
});

test('a group is not counted while one of its members cannot be asked, and the report names it', async (context) => {
  await using bed = await aCluster(seedOf(context));
  for (let i = 0; i < 10; i++) await bed.client.put(`key-${i}`, 200);
  assert.equal((await pass(bed)).clean, true);
  await bed.cluster.kill(3);
  const { map, transport } = bed.cluster.node(1);
  const report = await survey({ map, clock: systemClock, link: (node) => transport.link(node) });
  assert.equal(report.complete, false);
  assert.ok(report.unread.includes(3 as NodeId));
  assert.ok(report.uncountedGroups > 0);
  assert.ok(report.lastComplete !== undefined, 'that the pass before was complete is remembered');
});
