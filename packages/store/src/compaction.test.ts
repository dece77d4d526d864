import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, equalBytes, toHex } from '@webdfs/base';
import { KIND } from './entry.ts';
import { recordRowKey, unpackPieceKey } from './index-rows.ts';
import { scanVolume } from './scanner.ts';
import { SortedIndexHouse } from './sorted-index.ts';
import type { Store } from './store.ts';
import {
  aBlock,
  aBlockGone,
  aBlockId,
  aKey,
  aRecord,
  aTombstone,
  FOLDER,
  GROUP,
  pictureOf,
  putAll,
  someBytes,
  TestBed,
  textOf,
} from './testing.ts';
import { unpackVolumeHead, VOLUME_HEAD_BYTES } from './volume-format.ts';

const SMALL = { maxVolumeBytes: 2_000 };

async function compactAll(store: Store): Promise<number> {
  let rewritten = 0;
  while (await store.compact()) {
    rewritten += 1;
    assert.ok(rewritten < 100, 'compaction ends');
  }
  return rewritten;
}

/** What can be asked of the group; bytes of entries are compaction's own business, which writes marks. */
async function contentOf(store: Store): Promise<unknown> {
  return { ...((await pictureOf(store)) as object), liveBytes: 0 };
}

/** Kinds and keys of all entries in all volumes, in order. */
async function entriesOf(bed: TestBed): Promise<{ volume: number; kind: number; key: Uint8Array }[]> {
  const found: { volume: number; kind: number; key: Uint8Array }[] = [];
  for (const name of await bed.volumes()) {
    const file = await bed.disk.open(`${FOLDER}/volumes/${name}`, 'read');
    const bytes = new Uint8Array(VOLUME_HEAD_BYTES);
    await file.read(bytes, 0);
    const volume = Number(name.split('.')[0]);
    const head = unpackVolumeHead(bytes, volume, bed.store.identity.storeId);
    assert.ok(head !== undefined);
    const range = { from: VOLUME_HEAD_BYTES, until: await file.size(), sealed: false };
    await scanVolume({ file, volume, salt: head.salt }, range, (step) => {
      if (step.type === 'entry') found.push({ volume, kind: step.head.kind, key: step.key.slice() });
    });
    await file.close();
  }
  return found;
}

/** `n` records of names with a prefix, from a sequence on: they fill volumes. */
function some(count: number, prefix: string, sequence: number): ReturnType<typeof aRecord>[] {
  return Array.from({ length: count }, (_, i) =>
    aRecord({ sequence: sequence + i, name: `${prefix}${i}`, text: 'x'.repeat(200) }),
  );
}

test('compaction frees what is dead and changes nothing that can be asked, nor what a rebuild finds', async () => {
  const bed = new TestBed(SMALL);
  const store = await bed.open();
  await putAll(store, some(30, 'a', 1));
  await putAll(store, some(30, 'a', 31));
  await putAll(
    store,
    [61, 62, 63].map((sequence) => aTombstone({ sequence, name: `a${sequence - 60}` })),
  );
  const before = await contentOf(store);
  const { volumeBytes } = store.facts();
  assert.ok((await compactAll(store)) > 0);
  assert.deepEqual(await contentOf(store), before);
  assert.ok(store.facts().volumeBytes < 0.7 * volumeBytes);
  assert.deepEqual(await contentOf(await bed.reopen()), before);
  const rebuilt = await bed.reopen({ rebuild: true });
  rebuilt.commit(GROUP, 63);
  assert.equal(await textOf(rebuilt, 'a1'), undefined);
  assert.equal((await textOf(rebuilt, 'a4'))?.length, 200);
  assert.equal(rebuilt.log(GROUP).objects, 27);
});

