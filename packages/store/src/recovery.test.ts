import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, codeOf, crc32c, readWhole, utf8 } from '@webdfs/base';
import { type Store } from './store.ts';
import {
  aBlock,
  aBlockId,
  aKey,
  allRecords,
  aNote,
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

const VOLUMES = `${FOLDER}/volumes`;

/** Appends that nobody waits for: a crash may catch them anywhere. */
function appendAndForget(store: Store, sequences: readonly number[]): void {
  for (const sequence of sequences) store.append(aRecord({ sequence, name: `k${sequence}` })).catch(() => undefined);
}

test('what was answered is there after a kill and after a power cut', async () => {
  for (const crash of ['kill', 'power'] as const) {
    const bed = new TestBed();
    let store = await bed.open();
    for (let sequence = 1; sequence <= 20; sequence++) await store.append(aRecord({ sequence, name: `k${sequence}` }));
    store.commit(GROUP, 20);
    store = await bed.crash(crash);
    store.commit(GROUP, 20);
    assert.equal((await allRecords(store)).length, 20);
    assert.equal(await textOf(store, 'k20'), 'text of 20');
  }
});

test('the commit point comes back from the heads of later entries', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  for (let sequence = 1; sequence <= 5; sequence++) {
    await store.append(aRecord({ sequence, commit: sequence - 1 }));
    store.commit(GROUP, sequence);
  }
  store = await bed.crash('power', { loseIndex: true });
  assert.equal(store.log(GROUP).commit, 4);
  assert.deepEqual(
    (await store.pending(GROUP)).map((entry) => entry.sequence),
    [5],
  );
});

test('an entry that only the page cache held is written again before it counts', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await store.append(aRecord({ sequence: 1, name: 'a' }));
  await store.append(aRecord({ sequence: 2, name: 'b' }));
  const before = await bed.volumes();
  let written = 0;
  bed.disk = bed.disk.crash('kill');
  bed.disk.onOperation = ({ action, path }) => {
    if (action === 'writev' && path.startsWith(VOLUMES) && !before.includes(path.slice(VOLUMES.length + 1)))
      written += 1;
    return undefined;
  };
  bed.locks.breakAll();
  store = await bed.open();
  assert.ok(written >= 2, 'a new volume has its head and the unproven entry');
  assert.deepEqual(
    (await store.pending(GROUP)).map((entry) => entry.sequence),
    [1, 2],
  );
  const proven = await store.pending(GROUP);
  store = await bed.crash('power');
  assert.deepEqual((await store.pending(GROUP)).length, proven.length);
});

test('a crash inside a recovery begins it anew with the same result', async () => {
  for (let stopAt = 1; stopAt < 120; stopAt += 7) {
    const bed = new TestBed({ seed: stopAt });
    let store = await bed.open();
    for (let sequence = 1; sequence <= 6; sequence++) await store.append(aRecord({ sequence, name: `k${sequence}` }));
    bed.disk = bed.disk.crash('power');
    bed.locks.breakAll();
    const first = bed.disk.operations;
    bed.disk.onOperation = ({ number }) => (number === first + stopAt ? 'stop' : undefined);
    const opening = bed.open().then(
      () => 'open',
      () => 'failed',
    );
    await Promise.race([opening, bed.disk.stopped]);
    store = await bed.crash('power');
    assert.deepEqual(
      (await store.pending(GROUP)).map((entry) => entry.sequence),
      [1, 2, 3, 4, 5, 6],
    );
  }
});

test('restart after restart without writes leaves nothing behind', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1, name: 'a' })]);
  store = await bed.crash('kill');
  await store.proveDisk();
  store = await bed.reopen();
  const volumes = await bed.volumes();
  for (let i = 0; i < 4; i++) store = await (i % 2 === 0 ? bed.crash('kill') : bed.reopen());
  assert.deepEqual(await bed.volumes(), volumes);
  assert.equal((await store.pending(GROUP)).length + (await allRecords(store)).length, 1);
});

test('files of an earlier life are never written to, but for their seal', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  for (let sequence = 1; sequence <= 3; sequence++) await store.append(aRecord({ sequence }));
  const old = new Set(await bed.volumes());
  bed.disk = bed.disk.crash('kill');
  bed.locks.breakAll();
  const writes: number[] = [];
  bed.disk.onOperation = ({ action, path, bytes }) => {
    if (action === 'writev' && old.has(path.slice(VOLUMES.length + 1))) writes.push(bytes);
    return undefined;
  };
  store = await bed.open();
  await store.append(aRecord({ sequence: 4 }));
  assert.deepEqual(writes, [104]);
});

