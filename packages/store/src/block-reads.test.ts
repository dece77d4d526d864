import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aBlock, aBlockGone, aBlockId, GROUP, putAll, someBytes, TestBed } from './testing.ts';

test('a block is named once its bytes are here, and read by range', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  const id = aBlockId(1);
  const bytes = someBytes(2_500_000);
  await assert.rejects(store.append(aBlock(id, { size: 0, sums: new Uint32Array(0) }, { sequence: 1 })), {
    code: 'NOT_FOUND',
  });
  const staging = store.stage(GROUP, id);
  for (let at = 0; at < bytes.length; at += 333_333) await staging.write(bytes.subarray(at, at + 333_333));
  const whole = await staging.finish();
  assert.equal(whole.size, bytes.length);
  assert.equal(store.staged(id)?.size, bytes.length);
  const wrong = { size: whole.size, sums: whole.sums.map((sum) => sum + 1) };
  await assert.rejects(store.append(aBlock(id, wrong, { sequence: 1 })), { code: 'CHECKSUM_MISMATCH' });
  const part = new Uint8Array(1_000_000);
  await store.readStaged(id, 1_111_111, part);
  assert.deepEqual(Buffer.compare(part, bytes.subarray(1_111_111, 2_111_111)), 0);
  await putAll(store, [aBlock(id, whole, { sequence: 1 })]);
  assert.equal(store.staged(id), undefined);
  for (const loseIndex of [undefined, false, true]) {
    if (loseIndex !== undefined) store = await bed.crash('power', { loseIndex });
    store.commit(GROUP, 1);
    const row = store.findBlock(GROUP, id)!;
    assert.deepEqual([...row.sums], [...whole.sums]);
    for (const [from, count] of [
      [0, bytes.length],
      [65_536, 65_536],
      [1_048_570, 20],
      [2_499_999, 1],
      [5, 0],
    ] as const) {
      const target = new Uint8Array(count);
      await store.readBlock(row, from, target);
      assert.equal(Buffer.compare(target, bytes.subarray(from, from + count)), 0, `${from}+${count}`);
    }
    await assert.rejects(store.readBlock(row, 2_499_999, new Uint8Array(2)), { code: 'INVALID' });
    const entry = await store.readBlockEntry(row);
    assert.deepEqual([...entry.key], [...id]);
    assert.equal(entry.sequence, 1);
  }
});

test('a pending block keeps its staged bytes over a restart; other staged bytes go', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  const stage = async (number: number): Promise<{ size: number; sums: Uint32Array }> => {
    const staging = store.stage(GROUP, aBlockId(number));
    await staging.write(someBytes(100_000, number));
    return staging.finish();
  };
  const whole = await stage(1);
  await stage(2);
  await store.append(aBlock(aBlockId(1), whole, { sequence: 1 }));
  store = await bed.crash('power');
  assert.equal(store.staged(aBlockId(1))?.size, 100_000);
  assert.equal(store.staged(aBlockId(2)), undefined);
  store.commit(GROUP, 1);
  const target = new Uint8Array(100_000);
  await store.readBlock(store.findBlock(GROUP, aBlockId(1))!, 0, target);
  assert.equal(Buffer.compare(target, someBytes(100_000, 1)), 0);
});

test('a block that is gone is not found, and does not come back', async () => {
  const bed = new TestBed();
  let store = await bed.open();
  const id = aBlockId(3);
  const staging = store.stage(GROUP, id);
  await staging.write(someBytes(10));
  const whole = await staging.finish();
  await putAll(store, [aBlock(id, whole, { sequence: 1 }), aBlockGone(id, { sequence: 2 })]);
  for (const loseIndex of [undefined, false, true]) {
    if (loseIndex !== undefined) store = await bed.crash('power', { loseIndex });
    store.commit(GROUP, 2);
    assert.equal(store.findBlock(GROUP, id), undefined);
    assert.deepEqual((await store.walkBlocks(GROUP, undefined, 5)).rows, []);
    assert.deepEqual({ blocks: store.log(GROUP).blocks, bytes: store.log(GROUP).bytes }, { blocks: 0, bytes: 0 });
  }
});