test('a tombstone stays while an older file may hold what it took away, and goes with that file', async () => {
  const bed = new TestBed(SMALL);
  const store = await bed.open();
  const tombstones = async (): Promise<number> =>
    (await entriesOf(bed)).filter(({ kind, key }) => kind === KIND.TOMBSTONE && equalBytes(key, aKey('gone'))).length;
  // An old file that stays: alive but for one record, which is then removed from a file of garbage.
  await putAll(store, [aRecord({ sequence: 1, name: 'gone' }), ...some(6, 'old', 2)]);
  await putAll(store, [...some(6, 'new', 8), aTombstone({ sequence: 14, name: 'gone' }), ...some(6, 'new', 15)]);
  await putAll(store, some(8, 'end', 21));
  await compactAll(store);
  assert.equal(await tombstones(), 1);
  assert.equal(await textOf(await bed.reopen({ rebuild: true }), 'gone'), undefined);
  // Now the old file becomes garbage as well.
  await putAll(bed.store, some(6, 'old', 29));
  await putAll(bed.store, some(20, 'end', 35));
  await compactAll(bed.store);
  await bed.reopen();
  await compactAll(bed.store);
  assert.equal(
    (await entriesOf(bed)).filter(({ kind, key }) => kind === KIND.RECORD && equalBytes(key, aKey('gone'))).length,
    0,
  );
  assert.equal(await textOf(await bed.reopen({ rebuild: true }), 'gone'), undefined);
});

test('a dead record that closed a key leaves a tombstone of that key in its place', async () => {
  const bed = new TestBed(SMALL);
  const store = await bed.open();
  const hashed = (entry: ReturnType<typeof aRecord>): typeof entry => ({ ...entry, hashHigh: 5, hashLow: 6 });
  await putAll(store, [hashed(aRecord({ sequence: 1, name: 'open' })), ...some(6, 'old', 2)]);
  await putAll(store, [hashed(aRecord({ sequence: 8, name: 'object', closes: 'open' })), ...some(6, 'new', 9)]);
  await putAll(store, [hashed(aRecord({ sequence: 15, name: 'object' })), ...some(6, 'new', 16)]);
  await putAll(store, some(8, 'end', 22));
  await compactAll(store);
  const left = await entriesOf(bed);
  assert.ok(
    left.some(({ kind, key }) => kind === KIND.RECORD && equalBytes(key, aKey('open'))),
    'the old file is here',
  );
  assert.ok(left.some(({ kind, key }) => kind === KIND.TOMBSTONE && equalBytes(key, aKey('open'))));
  const rebuilt = await bed.reopen({ rebuild: true });
  rebuilt.commit(GROUP, 29);
  assert.equal(await textOf(rebuilt, 'open'), undefined);
  assert.equal(await textOf(rebuilt, 'object'), 'text of 15');
});

test('pieces of blocks that came in side by side lie block by block after compaction', async () => {
  const bed = new TestBed({ maxVolumeBytes: 1_200_000, stagingBytes: 512 * 1024 });
  const store = await bed.open();
  const blocks = [1, 2, 3].map((number) => ({ id: aBlockId(number), bytes: someBytes(200_000, number) }));
  const stagings = blocks.map(({ id }) => store.stage(GROUP, id));
  for (let at = 0; at < 200_000; at += 40_000) {
    for (const [i, { bytes }] of blocks.entries()) await stagings[i]!.write(bytes.subarray(at, at + 40_000));
  }
  for (const [i, { id }] of blocks.entries()) {
    const whole = await stagings[i]!.finish();
    await store.append(aBlock(id, whole, { sequence: i + 1 }));
  }
  const filler = aBlockId(9);
  const staging = store.stage(GROUP, filler);
  await staging.write(someBytes(900_000));
  await store.append(aBlock(filler, await staging.finish(), { sequence: 4 }));
  await store.append(aBlockGone(filler, { sequence: 5 }));
  store.commit(GROUP, 5);
  const orderOf = async (): Promise<string[]> =>
    (await entriesOf(bed))
      .filter(({ kind }) => kind === KIND.PIECE)
      .map(({ key }) => unpackPieceKey(key)!)
      .filter(({ id }) => !equalBytes(id, filler))
      .map(({ id, offset }) => `${toHex(id).at(-1)}:${offset}`);
  const before = await orderOf();
  assert.notDeepEqual(before, before.toSorted(), 'they came in side by side');
  // The volume is sealed by the next block.
  const next = store.stage(GROUP, aBlockId(10));
  await next.write(someBytes(10));
  await store.append(aBlock(aBlockId(10), await next.finish(), { sequence: 6 }));
  store.commit(GROUP, 6);
  assert.equal(await store.compact(), true);
  const places = (await orderOf()).map((piece) => piece.split(':')[0]!);
  const changes = places.filter((block, i) => block !== places[i - 1]).length;
  assert.equal(changes, new Set(places).size, places.join(' '));
  for (const { id, bytes } of blocks) {
    const target = new Uint8Array(bytes.length);
    await store.readBlock(store.findBlock(GROUP, id)!, 0, target);
    assert.ok(equalBytes(target, bytes));
  }
});

