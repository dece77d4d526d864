import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf } from '@webdfs/base';
import { recordRowKey } from './index-rows.ts';
import { SortedIndexHouse } from './sorted-index.ts';
import { aKey, aRecord, FOLDER, GROUP, putAll, someBytes, TestBed } from './testing.ts';

const SMALL = { maxVolumeBytes: 2_000 };
const FAST = { bytesPerSecond: Infinity };

function some(count: number, sequence: number): ReturnType<typeof aRecord>[] {
  return Array.from({ length: count }, (_, i) =>
    aRecord({ sequence: sequence + i, name: `a${i}`, body: someBytes(150, sequence + i) }),
  );
}

async function aStore(): Promise<TestBed> {
  const bed = new TestBed(SMALL);
  const store = await bed.open();
  const entries = [...some(20, 1), ...some(10, 21)];
  for (let at = 0; at < entries.length; at += 5) await putAll(store, entries.slice(at, at + 5));
  return bed;
}

/** A byte of the entry that a key names. */
async function spoil(bed: TestBed, name: string, at: 'head' | 'body'): Promise<void> {
  const { volume, place, entryBytes } = bed.store.find(aKey(name))!;
  const path = `${FOLDER}/volumes/${String(volume).padStart(8, '0')}.vol`;
  await bed.damage(path, at === 'head' ? place + 50 : place + entryBytes - 16, Uint8Array.of(0xff));
}

test('a scrub of a sound store looks at every entry and finds nothing', async () => {
  const bed = await aStore();
  assert.deepEqual(await bed.store.scrub(FAST), { entries: 30, damaged: 0 });
  assert.deepEqual(await bed.store.damage(), []);
});

test('a scrub finds a rotten body and a rotten head before anybody asks for them', async () => {
  const bed = await aStore();
  await spoil(bed, 'a3', 'body');
  await spoil(bed, 'a15', 'head');
  const told: string[] = [];
  bed.store.onDamage(({ what }) => void told.push(what));
  const { damaged } = await bed.store.scrub(FAST);
  assert.ok(damaged >= 2);
  const found = await bed.store.damage();
  assert.ok(found.some(({ key }) => key !== undefined && Buffer.compare(key, aKey('a3')) === 0));
  assert.ok(found.some(({ what }) => what === 'unreadable'));
  assert.ok(told.length >= 2);
  assert.equal(bed.store.facts().suspect, true);
});

test('garbage may rot: nobody will ask for it', async () => {
  const bed = new TestBed(SMALL);
  await putAll(await bed.open(), some(20, 1));
  await spoil(bed, 'a3', 'body');
  await putAll(bed.store, some(10, 21));
  assert.deepEqual(await bed.store.scrub(FAST), { entries: 30, damaged: 0 });
});

test('a scrub finds rows that the index has lost', async () => {
  const bed = await aStore();
  await bed.store[Symbol.asyncDispose]();
  {
    await using index = await new SortedIndexHouse({ disk: bed.disk, random: bed.random }).open(`${FOLDER}/index`);
    await index.batch([{ key: recordRowKey(aKey('a15')) }], { sync: true });
  }
  const store = await bed.open();
  assert.equal((await store.scrub(FAST)).damaged, 1);
  assert.match((await store.damage())[0]!.what, /rebuild the index/);
});

test('a scrub that is called off goes on after the last whole volume the next time', async () => {
  const bed = await aStore();
  const volumes = (await bed.volumes()).length;
  assert.ok(volumes > 2);
  const abort = new AbortController();
  const seen: string[] = [];
  bed.disk.onOperation = ({ action, path }) => {
    if (action === 'read' && path.endsWith('.vol') && seen.at(-1) !== path) seen.push(path);
    if (seen.length === 2) abort.abort();
    return undefined;
  };
  await assert.rejects(bed.store.scrub({ ...FAST, signal: abort.signal }), (error) => codeOf(error) === 'CANCELLED');
  const first = seen.splice(0);
  await bed.store.scrub(FAST);
  assert.equal(seen[0], first[1], 'it begins with the volume that it did not finish');
  assert.equal(new Set(seen).size, volumes);
});

test('a scrub does not read faster than it may', async () => {
  const bed = await aStore();
  const state = { done: false };
  const scrubbed = bed.store.scrub({ bytesPerSecond: 1000 }).then(() => (state.done = true));
  let seconds = 0;
  for (; !state.done; seconds += 0.1) {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    bed.clock.advance(100);
  }
  await scrubbed;
  const { volumeBytes } = bed.store.facts();
  assert.ok(seconds > (0.8 * volumeBytes) / 1000 - 1, `${volumeBytes} bytes in ${seconds} s`);
  assert.equal(bed.store.log(GROUP).objects, 20);
});

test('damage is settled where nothing needs what lies there, and nowhere else', async () => {
  const bed = await aStore();
  const { volume, place } = bed.store.find(aKey('a15'))!;
  await putAll(bed.store, [aRecord({ sequence: 31, name: 'a15', body: someBytes(150, 31) })]);
  await bed.damage(`${FOLDER}/volumes/${String(volume).padStart(8, '0')}.vol`, place + 50, Uint8Array.of(0xff));
  await spoil(bed, 'a3', 'head');
  await spoil(bed, 'a5', 'body');
  await bed.store.scrub(FAST);
  const before = bed.store.facts();
  assert.ok(before.suspect);
  assert.equal(await bed.store.settleDamage(), 1, 'a head that was garbage');
  assert.equal(bed.store.facts().damaged, before.damaged - 1);
  assert.equal(bed.store.facts().suspect, true, 'a row points to the other head');
  const again = [
    aRecord({ sequence: 32, name: 'a3', body: someBytes(150, 32) }),
    aRecord({ sequence: 33, name: 'a5', body: someBytes(150, 33) }),
  ];
  await putAll(bed.store, again);
  await bed.store.settleDamage();
  assert.equal(bed.store.facts().suspect, false);
  const { damaged } = bed.store.facts();
  await bed.store[Symbol.asyncDispose]();
  const store = await bed.open();
  assert.deepEqual([store.facts().suspect, store.facts().damaged], [false, damaged], 'a restart does not forget it');
});
