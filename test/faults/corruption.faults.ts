import assert from 'node:assert/strict';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import type { S3Client, WhereReport } from '@webdfs/webdfs';
import { RunningCluster } from '../support/running-cluster.ts';

const FLIPS = 40;
const REPAIR_MS = 60_000;

/** Flips one bit of one byte of a volume, behind the back of the node that holds it open. */
async function flip(random: SeededRandom, folder: string): Promise<string> {
  const volumes = (await readdir(folder)).filter((name) => name.endsWith('.vol'));
  const path = join(folder, volumes[random.below(volumes.length)]!);
  const { size } = await stat(path);
  const offset = random.below(size);
  const file = await open(path, 'r+');
  try {
    const byte = new Uint8Array(1);
    await file.read(byte, 0, 1, offset);
    byte[0] = byte[0]! ^ (1 << random.below(8));
    await file.write(byte, 0, 1, offset);
  } finally {
    await file.close();
  }
  return `${path} at ${offset}`;
}

async function whereOf(client: S3Client, key: string): Promise<WhereReport> {
  const { body } = await client.call({ method: 'GET', bucket: '-', key: 'where', query: { bucket: 'bucket', key } });
  return JSON.parse(body);
}

test('flipped bits in a member are never served, are reported, and are repaired', async (context) => {
  const random = new SeededRandom(seedOf(context));
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'bucket' } });
  using client = cluster.client();
  const contents = new Map<string, Buffer>();
  for (let index = 0; index < 60; index++) {
    const body = Buffer.from(random.bytes(index % 10 === 9 ? 3_000_000 : 20_000));
    contents.set(`key-${index}`, body);
    await client.call({ method: 'PUT', bucket: 'bucket', key: `key-${index}`, body });
  }
  const victim = cluster.ready.nodes[1]!;
  const places: string[] = [];
  for (let count = 0; count < FLIPS; count++) places.push(await flip(random, join(victim.data, 'volumes')));
  for (const [key, body] of contents) {
    // several connections, so that several nodes answer
    for (let round = 0; round < 3; round++) {
      using fresh = cluster.client();
      assert.deepEqual(await buffer(await fresh.get('bucket', key)), body, `${key}; flipped ${places.join(', ')}`);
    }
  }
  let reported = 0;
  for (const key of contents.keys()) {
    const report = await whereOf(client, key);
    const bad = report.places.flatMap((place) => place.copies).filter((copy) => copy.checksum !== 'good');
    reported += bad.length;
    assert.ok(
      bad.every((copy) => copy.node === victim.id),
      JSON.stringify(report),
    );
  }
  context.diagnostic(`${reported} damaged copies reported after ${FLIPS} flips`);
  assert.ok(reported > 0, 'no flip was noticed');
  const until = performance.now() + REPAIR_MS;
  for (const key of contents.keys()) {
    while (!(await whereOf(client, key)).sound) {
      assert.ok(performance.now() < until, `${key} was not repaired: ${JSON.stringify(await whereOf(client, key))}`);
      await sleep(systemClock, 250);
    }
  }
});

test('a node that was stopped, damaged and started again serves nothing wrong and becomes whole', async (context) => {
  const random = new SeededRandom(seedOf(context));
  const first = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'bucket' } });
  const contents = new Map<string, Buffer>();
  {
    using client = first.client();
    for (let index = 0; index < 40; index++) {
      const body = Buffer.from(random.bytes(30_000));
      contents.set(`key-${index}`, body);
      await client.call({ method: 'PUT', bucket: 'bucket', key: `key-${index}`, body });
    }
  }
  await first.stop();
  for (let count = 0; count < 10; count++) await flip(random, join(first.ready.nodes[0]!.data, 'volumes'));
  await using second = await RunningCluster.start({ data: first.data, port: first.port });
  await second.whole();
  using client = second.client();
  for (const [key, body] of contents) assert.deepEqual(await buffer(await client.get('bucket', key)), body, key);
});
