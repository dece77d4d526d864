import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createBrotliDecompress } from 'node:zlib';
import { RunningCluster } from '../support/running-cluster.ts';

/** Data that earlier versions wrote, opened by this one. */
const run = promisify(execFile);
const ARCHIVES = new URL('../upgrade/', import.meta.url);

async function unpack(archive: URL, folder: string): Promise<void> {
  // not through a pipe: tar may leave at the archive's end, before its padding has come
  const path = join(folder, 'archive.tar');
  await pipeline(createReadStream(archive), createBrotliDecompress(), createWriteStream(path));
  await run('tar', ['x', '--no-same-owner', '-f', path, '-C', folder]);
  await rm(path);
}

/** What the archives' bucket `old` holds. */
function patternOf(size: number): Buffer {
  return Buffer.from(Uint8Array.from({ length: size }, (_, i) => (i * 31 + Math.floor(i / 4096)) % 256));
}

const OBJECTS = {
  'small.txt': Buffer.from('written by 0.1.0\n'),
  'inline.bin': patternOf(100_000),
  'blocks.bin': patternOf(9_000_000),
  'parts.bin': Buffer.concat([patternOf(5 * 1024 * 1024), Buffer.from('the last part')]),
  'facts.txt': Buffer.from('facts'),
} as const;

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

for (const name of (await readdir(ARCHIVES)).filter((each) => each.endsWith('.tar.br'))) {
  test(`${name}: what an earlier version wrote is served, every copy of it is sound, and it is written on`, async () => {
    const data = await mkdtemp(join(tmpdir(), 'webdfs-upgrade-'));
    try {
      await unpack(new URL(name, ARCHIVES), data);
      await using cluster = await RunningCluster.start({ data });
      await cluster.whole();
      using client = cluster.client();
      for (const [key, bytes] of Object.entries(OBJECTS)) {
        assert.equal(hashOf(await buffer(await client.get('old', key))), hashOf(bytes), key);
      }
      const { headers } = await client.head('old', 'facts.txt', { 'x-amz-checksum-mode': 'ENABLED' });
      assert.equal(headers['content-type'], 'text/x-old');
      assert.equal(headers['x-amz-meta-who'], '0.1.0');
      assert.ok(headers['x-amz-checksum-sha256'] !== undefined);
      const listed = await client.listPage('old', {});
      assert.deepEqual(listed.objects.map(({ key }) => key).toSorted(), Object.keys(OBJECTS).toSorted());
      const uploads = await client.call({ method: 'GET', bucket: 'old', query: { uploads: '' } });
      assert.match(uploads.body, /unfinished\.bin/);

      await client.call({ method: 'PUT', bucket: 'old', key: 'small.txt', body: Buffer.from('and by a later one') });
      const verified = await cluster.webdfs('verify', '--json');
      assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    } finally {
      await rm(data, { recursive: true, force: true });
    }
  });
}
