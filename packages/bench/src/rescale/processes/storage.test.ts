import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { asNodeId, ManualClock, systemClock } from '@webdfs/base';
import { contentOf, isIntact } from './content.ts';
import { DriveStorage } from './drive-storage.ts';
import { MemoryStorage } from './memory-storage.ts';
import type { NodeStorage } from './node-storage.ts';

const NODE = asNodeId(3);
const FAST = { read: Infinity, write: Infinity };
const folder = await mkdtemp(join(tmpdir(), 'webdfs-rescale-'));
after(() => rm(folder, { recursive: true }));

function written(storage: NodeStorage, file: number, payload: Uint8Array): Promise<void> {
  return new Promise((resolve) => storage.write(NODE, file, payload.length, payload, resolve));
}

function readFrom(storage: NodeStorage, file: number, bytes: number): Promise<Uint8Array> {
  return new Promise((resolve) => storage.read(NODE, file, bytes, resolve));
}

const STORAGES = {
  memory: () => new MemoryStorage(FAST, systemClock),
  'a drive past its cache': () => new DriveStorage({ folder, node: NODE, cached: false }, FAST, systemClock),
  'a drive through its cache': () => new DriveStorage({ folder, node: NODE, cached: true }, FAST, systemClock),
} as const;

for (const [name, open] of Object.entries(STORAGES)) {
  test(`${name} gives back what was generated and what was written, whatever the sizes`, async () => {
    const storage = open();
    storage.generate(NODE, 1, 5000);
    await Promise.all([written(storage, 2, contentOf(2, 70_000)), written(storage, 9, contentOf(9, 4096))]);
    assert.deepEqual(await readFrom(storage, 1, 5000), contentOf(1, 5000));
    assert.deepEqual(await readFrom(storage, 2, 70_000), contentOf(2, 70_000));
    const found = [...storage.contents()];
    assert.deepEqual(found.map(([file]) => file).toSorted(), [1, 2, 9]);
    assert.ok(found.every(([file, bytes]) => isIntact(file, bytes)));
    storage.close();
  });
}

test('a drive leaves nothing behind', async () => {
  const storage = STORAGES['a drive past its cache']();
  storage.generate(NODE, 1, 100);
  storage.close();
  assert.deepEqual(await readdir(folder), []);
});

test('reads and writes share the time of one device', () => {
  const clock = new ManualClock();
  const storage = new MemoryStorage({ read: 1000, write: 500 }, clock);
  const ends: number[] = [];
  storage.generate(NODE, 1, 100);
  storage.read(NODE, 1, 100, () => ends.push(clock.monotonic()));
  storage.write(NODE, 2, 100, contentOf(2, 100), () => ends.push(clock.monotonic()));
  clock.advance(1000);
  assert.deepEqual(ends, [100, 300]);
});

test('no two files have the same bytes, and a flipped bit is seen', () => {
  assert.notDeepEqual(contentOf(1, 64), contentOf(257, 64));
  const content = contentOf(5, 64);
  assert.ok(isIntact(5, content));
  content[40]! ^= 1;
  assert.equal(isIntact(5, content), false);
});
