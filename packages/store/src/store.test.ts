import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, EMPTY, utf8 } from '@webdfs/base';
import { FLAG, KIND } from './entry.ts';
import {
  aBlock,
  aBlockId,
  aKey,
  allRecords,
  aNote,
  aRecord,
  aRequestId,
  aTombstone,
  GROUP,
  pictureOf,
  putAll,
  someBytes,
  TestBed,
  textOf,
} from './testing.ts';

test('an entry is pending when it is durable, and is seen once the commit point passes it', async () => {
  const store = await new TestBed().open();
  await store.append(aRecord({ sequence: 1, name: 'a' }));
  assert.equal(store.find(aKey('a')), undefined);
  assert.deepEqual(
    (await store.pending(GROUP)).map((entry) => entry.sequence),
    [1],
  );
  assert.equal(store.log(GROUP).last, 1);
  store.commit(GROUP, 1);
  assert.equal(await textOf(store, 'a'), 'text of 1');
  assert.deepEqual(await store.pending(GROUP), []);
  assert.equal(store.log(GROUP).commit, 1);
});

test('an entry comes back as it was appended', async () => {
  const store = await new TestBed().open();
  const entry = aRecord({ sequence: 1, name: 'a', ballot: 9, commit: 0, body: someBytes(200_000) });
  await store.append(entry);
  const [pending] = await store.pending(GROUP);
  assert.deepEqual({ ...pending }, { ...entry, ...bytesOf(pending!) });
  store.commit(GROUP, 1);
  const row = store.find(aKey('a'));
  assert.deepEqual([...(await store.read(row!)).body], [...entry.body]);
  assert.deepEqual(row?.summary, entry.meta.slice(16, 48));
});

/** The same bytes as plain arrays: buffers compare by class too. */
function bytesOf(entry: { key: Uint8Array; meta: Uint8Array; body: Uint8Array }): object {
  return { key: entry.key, meta: entry.meta, body: entry.body };
}

test('a commit point beyond what is durable applies entries as they become durable', async () => {
  const store = await new TestBed().open();
  const appended = store.append(aRecord({ sequence: 1, name: 'a' }));
  store.commit(GROUP, 5);
  assert.equal(store.find(aKey('a')), undefined);
  await appended;
  assert.equal(await textOf(store, 'a'), 'text of 1');
});

test('entries follow each other without gaps', async () => {
  const store = await new TestBed().open();
  await assert.rejects(store.append(aRecord({ sequence: 2 })), { code: 'NOT_SYNCED' });
  await store.append(aRecord({ sequence: 1 }));
  await store.append(aRecord({ sequence: 2 }));
  await store.append(aRecord({ sequence: 1 }));
  assert.equal((await store.pending(GROUP)).length, 2);
  await assert.rejects(store.append({ ...aRecord({ sequence: 1 }), meta: new Uint8Array(48) }), { code: 'CONFLICT' });
});

test('a cut voids what is above it of lower ballots, now and after a restart', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  for (const sequence of [1, 2, 3, 4]) await store.append(aRecord({ sequence, ballot: sequence < 4 ? 5 : 8 }));
  await store.cut(GROUP, 1, 8);
  assert.deepEqual(
    (await store.pending(GROUP)).map((entry) => entry.sequence),
    [1, 4],
  );
  await store.cut(GROUP, 1, 9);
  assert.deepEqual({ last: store.log(GROUP).last, ballot: store.log(GROUP).lastBallot }, { last: 1, ballot: 5 });
  await store.append(aRecord({ sequence: 2, ballot: 9, name: 'new' }));
  store = await bed.crash('power');
  store.commit(GROUP, 2);
  assert.deepEqual(
    (await allRecords(store)).map((row) => row.sequence),
    [1, 2],
  );
  assert.equal(store.log(GROUP).lastBallot, 9);
});

