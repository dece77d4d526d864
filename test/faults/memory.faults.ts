import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { usageOf } from '@webdfs/bench';
import { RunningCluster } from '../support/running-cluster.ts';

const MIB = 1024 * 1024;
const LIMIT_BYTES = 300 * MIB;
const LONG = process.env['WEBDFS_LONG'] === '1';

/** Watches the anonymous memory of every node while something goes on; the largest of each. */
async function peaksDuring(cluster: RunningCluster, work: () => Promise<void>): Promise<number[]> {
  const pids = cluster.ready.nodes.map((node) => node.pid);
  const peaks = pids.map(() => 0);
  let done = false;
  const watching = (async () => {
    while (!done) {
      for (const [index, pid] of pids.entries()) peaks[index] = Math.max(peaks[index]!, usageOf([pid]).anonymousBytes);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  await work().finally(() => {
    done = true;
  });
  await watching;
  return peaks;
}

async function* bytesOf(client: number, size: number): AsyncGenerator<Uint8Array> {
  const piece = Buffer.alloc(MIB, `client ${client};`);
  for (let sent = 0; sent < size; sent += MIB) {
    piece.writeUInt32LE(sent / MIB, 0);
    yield Uint8Array.from(piece);
  }
}

async function digestOf(source: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  for await (const piece of source) hash.update(piece);
  return hash.digest('hex');
}

const CLIENTS = LONG ? 16 : 4;
const OBJECT_BYTES = LONG ? 1024 * MIB : 64 * MIB;

test(`${CLIENTS} clients with objects of ${OBJECT_BYTES / MIB} MiB each: no node takes 300 MiB of anonymous memory`, async (context) => {
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'large' } });
  using client = cluster.client(CLIENTS);
  const peaks = await peaksDuring(cluster, async () => {
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, index) => {
        const target = { bucket: 'large', key: `object-${index}` };
        await client.call({ method: 'PUT', ...target, body: bytesOf(index, OBJECT_BYTES), size: OBJECT_BYTES });
        const got = await digestOf(await client.get(target.bucket, target.key));
        assert.equal(got, await digestOf(bytesOf(index, OBJECT_BYTES)));
      }),
    );
  });
  context.diagnostic(`peaks: ${peaks.map((peak) => `${Math.round(peak / MIB)} MiB`).join(', ')}`);
  for (const peak of peaks) assert.ok(peak < LIMIT_BYTES, `a node took ${Math.round(peak / MIB)} MiB`);
});

const KEYS = LONG ? 200_000 : 20_000;

test(`listing a bucket of ${KEYS} keys: no node takes 300 MiB of anonymous memory`, async (context) => {
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'many' } });
  using client = cluster.client(64);
  let next = 0;
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (next < KEYS) {
        const key = `folder-${next % 100}/key-${next++}`;
        await client.call({ method: 'PUT', bucket: 'many', key, body: Buffer.from(key) });
      }
    }),
  );
  let listed = 0;
  const peaks = await peaksDuring(cluster, async () => {
    for await (const object of client.list('many', '')) listed += object.size > 0 ? 1 : 0;
  });
  assert.equal(listed, KEYS);
  context.diagnostic(`peaks: ${peaks.map((peak) => `${Math.round(peak / MIB)} MiB`).join(', ')}`);
  for (const peak of peaks) assert.ok(peak < LIMIT_BYTES, `a node took ${Math.round(peak / MIB)} MiB`);
});
