import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunkSums } from '@webdfs/base';
import { MAX_BLOCK_BYTES } from './limits.ts';
import { StagingBudget } from './staging.ts';
import { aBlock, aBlockId, GROUP, putAll, someBytes, TestBed } from './testing.ts';

const MIB = 1024 * 1024;

test('sums of a staged block are those of its chunks, however it was written', async () => {
  const store = await new TestBed().open();
  const bytes = someBytes(3 * MIB + 12_345);
  for (const step of [1, 7_777, 65_536, MIB, 3 * MIB]) {
    const staging = store.stage(GROUP, aBlockId(step));
    for (let at = 0; at < bytes.length; at += Math.max(step, 1_000)) {
      await staging.write(bytes.subarray(at, Math.min(bytes.length, at + Math.max(step, 1_000))));
    }
    const whole = await staging.finish();
    assert.deepEqual([...whole.sums], [...chunkSums(bytes)]);
  }
});

test('a stream holds two pieces in memory at most, and waits for the older one', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  const staging = store.stage(GROUP, aBlockId(1));
  const waits = staging.write(new Uint8Array(5 * MIB));
  assert.ok(waits !== undefined);
  assert.ok(store.facts().counters['stagingBytes']! <= 2 * MIB);
  await waits;
  assert.ok(store.facts().counters['stagingBytes']! <= 2 * MIB);
  const { size } = await staging.finish();
  assert.equal(size, 5 * MIB);
  assert.equal(store.facts().counters['stagingBytes'], 0);
});

test('many streams share one budget: pieces get shorter, memory does not grow', async () => {
  const bed = new TestBed({ stagingBytes: 4 * MIB });
  const store = await bed.open();
  const bytes = someBytes(400_000);
  let most = 0;
  const one = async (number: number): Promise<void> => {
    const staging = store.stage(GROUP, aBlockId(number));
    for (let at = 0; at < bytes.length; at += 50_000) {
      await staging.write(bytes.subarray(at, at + 50_000));
      most = Math.max(most, store.facts().counters['stagingBytes']!);
    }
    const whole = await staging.finish();
    assert.deepEqual([...whole.sums], [...chunkSums(bytes)]);
  };
  await Promise.all(Array.from({ length: 60 }, (_, i) => one(i)));
  assert.ok(most > 0 && most <= 4 * MIB, `${most} bytes`);
});

test('the budget gives smaller buffers the more streams there are, and never more than it has', () => {
  const budget = new StagingBudget((bytes) => new Uint8Array(bytes), 2 * MIB);
  budget.open();
  assert.equal(budget.take()?.length, MIB);
  for (let i = 0; i < 100; i++) budget.open();
  const sizes: number[] = [];
  for (let buffer = budget.take(); buffer !== undefined; buffer = budget.take()) sizes.push(buffer.length);
  assert.deepEqual(new Set(sizes), new Set([65_536]));
  assert.equal(budget.used, 2 * MIB);
});

test('a block beyond the limit is refused', async () => {
  const store = await new TestBed().open();
  const staging = store.stage(GROUP, aBlockId(1));
  await assert.rejects(Promise.resolve(staging.write(new Uint8Array(MAX_BLOCK_BYTES + 1))), { code: 'TOO_LARGE' });
  staging.abort();
});

test('an aborted block leaves no live bytes, and cannot be named', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  const staging = store.stage(GROUP, aBlockId(1));
  await staging.write(someBytes(3 * MIB));
  staging.abort();
  await store.proveDisk();
  await assert.rejects(Promise.resolve(staging.write(new Uint8Array(1))), { code: 'CANCELLED' });
  assert.equal(store.staged(aBlockId(1)), undefined);
  const next = await bed.reopen();
  assert.equal(next.facts().liveBytes, 0);
  assert.deepEqual(await next.damage(), []);
});

test('an empty block is a block', async () => {
  const store = await new TestBed().open();
  const whole = await store.stage(GROUP, aBlockId(1)).finish();
  await putAll(store, [aBlock(aBlockId(1), whole, { sequence: 1 })]);
  const row = store.findBlock(GROUP, aBlockId(1))!;
  assert.equal(row.size, 0);
  await store.readBlock(row, 0, new Uint8Array(0));
});

test('a second try of a block does not mix with the first', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  const bytes = someBytes(2 * MIB, 9);
  const first = store.stage(GROUP, aBlockId(1));
  await first.write(someBytes(1_500_000, 3));
  const second = store.stage(GROUP, aBlockId(1));
  await second.write(bytes);
  const whole = await second.finish();
  first.abort();
  await putAll(store, [aBlock(aBlockId(1), whole, { sequence: 1 })]);
  for (const loseIndex of [undefined, false, true]) {
    if (loseIndex !== undefined) store = await bed.crash('power', { loseIndex });
    store.commit(GROUP, 1);
    const target = new Uint8Array(bytes.length);
    await store.readBlock(store.findBlock(GROUP, aBlockId(1))!, 0, target);
    assert.equal(Buffer.compare(target, bytes), 0);
  }
});

test('finished blocks that nobody names are forgotten after a while', async () => {
  const bed = new TestBed();
  const store = await bed.open();
  const staging = store.stage(GROUP, aBlockId(1));
  await staging.write(someBytes(10));
  await staging.finish();
  for (let i = 0; i < 130; i++) {
    bed.clock.advance(30_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(store.staged(aBlockId(1)), undefined);
});