test('a cut never reaches the commit point', async () => {
  const store = await new TestBed().open();
  await putAll(store, [aRecord({ sequence: 1 }), aRecord({ sequence: 2 })]);
  await store.cut(GROUP, 0, 99);
  assert.equal(store.log(GROUP).last, 2);
  assert.equal((await allRecords(store)).length, 2);
});

test('an entry of a higher ballot takes the place of a pending one and voids what followed it', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  for (const sequence of [1, 2, 3]) await store.append(aRecord({ sequence, ballot: 5, name: `old${sequence}` }));
  await store.append(aRecord({ sequence: 2, ballot: 6, name: 'new2' }));
  await assert.rejects(store.append(aRecord({ sequence: 2, ballot: 5, name: 'old2' })), { code: 'STALE_BALLOT' });
  for (const loseIndex of [false, true]) {
    store = await bed.crash('power', { loseIndex });
    assert.deepEqual(
      (await store.pending(GROUP)).map((entry) => new TextDecoder().decode(entry.key.subarray(4))),
      ['old1', 'new2'],
    );
  }
});

test('an entry that was void is taken again when an adopted log has it', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  for (const sequence of [1, 2]) await store.append(aRecord({ sequence, ballot: 5 }));
  await store.cut(GROUP, 1, 10);
  await store.append(aRecord({ sequence: 2, ballot: 5 }));
  await store.cut(GROUP, 2, 20);
  store = await bed.crash('power', { loseIndex: true });
  assert.deepEqual(
    (await store.pending(GROUP)).map((entry) => entry.sequence),
    [1, 2],
  );
});

test('a mark is kept over a restart and a rebuild', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await store.mark(GROUP, { role: 'learner', syncedIn: 12, progress: 'here' });
  assert.equal(store.log(GROUP).mark?.progress, 'here');
  await store.mark(GROUP, { role: 'member', syncedIn: 13 });
  for (const loseIndex of [false, true]) {
    store = await bed.crash('power', { loseIndex });
    assert.deepEqual(store.log(GROUP).mark, { role: 'member', syncedIn: 13 });
  }
  await assert.rejects(store.mark(GROUP, { role: 'member', syncedIn: 1, progress: 'x'.repeat(5_000) }), {
    code: 'TOO_LARGE',
  });
});

test('a tombstone removes what is older, and is walked like a record', async () => {
  const store = await new TestBed().open();
  await putAll(store, [aRecord({ sequence: 1, name: 'a' }), aRecord({ sequence: 2, name: 'b' })]);
  await putAll(store, [aTombstone({ sequence: 3, name: 'a' })]);
  assert.equal(store.find(aKey('a')), undefined);
  assert.deepEqual(
    (await allRecords(store)).map((row) => row.sequence),
    [2],
  );
  const { rows } = await store.walkRecords(GROUP, undefined, 10);
  assert.deepEqual(
    rows.map(({ sequence, tombstone }) => ({ sequence, tombstone })).toSorted((a, b) => a.sequence - b.sequence),
    [
      { sequence: 2, tombstone: false },
      { sequence: 3, tombstone: true },
    ],
  );
  assert.equal(store.log(GROUP).objects, 1);
});

test('tombstones are forgotten after a while, but not while the group is learning here', async () => {
  const bed = new TestBed({ tombstoneKeepMs: 60_000 });
  const store = await bed.open();
  await putAll(store, [aTombstone({ sequence: 1, name: 'a' })]);
  await store.mark(GROUP, { role: 'learner', syncedIn: 1 });
  const walked = async (): Promise<number> => (await store.walkRecords(GROUP, undefined, 10)).rows.length;
  const chores = async (): Promise<void> => {
    for (let i = 0; i < 4; i++) {
      bed.clock.advance(40_000);
      for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await chores();
  assert.equal(await walked(), 1);
  await store.mark(GROUP, { role: 'member', syncedIn: 1 });
  await chores();
  assert.equal(await walked(), 0);
});

test('a record that closes another key removes it in the same step, in a rebuild too', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1, name: 'upload' }), aRecord({ sequence: 2, name: 'other' })]);
  await store.append(aRecord({ sequence: 3, name: 'object', closes: 'upload' }));
  assert.notEqual(store.find(aKey('upload')), undefined);
  store.commit(GROUP, 3);
  assert.equal(store.find(aKey('upload')), undefined);
  assert.equal(await textOf(store, 'object'), 'text of 3');
  await putAll(store, [aRecord({ sequence: 4, name: 'object', text: 'without flag' })]);
  for (const loseIndex of [false, true]) {
    store = await bed.crash('power', { loseIndex });
    store.commit(GROUP, 4);
    assert.equal(store.find(aKey('upload')), undefined);
    assert.deepEqual((await allRecords(store)).map((row) => row.sequence).toSorted(), [2, 4]);
  }
});

