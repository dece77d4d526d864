import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type DiskUnderTest, testDisk } from './disk-conformance.ts';
import { codeOf, WebdfsError } from './errors.ts';
import { NodeDisk } from './node-disk.ts';

async function anEmptyFolder(): Promise<DiskUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-disk-'));
  return {
    disk: new NodeDisk(),
    folder,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

testDisk('node', anEmptyFolder);

test("an error of the system becomes ours, with the system's as its cause", async () => {
  await using under = await anEmptyFolder();
  await assert.rejects(under.disk.open(under.folder, 'write'), (error) => {
    assert.equal(codeOf(error), 'DISK_FAILED');
    assert.equal(((error as WebdfsError).cause as NodeJS.ErrnoException).code, 'EISDIR');
    return true;
  });
});

test(
  'a folder that the system will not make is an error, however deep',
  { skip: process.platform !== 'linux' },
  async () => {
    const disk = new NodeDisk();
    await assert.rejects(disk.makeFolder('/proc/none'), { code: 'NOT_FOUND' });
    await assert.rejects(disk.makeFolder('/proc/none/inner/most'), { code: 'NOT_FOUND' });
  },
);

test('a file in the place of a folder is an error', async () => {
  await using under = await anEmptyFolder();
  const path = join(under.folder, 'file');
  await (await under.disk.create(path)).close();
  await assert.rejects(under.disk.makeFolder(path), { code: 'ALREADY_EXISTS' });
  await assert.rejects(under.disk.makeFolder(join(path, 'inner')), { code: 'DISK_FAILED' });
});

test('a direct write that the file system refuses is UNSUPPORTED, and writes nothing', async (t) => {
  await using under = await anEmptyFolder();
  const path = join(under.folder, 'a');
  const file = await under.disk.create(path);
  const direct = await under.disk.open(path, 'direct').catch((error: unknown) => codeOf(error));
  if (typeof direct !== 'object') {
    await file.close();
    return t.skip(`no direct writes here: ${direct}`);
  }
  const outcome = await direct.writev([under.disk.pages(4_096).subarray(1, 101)], 3).catch((error: unknown) => error);
  // some file systems take what is not made of pages, through the cache
  if (typeof outcome !== 'number') {
    assert.equal(codeOf(outcome), 'UNSUPPORTED');
    assert.equal(await file.size(), 0);
  }
  await direct.close();
  await file.close();
});
