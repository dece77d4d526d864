import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHUNK_BYTES, PAGE_BYTES } from '@webdfs/base';
import { type DiskOperation, SimulatedDisk, type SimulatedDiskOptions } from '@webdfs/base/testing';
import { aBlock, aBlockId, GROUP, putAll, someBytes, TestBed } from './testing.ts';

const MIB = 1024 * 1024;

/** A store on a disk of its own, and the writes of commits it makes. */
class Bed extends TestBed {
  readonly writes: DiskOperation[] = [];

  constructor(options: Omit<SimulatedDiskOptions, 'seed'> = {}) {
    super();
    this.disk = new SimulatedDisk({ seed: 1, ...options });
  }

  watch(fate: (operation: DiskOperation) => 'short' | 'full' | undefined = () => undefined): void {
    this.disk.onOperation = (operation) => {
      if (operation.action !== 'writev' || !operation.path.endsWith('.vol') || operation.offset === 0) return undefined;
      this.writes.push(operation);
      return fate(operation);
    };
  }

  async stage(number: number, bytes: Uint8Array): Promise<{ size: number; sums: Uint32Array }> {
    const staging = this.store.stage(GROUP, aBlockId(number));
    await staging.write(bytes);
    return await staging.finish();
  }

  async put(number: number, bytes: Uint8Array): Promise<void> {
    const whole = await this.stage(number, bytes);
    await putAll(this.store, [aBlock(aBlockId(number), whole, { sequence: number })]);
  }

  async bytesOf(number: number): Promise<Uint8Array> {
    const row = this.store.findBlock(GROUP, aBlockId(number))!;
    const bytes = new Uint8Array(row.size);
    await this.store.readBlock(row, 0, bytes);
    return bytes;
  }

  directBytes(): number {
    return this.writes.reduce((sum, { bytes, direct }) => sum + (direct ? bytes : 0), 0);
  }

  cachedBytes(): number {
    return this.writes.reduce((sum, { bytes, direct }) => sum + (direct ? 0 : bytes), 0);
  }
}

/** Sizes around pages, chunks and pieces. */
const SIZES = [3 * MIB, MIB + 1, 2 * MIB - 1, 5 * PAGE_BYTES, 5 * PAGE_BYTES + 8, 7 * CHUNK_BYTES + 13, 100, 1, 0];

async function proveAll(bed: Bed): Promise<void> {
  for (const [i, size] of SIZES.entries()) {
    assert.equal(Buffer.compare(await bed.bytesOf(i + 1), someBytes(size, i)), 0, `block of ${size} bytes`);
  }
}

test('all whole pages of blocks are written directly, and come back after a crash and a rebuild', async () => {
  const bed = new Bed();
  await bed.open();
  bed.watch();
  for (const [i, size] of SIZES.entries()) await bed.put(i + 1, someBytes(size, i));
  const whole = SIZES.reduce((sum, size) => sum + (size > 100 ? size - (size % PAGE_BYTES) : 0), 0);
  assert.ok(bed.directBytes() >= whole, `${bed.directBytes()} of ${whole} bytes directly`);
  assert.ok(
    bed.cachedBytes() < 2 * PAGE_BYTES * SIZES.length + (2 * MIB) / 100,
    `${bed.cachedBytes()} through the cache`,
  );
  await proveAll(bed);
  for (const crash of ['kill', 'power'] as const) {
    await bed.crash(crash, { rebuild: crash === 'power' });
    bed.store.commit(GROUP, SIZES.length);
    await proveAll(bed);
  }
  assert.deepEqual(await bed.store.damage(), []);
});

test('where files are not opened for direct writes, everything goes through the cache', async () => {
  const bed = new Bed({ direct: 'none' });
  await bed.open();
  bed.watch();
  for (const [i, size] of SIZES.entries()) await bed.put(i + 1, someBytes(size, i));
  assert.equal(bed.directBytes(), 0);
  await proveAll(bed);
});

test('a file system that refuses the first direct write is not asked again for the volume', async () => {
  const bed = new Bed({ direct: 'refused' });
  await bed.open();
  bed.watch();
  for (const [i, size] of SIZES.entries()) await bed.put(i + 1, someBytes(size, i));
  assert.equal(bed.writes.filter(({ direct }) => direct).length, 1);
  await proveAll(bed);
});

test('a direct write that was cut short goes on through the cache', async () => {
  const bed = new Bed();
  await bed.open();
  bed.watch(({ direct }) => (direct ? 'short' : undefined));
  for (const [i, size] of SIZES.entries()) await bed.put(i + 1, someBytes(size, i));
  assert.ok(bed.cachedBytes() > 0);
  await proveAll(bed);
});

test('a disk that is full at a direct write refuses the block, and the next one is stored', async () => {
  const bed = new Bed();
  await bed.open();
  let full = true;
  bed.watch(({ direct }) => (direct && full ? 'full' : undefined));
  await assert.rejects(bed.stage(1, someBytes(MIB)), { code: 'DISK_FULL' });
  full = false;
  // until the store has looked at the disk again
  for (let i = 0; i < 200 && bed.store.facts().full; i++) {
    bed.clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await bed.put(1, someBytes(MIB, 5));
  assert.deepEqual(await bed.bytesOf(1), someBytes(MIB, 5));
  await bed.crash('power', { rebuild: true });
  bed.store.commit(GROUP, 1);
  assert.deepEqual(await bed.bytesOf(1), someBytes(MIB, 5));
  assert.deepEqual(await bed.store.damage(), []);
});
