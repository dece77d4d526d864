import { type GroupKey, toHex, utf8 } from '@webdfs/base';
import { atGoal } from '@webdfs/cluster';
import { scrubFinally } from './final-scrub.ts';
import { KEYS, SimulatedClient, Violation, BUCKET } from './simulated-client.ts';
import type { Invariants } from './invariants.ts';
import type { Life, SimulatedMachine } from './machine.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

/** How long a cluster may take to be whole once the weather is good. */
const CONVERGE_MS = 120_000;
/** How long garbage may take to be found: releases, then a look at every block, twice. */
const COLLECT_MS = 90_000;
const MAX_ROWS = 10_000;

function everyLife(cluster: SimulatedCluster): Life[] {
  return cluster.machines.flatMap(({ life }) => (life === undefined ? [] : [life]));
}

/** What a cluster lacks that is whole: no change is under way, every group is where it should be, in sync, and served. */
function lackOf(cluster: SimulatedCluster): string | undefined {
  const { view } = cluster;
  for (const { number, life } of cluster.machines) if (life === undefined) return `machine ${number} does not serve`;
  for (const { node } of cluster.machines) if (!view.nodes().includes(node)) return `node ${node} has no place`;
  for (const key of cluster.groups()) {
    const group = view.group(key);
    const { health, members, inSync, goal } = group;
    if (health !== 'whole' || !atGoal(group)) {
      return `group ${key.group} is ${health}: ${members.join()}, in sync ${inSync.join()}, goal ${goal.join()}`;
    }
  }
  if (view.map.target !== undefined) return 'the target is not settled';
  return cluster.allServed ? undefined : 'some group is not served';
}

async function untilWhole(cluster: SimulatedCluster): Promise<void> {
  await cluster.until(
    'the cluster is whole:',
    () => lackOf(cluster) === undefined,
    CONVERGE_MS,
    () => lackOf(cluster) ?? '',
  );
}

/** J6: what a node holds of groups that it is no member of. */
function leftovers(cluster: SimulatedCluster): GroupKey[] {
  return cluster.machines.flatMap(({ node, life }) => {
    const { store } = life!.storage;
    const isLeft = (key: GroupKey): boolean => {
      return store.log(key).mark !== undefined && !cluster.view.group(key).inSync.includes(node);
    };
    return store.groups().filter(isLeft);
  });
}

function membersAgree(cluster: SimulatedCluster, key: GroupKey): boolean {
  const logs = cluster.view.group(key).inSync.map((node) => cluster.machine(node)?.life?.storage.store.log(key));
  const [first] = logs;
  return logs.every(
    (log) =>
      log !== undefined &&
      log.commit === log.last &&
      log.commit === first!.commit &&
      log.digest === first!.digest &&
      log.objects === first!.objects,
  );
}

/** Everything that a group's members hold can be read there, and is the same everywhere. */
async function checkCopies(cluster: SimulatedCluster, machine: SimulatedMachine, key: GroupKey): Promise<void> {
  const { store } = machine.life!.storage;
  const { rows } = await store.walkRecords(key, undefined, MAX_ROWS);
  for (const row of rows) {
    if (row.tombstone) continue;
    const record = store.find(row.key);
    if (record === undefined) throw new Violation(`node ${machine.node} lists ${toHex(row.key)} and does not find it`);
    await store.read(record);
  }
  const blocks = await store.walkBlocks(key, undefined, MAX_ROWS);
  for (const block of blocks.rows) await store.readBlock(block, 0, new Uint8Array(block.size));
}

/** How many blocks all members of all groups hold, one copy counted. */
async function countBlocks(cluster: SimulatedCluster): Promise<number> {
  let count = 0;
  for (const key of cluster.groups()) {
    const { primary } = cluster.view.group(key);
    const { rows } = await cluster.machine(primary!)!.life!.storage.store.walkBlocks(key, undefined, MAX_ROWS);
    count += rows.length;
  }
  return count;
}

