import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { codeOf, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { mustRun, RunningCluster, runProgram } from '../support/running-cluster.ts';

const SMALL_MIB = 256;
const OBJECT_BYTES = 1_000_000;

/** Mounting a small file system needs root; a fresh container or CI runner is that. */
const root = process.getuid?.() === 0;

test(
  'one full disk: nothing acknowledged is lost, deletes work, and with space again the node is whole',
  { skip: !root && 'needs root to mount a small disk' },
  async (context) => {
    const random = new SeededRandom(seedOf(context));
    const data = await mkdtemp(join(tmpdir(), 'webdfs-full-'));
    const small = join(data, 'node-2');
    await mkdir(small);
    await mustRun('mount', ['-t', 'tmpfs', '-o', `size=${SMALL_MIB}m`, 'tmpfs', small]);
    try {
      await using cluster = await RunningCluster.start({ data, environment: { WEBDFS_BUCKETS: 'bucket' } });
      using client = cluster.client();
      const kept = new Map<string, Buffer>();
      let refused = 0;
      // half as much again as the small disk holds
      for (let index = 0; index < (SMALL_MIB * 1.5 * 1024 * 1024) / OBJECT_BYTES; index++) {
        const body = Buffer.from(random.bytes(1000)).subarray(0, 1000);
        const whole = Buffer.alloc(OBJECT_BYTES, body);
        try {
          await client.call({ method: 'PUT', bucket: 'bucket', key: `key-${index}`, body: whole });
          kept.set(`key-${index}`, whole);
        } catch (error) {
          const code = codeOf(error);
          assert.ok(code === 'DISK_FULL' || code === 'UNAVAILABLE', String(error));
          refused++;
        }
      }
      context.diagnostic(`${kept.size} writes acknowledged, ${refused} refused`);
      assert.ok(kept.size > (SMALL_MIB * 1024 * 1024 * 0.5) / OBJECT_BYTES, `only ${kept.size} writes were taken`);
      const status = await cluster.status();
      assert.ok(
        status.groups.whole < status.groups.total || refused > 0,
        `the small disk was never full: ${JSON.stringify(status)}`,
      );
      for (const [key, body] of kept) assert.ok((await buffer(await client.get('bucket', key))).equals(body), key);
      const removed = [...kept.keys()].slice(0, 20);
      for (const key of removed) {
        await client.call({ method: 'DELETE', bucket: 'bucket', key });
        kept.delete(key);
      }
      await mustRun('mount', ['-o', `remount,size=${SMALL_MIB * 8}m`, small]);
      await cluster.whole(180_000);
      for (const [key, body] of kept) assert.ok((await buffer(await client.get('bucket', key))).equals(body), key);
      for (const key of removed) {
        await assert.rejects(client.get('bucket', key), { code: 'NOT_FOUND' });
      }
      const where = await cluster.webdfs('where', `s3://bucket/${[...kept.keys()].at(-1)}`, '--json');
      assert.equal(where.code, 0, where.stdout);
    } finally {
      await runProgram('umount', [small]);
      await rm(data, { recursive: true, force: true });
    }
  },
);