test('rot before something that was written later is damage, and what follows it is kept', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  for (let sequence = 1; sequence <= 4; sequence++) await store.append(aRecord({ sequence, name: `k${sequence}` }));
  store.commit(GROUP, 4);
  const row = store.find(aKey('k2'))!;
  bed.disk = bed.disk.crash('kill');
  const [volume] = await bed.volumes();
  await bed.damage(`${VOLUMES}/${volume}`, row.place + 20, Uint8Array.of(0xff));
  store = await bed.crash('kill', { loseIndex: true });
  const damage = await store.damage();
  assert.deepEqual(
    damage.map(({ place, what }) => ({ place, what })),
    [{ place: row.place, what: 'unreadable' }],
  );
  assert.equal(store.facts().suspect, true);
  assert.deepEqual(
    (await store.pending(GROUP)).map((entry) => entry.sequence),
    [1],
  );
});

test('a torn tail is no damage', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await store.append(aRecord({ sequence: 1, name: 'a' }));
  bed.clock.advance(1_000);
  await store.proveDisk();
  const [volume] = await bed.volumes();
  bed.disk = bed.disk.crash('kill');
  const file = await bed.disk.open(`${VOLUMES}/${volume}`, 'write');
  await file.writev([someBytes(777)], await file.size());
  store = await bed.crash('kill');
  assert.deepEqual(await store.damage(), []);
  assert.equal(store.facts().suspect, false);
  assert.deepEqual(
    (await store.pending(GROUP)).map((entry) => entry.sequence),
    [1],
  );
});

test('a record with a rotten body answers CORRUPT, not its older version, until it is installed again', async () => {
  for (const loseIndex of [false, true]) {
    const bed = new TestBed();
    let store = await bed.open();
    await putAll(store, [aRecord({ sequence: 1, name: 'a', text: 'old' })]);
    await putAll(store, [aRecord({ sequence: 2, name: 'a', commit: 1, text: 'new' })]);
    await putAll(store, [aRecord({ sequence: 3, name: 'b', commit: 2 })]);
    const row = store.find(aKey('a'))!;
    await store[Symbol.asyncDispose]();
    const [volume] = await bed.volumes();
    await bed.damage(`${VOLUMES}/${volume}`, row.place + row.entryBytes - 8, Uint8Array.of(0x55));
    if (loseIndex) await bed.disk.removeFolder(`${FOLDER}/index`);
    store = await bed.open();
    const told: string[] = [];
    store.onDamage((damage) => told.push(damage.what));
    await assert.rejects(textOf(store, 'a'), { code: 'CORRUPT' });
    assert.equal((await store.damage()).length, 1);
    assert.equal(told.length, 1);
    assert.equal(store.facts().suspect, false);
    await store.install(aRecord({ sequence: 2, name: 'a', commit: 1, text: 'new' }));
    assert.equal(await textOf(store, 'a'), 'new');
    assert.deepEqual(await store.damage(), []);
    store = await bed.crash('power');
    assert.equal(await textOf(store, 'a'), 'new');
  }
});

test('damage is remembered over a restart', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1, name: 'a' })]);
  const row = store.find(aKey('a'))!;
  await store[Symbol.asyncDispose]();
  const [volume] = await bed.volumes();
  await bed.damage(`${VOLUMES}/${volume}`, row.place + row.entryBytes - 8, Uint8Array.of(0x55));
  store = await bed.open();
  await assert.rejects(textOf(store, 'a'), { code: 'CORRUPT' });
  store = await bed.reopen();
  const [damage] = await store.damage();
  assert.deepEqual([...damage!.key!], [...aKey('a')]);
  assert.equal(damage!.group?.group, GROUP.group);
});

test('a chunk of a block that rots answers CORRUPT, the others go on; a staged copy repairs it', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  const id = aBlockId(1);
  const bytes = someBytes(300_000);
  const stage = async (): Promise<{ size: number; sums: Uint32Array }> => {
    const staging = store.stage(GROUP, id);
    await staging.write(bytes);
    return staging.finish();
  };
  const whole = await stage();
  await putAll(store, [aBlock(id, whole, { sequence: 1 })]);
  await store[Symbol.asyncDispose]();
  const [volume] = await bed.volumes();
  await bed.damage(`${VOLUMES}/${volume}`, 64 + 200_000, Uint8Array.of(1, 2, 3));
  store = await bed.open();
  const row = store.findBlock(GROUP, id)!;
  const target = new Uint8Array(65_536);
  await store.readBlock(row, 0, target);
  assert.equal(Buffer.compare(target, bytes.subarray(0, 65_536)), 0);
  await assert.rejects(store.readBlock(row, 190_000, target), { code: 'CORRUPT' });
  assert.equal((await store.damage()).length, 1);
  await stage();
  await store.install(aBlock(id, whole, { sequence: 1 }));
  const all = new Uint8Array(bytes.length);
  await store.readBlock(store.findBlock(GROUP, id)!, 0, all);
  assert.equal(Buffer.compare(all, bytes), 0);
  assert.deepEqual(await store.damage(), []);
  store = await bed.crash('power', { loseIndex: true });
  await store.readBlock(store.findBlock(GROUP, id)!, 0, all);
  assert.equal(Buffer.compare(all, bytes), 0);
});