/** Blocks that the objects which are there are made of. */
async function countNamed(cluster: SimulatedCluster, blockBytes: number): Promise<number> {
  const { objects: layer } = everyLife(cluster)[0]!;
  const { objects } = await layer.list(BUCKET, { limit: 1_000 });
  let count = 0;
  for (const { key } of objects) {
    const { info } = await layer.head(BUCKET, key);
    if (info.parts === 0 && info.size <= 256) continue;
    if (info.parts === 0) count += Math.ceil(info.size / blockBytes);
    for (let part = 1; part <= info.parts; part++) {
      const { length } = await layer.head(BUCKET, key, { range: { type: 'part', number: part } });
      count += Math.ceil(length / blockBytes);
    }
  }
  return count;
}

async function abortUploads(cluster: SimulatedCluster): Promise<void> {
  const { objects: layer } = everyLife(cluster)[0]!;
  for (let open = 1; open > 0;) {
    const { uploads } = await layer.listUploads(BUCKET, { limit: 1_000 });
    for (const { key, uploadId } of uploads) await layer.abortUpload(BUCKET, key, uploadId);
    open = uploads.length;
  }
  await layer.sweepUploads();
  for (const { objects } of everyLife(cluster)) await objects.idle();
}

export interface FinalSeams {
  readonly cluster: SimulatedCluster;
  readonly invariants: Invariants;
  readonly client: SimulatedClient;
  readonly blockBytes: number;
}

/**
 * The cluster becomes whole by itself, and clients see everything at every node: reads that end every key's history.
 *
 * @throws Violation
 */
export async function readFinally({ cluster, client }: FinalSeams): Promise<void> {
  await untilWhole(cluster);
  cluster.tell('final: whole');
  for (const life of everyLife(cluster)) {
    for (const key of KEYS) await cluster.during(client.read(life, key, false));
    await cluster.during(client.list(life));
  }
}

/**
 * What must hold once the weather is good again: every member of a group holds the same, every copy of it is good, no block
 * is left that nothing names, and a scrub agrees.
 *
 * @throws Violation
 */
export async function checkFinally({ cluster, invariants, blockBytes }: FinalSeams): Promise<void> {
  await cluster.during(abortUploads(cluster));
  // a node that finds out only now what its disk has lost ends itself, and comes back
  const isWhole = (): boolean => lackOf(cluster) === undefined;
  const agree = (): boolean => isWhole() && [...cluster.groups()].every((key) => membersAgree(cluster, key));
  await cluster.until('members of every group hold the same', agree, CONVERGE_MS);
  for (const key of cluster.groups()) {
    for (const node of cluster.view.group(key).inSync) {
      // what was turned over behind its back is found when it is read or scrubbed
      if (!invariants.harmed.has(node)) await cluster.during(checkCopies(cluster, cluster.machine(node)!, key));
    }
  }
  await cluster.until('nobody holds what it left', () => isWhole() && leftovers(cluster).length === 0, CONVERGE_MS);
  cluster.tell('final: copies are good');
  // what was made by a clock that was ahead becomes old when the others have come there
  const farthest = Math.max(...cluster.machines.map(({ clock }) => clock.farthest));
  for (const { clock } of cluster.machines) clock.catchUpWith(farthest);
  await cluster.pass(1_000);
  await checkGarbage(cluster, blockBytes);
  await scrubFinally(cluster, invariants, everyLife(cluster)[0]!);
  for (const key of cluster.groups()) {
    for (const node of cluster.view.group(key).inSync) {
      await cluster.during(checkCopies(cluster, cluster.machine(node)!, key));
    }
  }
}

async function checkGarbage(cluster: SimulatedCluster, blockBytes: number): Promise<void> {
  await untilWhole(cluster);
  const named = await cluster.during(countNamed(cluster, blockBytes));
  const until = cluster.time.now + COLLECT_MS;
  let blocks = Infinity;
  while (blocks > named && cluster.time.now < until) {
    await cluster.pass(2_000);
    await untilWhole(cluster);
    blocks = await cluster.during(countBlocks(cluster));
  }
  if (blocks !== named) throw new Violation(`${blocks} blocks are kept, objects are made of ${named}`);
  cluster.tell(`final: ${blocks} blocks, all named`);
}

/** The objects' bucket. */
export async function makeBucket(cluster: SimulatedCluster): Promise<void> {
  const { objects } = everyLife(cluster)[0]!;
  await cluster.during(objects.createBucket(BUCKET, { owner: 'simulated' }));
  await cluster.during(objects.list(BUCKET, { limit: 1, prefix: utf8('') }));
}
