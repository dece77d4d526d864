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