test('meta that is too short for what its flag says is refused', async () => {
  const store = await new TestBed().open();
  const entry = aRecord({ sequence: 1, flags: FLAG.CLOSES });
  await assert.rejects(store.append(entry), { code: 'INVALID' });
  await assert.rejects(store.append({ ...aRecord({ sequence: 1 }), meta: aRequestId(1) }), { code: 'INVALID' });
});

test('bounds of entries are checked', async () => {
  const store = await new TestBed().open();
  const large = someBytes(256 * 1024 + 1);
  await assert.rejects(store.append(aRecord({ sequence: 1, body: large })), { code: 'TOO_LARGE' });
  const entry = aRecord({ sequence: 1 });
  await assert.rejects(store.append({ ...entry, key: new Uint8Array(2_049) }), { code: 'TOO_LARGE' });
  await assert.rejects(store.append({ ...entry, meta: new Uint8Array(16_385) }), { code: 'TOO_LARGE' });
  await assert.rejects(store.append({ ...entry, sums: new Uint32Array(3) }), { code: 'INVALID' });
  await assert.rejects(store.append({ ...entry, flags: FLAG.MOVED }), { code: 'INVALID' });
  await assert.rejects(store.append({ ...entry, kind: KIND.SEAL as never }), { code: 'INVALID' });
  await assert.rejects(store.append({ ...entry, sequence: 0 }), { code: 'INVALID' });
  assert.equal(store.log(GROUP).last, 0);
});

test('notes are put, found by prefix, and removed', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await putAll(store, [
    aNote({ sequence: 1, name: 'fence/a', text: 'one' }),
    aNote({ sequence: 2, name: 'fence/b', text: 'two' }),
    aNote({ sequence: 3, name: 'other', text: 'three' }),
    aNote({ sequence: 4, name: 'fence/a', flags: FLAG.DELETE_MARKER }),
  ]);
  for (const loseIndex of [undefined, false, true]) {
    if (loseIndex !== undefined) store = await bed.crash('power', { loseIndex });
    store.commit(GROUP, 4);
    assert.equal(store.note(GROUP, utf8('fence/a')), undefined);
    assert.deepEqual([...store.note(GROUP, utf8('fence/b'))!], [...utf8('two')]);
    const found = await store.notes(GROUP, utf8('fence/'));
    assert.deepEqual(
      found.map(({ name }) => new TextDecoder().decode(name)),
      ['fence/b'],
    );
  }
});

test('install applies at once unless what is here is newer, and the same version replaces', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await store.rebase(GROUP, 20, 3);
  await store.install(aRecord({ sequence: 9, name: 'a', text: 'nine' }));
  await store.install(aRecord({ sequence: 4, name: 'a', text: 'four' }));
  assert.equal(await textOf(store, 'a'), 'nine');
  await store.install(aTombstone({ sequence: 12, name: 'b' }));
  await store.install(aRecord({ sequence: 11, name: 'b' }));
  assert.equal(store.find(aKey('b')), undefined);
  const place = store.find(aKey('a'))!.place;
  await store.install(aRecord({ sequence: 9, name: 'a', text: 'nine' }));
  assert.notEqual(store.find(aKey('a'))!.place, place);
  assert.equal(store.log(GROUP).last, 20);
  for (const loseIndex of [false, true]) {
    store = await bed.crash('power', { loseIndex });
    assert.equal(await textOf(store, 'a'), 'nine');
    assert.equal(store.find(aKey('b')), undefined);
    const { last, commit, objects } = store.log(GROUP);
    assert.deepEqual({ last, commit, objects }, { last: 20, commit: 20, objects: 1 });
  }
});

