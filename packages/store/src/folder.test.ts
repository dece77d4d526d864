import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { SeededRandom, utf8 } from '@webdfs/base';
import { SimulatedDisk } from '@webdfs/base/testing';
import { sqliteLock } from './folder-lock.ts';
import { StoreFolder } from './folder.ts';
import { FOLDER, TestBed } from './testing.ts';

const OWNER = { node: 3, cluster: 'c' };

test('a folder knows whose it is', async () => {
  const disk = new SimulatedDisk({ seed: 1 });
  const folder = new StoreFolder(disk, '/s');
  const made = await folder.identify(OWNER, new SeededRandom(1));
  assert.match(made.storeId, /^[0-9a-f]{32}$/);
  assert.deepEqual(await folder.identify(OWNER, new SeededRandom(2)), made);
  await assert.rejects(folder.identify({ node: 4, cluster: 'c' }, new SeededRandom(1)), { code: 'BAD_CONFIG' });
  await assert.rejects(folder.identify({ node: 3, cluster: 'd' }, new SeededRandom(1)), { code: 'BAD_CONFIG' });
});

test('volumes without an identity are nobody’s, and stay untouched', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  await store.proveDisk();
  await store[Symbol.asyncDispose]();
  await bed.disk.unlink(`${FOLDER}/identity`);
  await assert.rejects(bed.open(), { code: 'CORRUPT' });
  assert.equal((await bed.volumes()).length, 1);
});

test('an identity of a newer format is refused, an unreadable one is damage', async () => {
  for (const [text, code] of [
    ['{"format":2}', 'NEWER_FORMAT'],
    ['{"format":1}', 'CORRUPT'],
    ['not json', 'CORRUPT'],
  ] as const) {
    const disk = new SimulatedDisk({ seed: 1 });
    await disk.makeFolder('/s');
    const file = await disk.create('/s/identity');
    await file.writev([utf8(text)], 0);
    await assert.rejects(new StoreFolder(disk, '/s').identify(OWNER, new SeededRandom(1)), { code });
  }
});

test('a second store on the same folder is refused until the first is closed', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  await assert.rejects(bed.open(), { code: 'LOCKED' });
  await store[Symbol.asyncDispose]();
  await (await bed.open())[Symbol.asyncDispose]();
});

test('the kernel lock is held once in a process', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'webdfs-lock-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'lock');
  const lock = await sqliteLock.hold(path);
  await assert.rejects(sqliteLock.hold(path), { code: 'LOCKED' });
  await lock[Symbol.asyncDispose]();
  await (await sqliteLock.hold(path))[Symbol.asyncDispose]();
});

test('a failed start lets go of the lock', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  await store[Symbol.asyncDispose]();
  bed.disk.onOperation = ({ action }) => (action === 'space' ? 'fail' : undefined);
  await assert.rejects(bed.open(), { code: 'DISK_FAILED' });
  bed.disk.onOperation = undefined;
  await (await bed.open())[Symbol.asyncDispose]();
});

test('small files saved at once replace each other whole, the last one stays', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  const texts = ['first', 'second, which is longer', 'third'];
  await Promise.all(texts.map((text) => store.saveFile('map', utf8(text))));
  assert.equal(new TextDecoder().decode(await store.loadFile('map')), 'third');
});
