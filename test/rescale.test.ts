import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, type NodeId, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { proposeAbort, proposeMoveLimits } from '@webdfs/cluster';
import type { TopologyChange } from '@webdfs/placement';
import { assertMembersHoldAll, Client } from './cluster-contents.ts';
import { InProcessCluster } from './cluster-in-process.ts';
import { SimulatedStores } from './simulated-stores.ts';

/** Clusters that grow and shrink: what must hold while groups move, and what moving may cost. */

const GROW: TopologyChange = { type: 'add-nodes', subcluster: 1, count: 2, labels: {} };
const ADDED = [asNodeId(4), asNodeId(5)];
/** The least that a map may name: an object of a few kilobytes takes a while. */
const SLOW = { bytesPerSecond: 65_536 };

async function aCluster(
  seed: number,
  objects: number,
): Promise<{ cluster: InProcessCluster; client: Client; stores: SimulatedStores }> {
  const stores = new SimulatedStores(seed);
  const cluster = await InProcessCluster.start({ stores, groupBits: 5 });
  const client = new Client(cluster, 1, seed);
  await client.begin();
  for (let i = 0; i < objects; i++) await client.put(`key ${i}`, i % 2 === 0 ? 4_000 : 200);
  return { cluster, client, stores };
}

/** Every state of the map that a node sees has as many members in sync as promised, in every group. */
function watchCopies(cluster: InProcessCluster, copies: number): { readonly least: () => number } {
  let least = copies;
  const { map } = cluster.node(1);
  map.onChange((view) => {
    for (const key of cluster.groups()) least = Math.min(least, view.group(key).inSync.length);
  });
  return { least: () => least };
}

/** Payload bytes of the groups that some nodes are members of now. */
async function heldBytes(cluster: InProcessCluster, nodes: readonly NodeId[]): Promise<number> {
  let bytes = 0;
  for (const id of nodes) {
    const { store, map } = cluster.node(id);
    for (const key of cluster.groups()) {
      if (!map.view.group(key).inSync.includes(id)) continue;
      for (const row of (await store.walkBlocks(key, undefined, 10_000)).rows) bytes += row.size;
      for (const row of (await store.walkRecords(key, undefined, 10_000)).rows) {
        const record = row.tombstone ? undefined : store.find(row.key);
        if (record !== undefined) bytes += (await store.read(record)).body.length;
      }
    }
  }
  return bytes;
}

function received(cluster: InProcessCluster): number {
  return [...cluster.running.values()].reduce(
    (sum, { replica }) => sum + replica.engine.moves.status().receivedBytes,
    0,
  );
}

async function grow(cluster: InProcessCluster): Promise<void> {
  await cluster.retarget(GROW);
  for (const id of ADDED) await cluster.begin(id);
}

test('a cluster that grows moves each byte that has to move once, and no group has fewer copies meanwhile', async (t) => {
  const { cluster, client } = await aCluster(seedOf(t), 60);
  await using _ = cluster;
  const watch = watchCopies(cluster, 3);
  await grow(cluster);
  await cluster.whenAtGoal();
  assert.equal(watch.least(), 3);
  const least = await heldBytes(cluster, ADDED);
  const moved = received(cluster);
  assert.ok(moved >= least && moved <= 1.02 * least, `${moved} bytes moved, ${least} had to`);
  await client.check();
  for (const id of [1, 2, 3, 4, 5]) await assertMembersHoldAll(cluster, asNodeId(id));
});

test('what is written while a cluster grows and shrinks again is on all members, and on none that left', async (t) => {
  const { cluster, client } = await aCluster(seedOf(t), 40);
  await using _ = cluster;
  const watch = watchCopies(cluster, 3);
  let isOver = false;
  const writing = (async () => {
    for (let i = 0; !isOver; i++) {
      if (i % 9 === 4) await client.remove(`key ${i % 40}`);
      else await client.put(`key ${(i * 13) % 50}`, i % 5 === 0 ? 3_000 : 100);
    }
  })();
  await grow(cluster);
  await cluster.whenAtGoal();
  await cluster.transact(proposeAbort);
  await cluster.whenAtGoal();
  isOver = true;
  await writing;
  assert.equal(watch.least(), 3);
  const { view } = cluster.node(1).map;
  for (const key of cluster.groups()) assert.ok(view.group(key).inSync.every((node) => node <= 3));
  for (const id of [1, 2, 3]) await assertMembersHoldAll(cluster, asNodeId(id));
  await client.check();
});

