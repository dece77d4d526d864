import assert from 'node:assert/strict';
import { open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  chunkSums,
  EMPTY,
  NodeDisk,
  SeededRandom,
  silentLog,
  sleep,
  systemClock,
  SystemRandom,
  utf8,
} from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { objectKey } from '@webdfs/client';
import { hashKey } from '@webdfs/placement';
import { FLAG, KIND, LevelIndexHouse, openStore, readIdentity, REQUEST_ID_BYTES } from '@webdfs/store';
import type { S3Client, ScrubReport } from '@webdfs/webdfs';
import { RunningCluster } from '../support/running-cluster.ts';

const OBJECTS = 60;
const FLIPS = 30;
/** The first bucket that a cluster makes. */
const FIRST_BUCKET = 1;

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}

async function fill(client: S3Client, random: SeededRandom): Promise<void> {
  for (let index = 0; index < OBJECTS; index++) {
    const body = Buffer.from(random.bytes(index % 10 === 9 ? 3_000_000 : 20_000));
    await client.call({ method: 'PUT', bucket: 'bucket', key: `key-${index}`, body });
  }
}

/** Flips a bit of a byte somewhere behind the heads of a node's volumes, several times. */
async function flip(random: SeededRandom, folder: string): Promise<void> {
  const volumes = (await readdir(folder)).filter((name) => name.endsWith('.vol'));
  for (let count = 0; count < FLIPS; count++) {
    const path = join(folder, volumes[random.below(volumes.length)]!);
    const { size } = await stat(path);
    const offset = 64 + random.below(size - 64);
    const file = await open(path, 'r+');
    try {
      const byte = new Uint8Array(1);
      await file.read(byte, 0, 1, offset);
      byte[0]! ^= 1 << random.below(8);
      await file.write(byte, 0, 1, offset);
    } finally {
      await file.close();
    }
  }
}

/** The largest volume of a node is lost. */
async function loseVolume(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.vol'));
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  await rm(join(folder, names[sizes.indexOf(Math.max(...sizes))]!));
}

/** Takes records away from a stopped node, and all trace of them. @returns how many */
async function takeAway(folder: string, keys: readonly string[]): Promise<number> {
  const disk = new NodeDisk();
  const identity = await readIdentity(disk, folder);
  const rowKeys = keys.map((key) => objectKey(FIRST_BUCKET, utf8(key)));
  let taken = 0;
  {
    const seams = {
      disk,
      index: new LevelIndexHouse(),
      clock: systemClock,
      random: new SystemRandom(),
      log: silentLog,
    };
    await using store = await openStore({ ...seams, folder, identity: identity! });
    for (const key of rowKeys) {
      const row = store.find(key);
      if (row === undefined) continue;
      const { high: hashHigh, low: hashLow } = hashKey(key);
      const numbers = { sequence: row.sequence + 1, ballot: 1, commit: 0, timeMs: 1, timeCount: 0, hashHigh, hashLow };
      const rest = { meta: new Uint8Array(REQUEST_ID_BYTES), body: EMPTY, sums: chunkSums(EMPTY) };
      const { policy, group } = row;
      await store.install({ policy, group, kind: KIND.TOMBSTONE, flags: FLAG.LATEST_ONLY, key, ...numbers, ...rest });
      taken++;
    }
  }
  await using index = await new LevelIndexHouse().open(join(folder, 'index'));
  for (const letter of ['h', 't']) {
    const rows = await index.range({ gte: utf8(letter), lt: utf8(`${letter}\xff`), limit: 100_000 });
    const traces = rows.filter(({ key }) =>
      rowKeys.some((each) => Buffer.from(key).subarray(-each.length).equals(each)),
    );
    await index.batch(
      traces.map(({ key }) => ({ key: Uint8Array.from(key) })),
      { sync: true },
    );
  }
  return taken;
}

async function scrub(cluster: RunningCluster, ...words: string[]): Promise<{ code: number; report: ScrubReport }> {
  const { code, stdout, stderr } = await cluster.webdfs('scrub', '--json', ...words);
  assert.notEqual(stdout, '', stderr);
  return { code, report: JSON.parse(stdout) };
}