test('rebase voids what was pending and begins the log anew', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1 }), aRecord({ sequence: 2 })]);
  await store.append(aRecord({ sequence: 3, name: 'never' }));
  await store.rebase(GROUP, 10, 4);
  await store.append(aRecord({ sequence: 11, ballot: 4, name: 'new' }));
  for (const loseIndex of [undefined, false, true]) {
    if (loseIndex !== undefined) store = await bed.crash('power', { loseIndex });
    assert.deepEqual(
      (await store.pending(GROUP)).map((entry) => entry.sequence),
      [11],
    );
    assert.equal(store.log(GROUP).commit, 10);
    assert.deepEqual(
      (await allRecords(store)).map((row) => row.sequence),
      [1, 2],
    );
  }
});

test('a dropped group is gone for good, and can be taken again', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  const id = aBlockId(1);
  const staging = store.stage(GROUP, id);
  await staging.write(someBytes(70_000));
  const whole = await staging.finish();
  await putAll(store, [aRecord({ sequence: 1 }), aNote({ sequence: 2 }), aBlock(id, whole, { sequence: 3 })]);
  await store.append(aRecord({ sequence: 4 }));
  const other = { ...GROUP, group: asGroupId(8) };
  await putAll(store, [aRecord({ sequence: 1, name: 'kept', group: other })]);
  await store.drop(GROUP);
  assert.deepEqual(store.groups(), [other]);
  await store.rebase(GROUP, 30, 5);
  await store.install(aRecord({ sequence: 25, name: 'again' }));
  for (const loseIndex of [undefined, false, true]) {
    if (loseIndex !== undefined) store = await bed.crash('power', { loseIndex });
    store.commit(other, 1);
    assert.deepEqual((await allRecords(store)).map((row) => row.sequence).toSorted(), [1, 25]);
    assert.equal(store.findBlock(GROUP, id), undefined);
    assert.deepEqual(await store.notes(GROUP, EMPTY), []);
    const { objects, blocks, last } = store.log(GROUP);
    assert.deepEqual({ objects, blocks, last }, { objects: 1, blocks: 0, last: 30 });
  }
});

test('requests of applied and pending entries are known after a restart, and forgotten after two minutes', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  const timeMs = bed.clock.now();
  await putAll(store, [aRecord({ sequence: 1, timeMs }), aTombstone({ sequence: 2, timeMs })]);
  await store.append(aRecord({ sequence: 3, timeMs }));
  const known = (): number[] => [...new Set(store.requests().map((request) => request.sequence))].toSorted();
  store = await bed.reopen();
  assert.deepEqual(known(), [1, 2, 3]);
  assert.equal(store.requests().find((request) => request.sequence === 2)?.requestId, '00000002'.padEnd(32, '0'));
  store = await bed.crash('power', { loseIndex: true });
  assert.deepEqual(known(), [1, 2, 3]);
  bed.clock.advance(121_000);
  store = await bed.reopen();
  assert.deepEqual(known(), []);
});

test('a list stops at its limits and says where to go on', async () => {
  const store = await new TestBed().open();
  const names = ['a', 'b', 'b/1', 'b/2', 'c'];
  await putAll(
    store,
    names.map((name, i) => aRecord({ sequence: i + 1, name })),
  );
  const found: string[] = [];
  let from: Uint8Array | undefined = aKey('');
  let pages = 0;
  while (from !== undefined) {
    const page = await store.list({ from, before: aKey('\u{ffff}'), limit: 3, take: 2 });
    found.push(...page.rows.map((row) => new TextDecoder().decode(row.key.subarray(4))));
    from = page.next;
    pages += 1;
  }
  assert.deepEqual(found, names);
  assert.equal(pages, 3);
  const some = await store.list({
    from: aKey('b'),
    before: aKey('c'),
    limit: 2,
    take: 10,
    accept: (row) => row.key.length > 5,
  });
  assert.deepEqual(
    some.rows.map((row) => row.sequence),
    [3],
  );
  assert.deepEqual([...some.next!], [...aKey('b/2')]);
});

