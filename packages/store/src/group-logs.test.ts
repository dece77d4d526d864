import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DiskOperation } from '@webdfs/base/testing';
import type { LogEntry } from './entry.ts';
import type { GroupMark, Store } from './store.ts';
import { aBlock, aBlockId, aNote, aRecord, GROUP, putAll, someBytes, TestBed } from './testing.ts';

const MARK: GroupMark = { role: 'member', syncedIn: 3 };

/** A block whose bytes are here, and the entry that names it. */
async function stagedBlock(store: Store, sequence: number, ballot = 1): Promise<LogEntry> {
  const id = aBlockId(sequence);
  const staging = store.stage(GROUP, id);
  await staging.write(someBytes(1_000, sequence));
  return aBlock(id, await staging.finish(), { sequence, ballot });
}

async function codesOf(...work: readonly Promise<unknown>[]): Promise<unknown[]> {
  const outcomes = await Promise.allSettled(work);
  return outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'done' : outcome.reason.code));
}

/** The volumes of both lanes, and the group's mark. Entry 1 is committed. */
async function opened(bed: TestBed): Promise<{ store: Store; log: string; bulk: string }> {
  const store = await bed.open();
  await store.mark(GROUP, MARK);
  const [log] = await bed.volumes();
  const block = await stagedBlock(store, 1);
  const bulk = (await bed.volumes()).find((name) => name !== log)!;
  await putAll(store, [block]);
  return { store, log: log!, bulk };
}

const isWriteTo =
  (volume: string) =>
  ({ action, path }: DiskOperation): boolean =>
    action === 'writev' && path.endsWith(volume);

test('a drop that is refused takes nothing of the group, though what went before it is refused with it', async () => {
  const bed = new TestBed();
  const { store, log } = await opened(bed);
  const block = await stagedBlock(store, 3);
  let full = 1;
  const isFull = isWriteTo(log);
  bed.disk.onOperation = (operation) => (isFull(operation) && full-- > 0 ? 'full' : undefined);
  const codes = await codesOf(store.append(aRecord({ sequence: 2 })), store.append(block), store.drop(GROUP));
  assert.deepEqual(codes, ['DISK_FULL', 'DISK_FULL', 'DISK_FULL']);
  await store.proveDisk();
  assert.deepEqual(store.log(GROUP).mark, MARK);
  const again = await bed.crash('power', { loseIndex: true });
  assert.deepEqual(again.log(GROUP).mark, MARK);
  assert.equal((await again.pending(GROUP)).length + again.log(GROUP).commit, 1);
});

test('what a group that is being dropped still has to say counts for nothing in its next tenure', async () => {
  const bed = new TestBed();
  const { store, bulk } = await opened(bed);
  const block = await stagedBlock(store, 2);
  let full = 1;
  const isFull = isWriteTo(bulk);
  bed.disk.onOperation = (operation) => (isFull(operation) && full-- > 0 ? 'full' : undefined);
  const codes = await codesOf(store.append(block), store.append(aNote({ sequence: 3 })), store.drop(GROUP));
  assert.deepEqual(codes, ['DISK_FULL', 'DISK_FULL', 'done']);
  await store.proveDisk();
  assert.equal(store.log(GROUP).mark, undefined);
  await putAll(
    store,
    [1, 2, 3].map((sequence) => aNote({ sequence, name: `note ${sequence}` })),
  );
  for (const loseIndex of [false, true]) {
    const again = await bed.crash('power', { loseIndex });
    again.commit(GROUP, 3);
    assert.equal(again.log(GROUP).mark, undefined);
    assert.equal(again.log(GROUP).commit, 3);
  }
});

test('a block that is being installed when its group is dropped is not of the next tenure', async () => {
  const bed = new TestBed();
  const { store } = await opened(bed);
  const block = await stagedBlock(store, 2);
  // the lane of blocks rests, that of marks is the first to write
  await new Promise((resolve) => setImmediate(resolve));
  const codes = await codesOf(store.proveDisk(), store.install(block), store.drop(GROUP));
  assert.deepEqual(codes, ['done', 'STALE_BALLOT', 'done']);
  assert.equal(store.log(GROUP).blocks, 0);
  const again = await bed.crash('kill');
  assert.equal(again.findBlock(GROUP, block.key), undefined);
});

test('a void block that is taken again is answered only when a crash no longer makes it void', async () => {
  const bed = new TestBed();
  const { store, log } = await opened(bed);
  const block = await stagedBlock(store, 2);
  const note = aNote({ sequence: 3 });
  await Promise.all([store.append(block), store.append(note)]);
  await store.cut(GROUP, 1, 2);
  let full = 1;
  const isFull = isWriteTo(log);
  bed.disk.onOperation = (operation) => (isFull(operation) && full-- > 0 ? 'full' : undefined);
  assert.deepEqual(await codesOf(store.append(block), store.append(note)), ['DISK_FULL', 'DISK_FULL']);
  bed.clock.advance(1_000);
  while (store.facts().full) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(await codesOf(store.append(block), store.append(note)), ['done', 'done']);
  const again = await bed.crash('power');
  assert.equal(again.log(GROUP).last, 3);
});

test('of two branches of a log the adopted one counts, though the other has the higher ballot', async () => {
  const bed = new TestBed();
  const { store } = await opened(bed);
  const branch = [2, 3].map((sequence) => aNote({ sequence, ballot: 4, name: `b4 ${sequence}` }));
  await Promise.all(branch.map((entry) => store.append(entry)));
  await codesOf(store.append(aNote({ sequence: 2, ballot: 5, name: 'b5' })));
  await store.cut(GROUP, 1, 6);
  await Promise.all(branch.map((entry) => store.append(entry)));
  for (const loseIndex of [false, true]) {
    const again = await bed.crash('power', { loseIndex });
    const pending = (await again.pending(GROUP)).map(({ sequence, ballot }) => `${sequence} of ${ballot}`);
    assert.deepEqual(pending.slice(-2), ['2 of 4', '3 of 4']);
  }
  bed.store.commit(GROUP, 3);
  await putAll(bed.store, [aNote({ sequence: 4, ballot: 7, name: 'b7', commit: 3 })]);
  const rebuilt = await bed.crash('power', { loseIndex: true });
  const names = (await rebuilt.notes(GROUP, new Uint8Array(0))).map(({ name }) => new TextDecoder().decode(name));
  assert.deepEqual(names, ['b4 2', 'b4 3']);
});