test('flipped bytes, a lost volume and missing copies are found, mended, and the next pass is clean and complete', async (context) => {
  const random = new SeededRandom(seedOf(context));
  const first = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'bucket' } });
  {
    using client = first.client();
    await fill(client, random);
  }
  const before = await scrub(first, '--now', '--pace', '1000');
  assert.equal(before.code, 0, JSON.stringify(before.report));
  assert.deepEqual(before.report.policies[0]!.objects, { 3: OBJECTS });
  await first.stop();
  const [one, two, three] = first.ready.nodes.map(({ data }) => data);
  // damage of each sort at another node, so that a good copy of everything is left: no key is hit twice
  const keys = Array.from({ length: OBJECTS }, (_, index) => `key-${index}`);
  const taken = await takeAway(three!, keys.slice(0, 10));
  assert.equal(taken, 10);
  await using second = await RunningCluster.start({ data: first.data, port: first.port });
  await second.whole();
  // behind the back of the node that holds them open
  await flip(random, join(one!, 'volumes'));
  const found = await scrub(second, '--now', '--pace', '1000');
  const policy = found.report.policies[0]!;
  context.diagnostic(
    `found ${JSON.stringify(policy.found)}, ${policy.mended} mended, objects ${JSON.stringify(policy.objects)}`,
  );
  assert.equal(found.report.complete, true, JSON.stringify(found.report.notCounted));
  assert.equal(found.report.clean, false);
  assert.equal(found.code, 1);
  assert.equal(sum(policy.objects), OBJECTS);
  assert.equal(policy.left, 0, JSON.stringify(policy.problems));
  assert.ok(policy.found['damaged']! > 0);
  await second.stop();
  // now a whole volume of the other node
  await loseVolume(join(two!, 'volumes'));
  await using third = await RunningCluster.start({ data: first.data, port: first.port });
  await third.whole();
  const lost = await scrub(third, '--now', '--pace', '1000');
  context.diagnostic(`without a volume: found ${JSON.stringify(lost.report.policies[0]!.found)}`);
  assert.equal(lost.report.complete, true, JSON.stringify(lost.report.notCounted));
  assert.equal(lost.report.policies[0]!.left, 0, JSON.stringify(lost.report.policies[0]!.problems));
  assert.ok(sum(lost.report.policies[0]!.found) > 0);
  const clean = await scrub(third, '--now', '--pace', '1000');
  assert.equal(clean.report.clean, true, JSON.stringify(clean.report));
  assert.equal(clean.code, 0);
  assert.deepEqual(clean.report.policies[0]!.objects, { 3: OBJECTS });
  const proof = await third.webdfs('verify', '--json');
  assert.equal(proof.code, 0, proof.stdout);
  assert.equal(JSON.parse(proof.stdout).objects, OBJECTS);
  assert.equal((await third.status()).scrub.lastComplete?.clean, true);
});

test('a node that is killed in the middle of a pass leaves a report that does not say complete', async (context) => {
  const random = new SeededRandom(seedOf(context));
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'bucket' } });
  using client = cluster.client();
  await fill(client, random);
  const begun = await scrub(cluster, '--now', '--once', '--pace', '8');
  assert.equal(begun.report.complete, false);
  assert.equal(begun.code, 1);
  await sleep(systemClock, 2_000);
  const victim = cluster.ready.nodes[2]!;
  process.kill(victim.pid, 'SIGKILL');
  const cut = await scrub(cluster, '--once');
  assert.equal(cut.report.complete, false);
  assert.equal(cut.report.clean, false);
  assert.equal(cut.code, 1);
  const named = [...cut.report.notCounted.map(({ why }) => why), ...cut.report.nodes.map(({ why }) => why ?? '')];
  context.diagnostic(`${cut.report.notCountedGroups} groups not counted, such as: ${named[0]}`);
  assert.ok(cut.report.notCountedGroups > 0);
  // it is started again, catches up, and the pass goes on where it was
  await cluster.whole();
  const end = await scrub(cluster);
  assert.equal(end.report.pass!.began, begun.report.pass!.began);
  assert.equal(end.report.clean, true, JSON.stringify(end.report));
  assert.deepEqual(end.report.policies[0]!.objects, { 3: OBJECTS });
});

test('verify fails when an object cannot be proved', async () => {
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'bucket' } });
  using client = cluster.client();
  const body = Buffer.from(new SeededRandom(5).bytes(10_000));
  await client.call({ method: 'PUT', bucket: 'bucket', key: 'key', body });
  assert.equal((await cluster.webdfs('verify')).code, 0);
  for (const { data } of cluster.ready.nodes) {
    for (const name of await readdir(join(data, 'volumes'))) {
      const path = join(data, 'volumes', name);
      const at = (await readFile(path)).indexOf(body.subarray(0, 100));
      if (at < 0) continue;
      const file = await open(path, 'r+');
      await file.write(Uint8Array.of(body[0]! ^ 1), 0, 1, at);
      await file.close();
    }
  }
  const proof = await cluster.webdfs('verify', '--json');
  assert.equal(proof.code, 1);
  assert.match(proof.stdout, /"key":"key"/);
  const { report } = await scrub(cluster, '--now', '--pace', '1000');
  assert.equal(report.complete, true);
  assert.deepEqual(report.policies[0]!.objects, { 0: 1 });
  assert.equal(report.clean, false);
});