test('a failed fdatasync stops the store: nothing is answered, and the next start trusts nothing unproven', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await store.append(aRecord({ sequence: 1, name: 'a' }));
  bed.disk.onOperation = ({ action, path }) => (action === 'datasync' && path.startsWith(VOLUMES) ? 'fail' : undefined);
  await assert.rejects(store.append(aRecord({ sequence: 2, name: 'b' })), { code: 'DISK_FAILED' });
  bed.disk.onOperation = undefined;
  for (const attempt of [
    () => store.append(aRecord({ sequence: 2, name: 'c' })),
    () => store.mark(GROUP, { role: 'member', syncedIn: 1 }),
    () => store.proveDisk(),
  ]) {
    await assert.rejects(attempt(), { code: 'DISK_FAILED' });
  }
  assert.deepEqual(
    bed.failures.map((error) => codeOf(error)),
    ['DISK_FAILED'],
  );
  store = await bed.crash('power');
  const pending = await store.pending(GROUP);
  assert.equal(pending[0]?.sequence, 1);
  await store.append(aRecord({ sequence: pending.length + 1, name: 'after' }));
});

test('a write that finds no space is refused, and the store goes on', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1, name: 'a' })]);
  let once = true;
  bed.disk.onOperation = ({ action, path }) => {
    if (!once || action !== 'writev' || !path.startsWith(VOLUMES)) return undefined;
    once = false;
    return 'full';
  };
  await assert.rejects(store.append(aRecord({ sequence: 2, name: 'b', ballot: 1 })), { code: 'DISK_FULL' });
  assert.equal(store.log(GROUP).last, 1);
  bed.clock.advance(1_000);
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  await putAll(store, [aRecord({ sequence: 2, name: 'c', ballot: 1 })]);
  for (const loseIndex of [undefined, false, true]) {
    if (loseIndex !== undefined) store = await bed.crash('power', { loseIndex });
    store.commit(GROUP, 2);
    assert.equal(store.find(aKey('b')), undefined);
    assert.equal(await textOf(store, 'c'), 'text of 2');
  }
});

test('appends that were never answered are whole or not there at all', async () => {
  for (let seed = 1; seed <= 12; seed++) {
    const bed = new TestBed({ seed });
    let store = await bed.open();
    await store.append(aRecord({ sequence: 1, name: 'k1' }));
    const first = bed.disk.operations;
    bed.disk.onOperation = ({ number }) => (number === first + 1 + (seed % 4) ? 'stop' : undefined);
    appendAndForget(store, [2, 3, 4, 5]);
    for (let i = 0; i < 30; i++) await new Promise((resolve) => setImmediate(resolve));
    store = await bed.crash('power');
    const pending = await store.pending(GROUP);
    assert.deepEqual(
      pending.map((entry) => entry.sequence),
      Array.from({ length: pending.length }, (_, i) => i + 1),
    );
    assert.ok(pending.length >= 1);
    for (const entry of pending) assert.equal(new TextDecoder().decode(entry.body), `text of ${entry.sequence}`);
  }
});

test('an index that is lost, half-made, unreadable or of another store is made anew', async () => {
  const bed = new TestBed({ maxVolumeBytes: 5_000 });
  let store = await bed.open();
  for (let sequence = 1; sequence <= 40; sequence++) {
    const name = `k${sequence % 9}`;
    const entry =
      sequence % 4 === 0
        ? aTombstone({ sequence, name, commit: sequence - 1 })
        : aRecord({ sequence, name, commit: sequence - 1 });
    await putAll(store, [entry]);
  }
  await store.append(aRecord({ sequence: 41, commit: 40 }));
  store = await bed.reopen();
  const before = await pictureOf(store);
  const spoil: (() => Promise<unknown>)[] = [
    () => bed.disk.removeFolder(`${FOLDER}/index`),
    async () => {
      for (const name of await bed.disk.list(`${FOLDER}/index`)) {
        await bed.damage(`${FOLDER}/index/${name}`, 10, new Uint8Array(40).fill(9));
      }
    },
    async () => {
      await bed.disk.removeFolder(`${FOLDER}/index`);
      await bed.disk.makeFolder(`${FOLDER}/index.new`);
    },
  ];
  for (const how of spoil) {
    await store[Symbol.asyncDispose]();
    await how();
    store = await bed.open();
    assert.deepEqual(await pictureOf(store), before);
    assert.deepEqual(await bed.disk.list(`${FOLDER}/index.new`), []);
  }
});