test('a volume with damage in what is alive stays as it is, is reported, and everything else is read', async () => {
  const bed = new TestBed(SMALL);
  const store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1, name: 'alive' }), ...some(8, 'a', 2), ...some(8, 'a', 10)]);
  await putAll(store, some(3, 'b', 18));
  const { volume, place, entryBytes } = store.find(aKey('alive'))!;
  const [path] = (await bed.volumes()).filter((name) => Number(name.split('.')[0]) === volume);
  await bed.damage(`${FOLDER}/volumes/${path}`, place + entryBytes - 8, Uint8Array.of(1));
  await assert.rejects(store.compact(), (error) => codeOf(error) === 'CORRUPT');
  assert.equal((await store.damage()).length, 1);
  await compactAll(store);
  assert.ok((await bed.volumes()).includes(path!));
  await assert.rejects(textOf(store, 'alive'), (error) => codeOf(error) === 'CORRUPT');
  assert.equal((await textOf(store, 'a1'))?.length, 200);
  // Once it was given anew, nothing holds the volume back.
  await store.install(aRecord({ sequence: 1, name: 'alive' }));
  await compactAll(store);
  assert.deepEqual(await store.damage(), []);
  assert.ok(!(await bed.volumes()).includes(path!));
  assert.equal(await textOf(store, 'alive'), 'text of 1');
});

test('a source whose rows are not all accounted for stays, and says so', async () => {
  const bed = new TestBed(SMALL);
  await putAll(await bed.open(), [...some(8, 'a', 1), aRecord({ sequence: 9, name: 'kept' })]);
  await putAll(bed.store, some(8, 'a', 10));
  await bed.store[Symbol.asyncDispose]();
  const files = await bed.volumes();
  {
    // A row is gone from the index, though its bytes are counted as alive: as if LevelDB had lost it.
    await using index = await new SortedIndexHouse({ disk: bed.disk, random: bed.random }).open(`${FOLDER}/index`);
    await index.batch([{ key: recordRowKey(aKey('kept')) }], { sync: true });
  }
  const store = await bed.open();
  const codes: unknown[] = [];
  for (let i = 0; i < 8; i++) await store.compact().catch((error: unknown) => codes.push(codeOf(error)));
  assert.deepEqual(codes, ['CORRUPT']);
  const [damage] = await store.damage();
  assert.match(damage!.what, /rows point to/);
  assert.ok(files.some((name) => Number(name.split('.')[0]) === damage!.volume));
  assert.ok((await bed.volumes()).some((name) => Number(name.split('.')[0]) === damage!.volume));
});

test('a file stays while a crash would bring back entries of it, void by a mark that was refused', async () => {
  const bed = new TestBed(SMALL);
  const store = await bed.open();
  for (const entry of some(12, 'a', 1)) await store.append(entry);
  let full = 1;
  bed.disk.onOperation = ({ action }) => (action === 'writev' && full-- > 0 ? 'full' : undefined);
  await assert.rejects(store.cut(GROUP, 0, 2), { code: 'DISK_FULL' });
  assert.equal(await compactAll(store), 0);
  const again = await bed.crash('kill');
  assert.equal((await again.pending(GROUP)).length, 12);
  await again.cut(GROUP, 0, 2);
  assert.notEqual(await compactAll(again), 0);
});

test('a disk too full for the copies leaves everything as it was', async () => {
  const bed = new TestBed({ ...SMALL, reserveBytes: 0 });
  const store = await bed.open();
  await putAll(store, [...some(8, 'a', 1), ...some(4, 'a', 9)]);
  await putAll(store, some(8, 'b', 13));
  const before = await contentOf(store);
  const files = await bed.volumes();
  bed.disk.onOperation = ({ action, path, bytes }) =>
    action === 'writev' && path.endsWith('.vol') && bytes > 64 ? 'full' : undefined;
  await assert.rejects(store.compact(), (error) => codeOf(error) === 'DISK_FULL');
  bed.disk.onOperation = undefined;
  assert.deepEqual(await bed.volumes(), files);
  assert.deepEqual(await contentOf(store), before);
  assert.ok((await compactAll(store)) > 0);
  assert.deepEqual(await contentOf(store), before);
});