test('a learner that no goal wants any more stops at once, and what it had come for is not asked for', async (t) => {
  const { cluster } = await aCluster(seedOf(t), 200);
  await using _ = cluster;
  await cluster.transact((view) => proposeMoveLimits(view, SLOW));
  await grow(cluster);
  const learning = (): number => ADDED.reduce((sum, id) => sum + cluster.node(id).replica.catchUp.status().groups, 0);
  await cluster.until('something moves', () => learning() > 0 && received(cluster) > 10_000);
  const left = cluster.groupsToMove();
  assert.ok(left > 0);
  await cluster.transact(proposeAbort);
  assert.equal(learning(), 0);
  const before = received(cluster);
  await cluster.transact((view) => proposeMoveLimits(view, {}));
  await cluster.whenAtGoal();
  // pieces that were on their way, and what groups on their way back need
  assert.ok(received(cluster) - before < 64 * 1_024, `${received(cluster) - before} bytes after the end`);
});

test('a source, a receiver and the target change while groups move: every copy is made, and little is sent twice', async (t) => {
  const seed = seedOf(t);
  const random = new SeededRandom(seed + 1);
  const { cluster, client } = await aCluster(seed, 120);
  await using _ = cluster;
  await cluster.transact((view) => proposeMoveLimits(view, { bytesPerSecond: 4 * SLOW.bytesPerSecond }));
  await grow(cluster);
  const all = cluster.groupsToMove();
  const whenLeft = async (part: number): Promise<void> =>
    cluster.until('groups moved', () => cluster.groupsToMove() <= all * part);
  await whenLeft(0.6 + 0.3 * random.fraction());
  const receiver = ADDED[random.below(2)]!;
  await cluster.kill(receiver);
  await cluster.begin(receiver);
  await whenLeft(0.3 + 0.2 * random.fraction());
  const source = asNodeId(2 + random.below(2));
  await cluster.kill(source);
  await client.put('while it is away', 3_000);
  await cluster.begin(source);
  await cluster.retarget(GROW, { type: 'reweight', nodes: { by: 'id', ids: [5] }, weight: 2 * 65_536 });
  await cluster.transact((view) => proposeMoveLimits(view, {}));
  await cluster.whenAtGoal();
  const wasted = [...cluster.running.values()].reduce(
    (sum, { replica }) => sum + replica.catchUp.counters().wastedBytes,
    0,
  );
  const least = await heldBytes(cluster, ADDED);
  // a window of blocks at each node that learned
  assert.ok(wasted <= 0.02 * least + 4 * 8 * 1_024, `${wasted} of ${least} bytes came in vain`);
  await client.check();
  for (const id of [1, 2, 3, 4, 5]) await assertMembersHoldAll(cluster, asNodeId(id));
});

test('what is damaged at a source is not sent: it comes from another, and is whole', async (t) => {
  const seed = seedOf(t);
  const random = new SeededRandom(seed + 1);
  const { cluster, client, stores } = await aCluster(seed, 60);
  await using _ = cluster;
  for (const [path, inode] of stores.disks.get(asNodeId(2))!.files()) {
    // behind the magic, which only opening looks at
    for (let at = 2_048; path.endsWith('.vol') && at + 1_000 < inode.size; at += 1_000) {
      inode.flip(at + random.below(1_000), random.below(8));
    }
  }
  await grow(cluster);
  await cluster.whenAtGoal();
  await client.check();
  for (const id of ADDED) await assertMembersHoldAll(cluster, id);
});