test('a volume whose head is unreadable is kept and reported, never removed', async () => {
  for (const loseIndex of [false, true]) {
    const bed = new TestBed();
    let store = await bed.open();
    await putAll(store, [aRecord({ sequence: 1, name: 'a' })]);
    await store[Symbol.asyncDispose]();
    const [volume] = await bed.volumes();
    await bed.damage(`${VOLUMES}/${volume}`, 20, Uint8Array.of(1, 2, 3, 4));
    if (loseIndex) await bed.disk.removeFolder(`${FOLDER}/index`);
    store = await bed.open();
    assert.deepEqual(await bed.volumes(), [volume]);
    assert.equal((await store.damage())[0]?.what, 'the head of the volume is unreadable');
    assert.equal(store.facts().suspect, true);
    if (!loseIndex) await assert.rejects(textOf(store, 'a'), { code: 'CORRUPT' });
  }
});

test('a volume that lost its file is reported if rows point to it', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1, name: 'a' })]);
  await store[Symbol.asyncDispose]();
  const [volume] = await bed.volumes();
  await bed.disk.unlink(`${VOLUMES}/${volume}`);
  store = await bed.open();
  assert.equal((await store.damage())[0]?.what, 'the file is missing');
  await assert.rejects(textOf(store, 'a'), { code: 'CORRUPT' });
  await store.append(aRecord({ sequence: 2, name: 'b' }));
  assert.notDeepEqual(await bed.volumes(), [volume]);
});

test('pending entries that nobody commits do not keep the scan long', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await store.append(aRecord({ sequence: 1, name: 'stuck' }));
  const other = { ...GROUP, group: 9 as typeof GROUP.group };
  for (let sequence = 1; sequence <= 30; sequence++) {
    await putAll(store, [aRecord({ sequence, group: other, commit: sequence - 1 })]);
    bed.clock.advance(100);
  }
  store = await bed.crash('kill');
  assert.ok(
    store.facts().counters['scannedAtStart']! < 4_000,
    `${store.facts().counters['scannedAtStart']} bytes scanned`,
  );
  assert.deepEqual(
    (await store.pending(GROUP)).map((entry) => entry.sequence),
    [1],
  );
  store.commit(GROUP, 1);
  assert.equal(await textOf(store, 'stuck'), 'text of 1');
});

test('what compaction left behind is no gap to a rebuild, though no head told of the commit', async () => {
  const bed = new TestBed({ maxVolumeBytes: 3_000 });
  let store = await bed.open();
  for (let sequence = 1; sequence <= 40; sequence++) {
    await putAll(store, [aRecord({ sequence, name: `k${sequence % 3}`, text: 'x'.repeat(300) })]);
  }
  const volumes = (await bed.volumes()).length;
  while (await store.compact());
  assert.ok((await bed.volumes()).length < volumes);
  const before = (await allRecords(store)).map((row) => row.sequence);
  store = await bed.crash('power', { loseIndex: true });
  store.commit(GROUP, 40);
  assert.deepEqual(
    (await allRecords(store)).map((row) => row.sequence),
    before,
  );
  assert.equal(store.log(GROUP).commit, 40);
});

test('a volume of a newer format stops the start by name, and nothing is touched', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1 })]);
  await store[Symbol.asyncDispose]();
  const [volume] = await bed.volumes();
  const file = await bed.disk.open(`${VOLUMES}/${volume}`, 'write');
  const head = new Uint8Array(64);
  await file.read(head, 0);
  head[8] = 2;
  new DataView(head.buffer).setUint32(60, crc32c(head.subarray(0, 60)), true);
  await file.writev([head], 0);
  await file.close();
  await assert.rejects(bed.open(), { code: 'NEWER_FORMAT' });
  await assert.rejects(bed.open({ rebuild: true }), { code: 'NEWER_FORMAT' });
  assert.deepEqual(await bed.volumes(), [volume]);
});

test('what a mark behind a torn entry says stays said', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  await store.append(aNote({ sequence: 1 }));
  await store.cut(GROUP, 0, 2);
  const torn = aRecord({ sequence: 1, group: { ...GROUP, group: asGroupId(8) }, text: 'torn'.repeat(20) });
  await Promise.all([store.append(torn), store.append(aNote({ sequence: 1 }))]);
  const path = `${VOLUMES}/${(await bed.volumes())[0]}`;
  const bytes = await readWhole(bed.disk, path);
  await bed.damage(path, Buffer.from(bytes).indexOf('torntorn'), utf8('worn'));
  const seen = [];
  for (const crash of ['kill', 'power', 'power'] as const)
    seen.push((await (await bed.crash(crash)).pending(GROUP)).length);
  assert.deepEqual(seen, [1, 1, 1]);
});