test('walks come back in pages, in the order of hash and key', async () => {
  const store = await new TestBed().open();
  await putAll(
    store,
    Array.from({ length: 25 }, (_, i) => aRecord({ sequence: i + 1 })),
  );
  const walked: string[] = [];
  let after: string | undefined;
  do {
    const page: Awaited<ReturnType<typeof store.walkRecords>> = await store.walkRecords(GROUP, after, 10);
    walked.push(...page.rows.map((row) => `${String(row.hashHigh).padStart(10, '0')} ${row.sequence}`));
    after = page.next;
  } while (after !== undefined);
  assert.equal(walked.length, 25);
  assert.deepEqual(walked, walked.toSorted());
  await assert.rejects(store.walkRecords(GROUP, 'ab', 10), { code: 'INVALID' });
});

test('equal content has equal digests, whatever way it came', async () => {
  const one = await new TestBed().open();
  await putAll(one, [
    aRecord({ sequence: 1, name: 'a' }),
    aRecord({ sequence: 2, name: 'b' }),
    aRecord({ sequence: 3, name: 'a' }),
    aTombstone({ sequence: 4, name: 'b' }),
  ]);
  const two = await new TestBed().open();
  await two.rebase(GROUP, 4, 1);
  await two.install(aRecord({ sequence: 3, name: 'a' }));
  assert.equal(one.log(GROUP).digest, two.log(GROUP).digest);
  await two.install(aRecord({ sequence: 2, name: 'b' }));
  assert.notEqual(one.log(GROUP).digest, two.log(GROUP).digest);
});

test('small files are replaced whole and kept', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  assert.equal(await store.loadFile('map'), undefined);
  await store.saveFile('map', utf8('one'));
  await store.saveFile('map', utf8('two'));
  store = await bed.crash('power');
  assert.deepEqual([...(await store.loadFile('map'))!], [...utf8('two')]);
  for (const name of ['identity', '../x', 'index', 'a.new', '']) {
    await assert.rejects(store.saveFile(name, EMPTY), { code: 'INVALID' });
  }
});

test('a rebuilt index says the same as the original', async () => {
  const bed = new TestBed({ maxVolumeBytes: 20_000 });
  let store = await bed.open();
  const id = aBlockId(4);
  const staging = store.stage(GROUP, id);
  await staging.write(someBytes(150_000));
  const whole = await staging.finish();
  for (let sequence = 1; sequence <= 60; sequence++) {
    const name = `k${sequence % 17}`;
    if (sequence === 30) await store.append(aBlock(id, whole, { sequence }));
    else if (sequence % 5 === 0) await store.append(aTombstone({ sequence, name }));
    else if (sequence % 7 === 0) await store.append(aNote({ sequence, name }));
    else await store.append(aRecord({ sequence, name, body: someBytes(900, sequence), commit: sequence - 1 }));
    if (sequence < 58) store.commit(GROUP, sequence);
  }
  await store.append(aRecord({ sequence: 61, commit: 57 }));
  store = await bed.reopen();
  const before = await pictureOf(store);
  store = await bed.reopen({ rebuild: true });
  assert.deepEqual(await pictureOf(store), before);
});

test('proof of a working disk is a sync that began after it was asked for', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  bed.clock.advance(500);
  let synced = 0;
  bed.disk.onOperation = ({ action }) => {
    if (action === 'datasync') synced += 1;
    return undefined;
  };
  await store.proveDisk();
  assert.equal(synced, 1);
  assert.equal(store.facts().lastDurableMs, 500);
});
