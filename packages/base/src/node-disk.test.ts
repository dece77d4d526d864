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
