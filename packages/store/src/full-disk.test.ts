import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FLAG } from './entry.ts';
import { ballastOf, type FullState, reserveOf, stepFull, volumeBytesOf } from './full-disk.ts';
import { aBlockId, aKey, aNote, aRecord, aTombstone, FOLDER, GROUP, putAll, TestBed, textOf } from './testing.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

test('the reserve is a twentieth of the disk, at least 64 MiB and at most 3 GiB', () => {
  assert.equal(reserveOf(20 * GIB), GIB);
  assert.equal(reserveOf(GIB), 64 * MIB);
  assert.equal(reserveOf(1000 * GIB), 3 * GIB);
  assert.equal(reserveOf(100 * MIB), 25 * MIB);
  assert.equal(ballastOf(GIB), 64 * MIB);
  assert.equal(ballastOf(40 * MIB), 20 * MIB);
});

test('volumes are a thirty-second of the disk, 16 MiB to 1 GiB', () => {
  assert.equal(volumeBytesOf(3.2 * GIB), Math.floor((3.2 * GIB) / 32));
  assert.equal(volumeBytesOf(100 * MIB), 16 * MIB);
  assert.equal(volumeBytesOf(1000 * GIB), GIB);
});

test('a disk at the brink does not flap: it is writable again only well above the reserve', () => {
  const reserve = 100;
  let state: FullState = { full: false, ballast: 'kept' };
  const seen: string[] = [];
  for (const free of [101, 99, 101, 125, 126, 99, 49, 99, 126, 200, 201]) {
    state = stepFull(state, free, reserve);
    seen.push(`${state.full ? 'full' : 'open'} ${state.ballast}`);
  }
  assert.deepEqual(seen, [
    'open kept',
    'full kept',
    'full kept',
    'full kept',
    'open kept',
    'full kept',
    'full given up',
    'full given up',
    'open given up',
    'open given up',
    'open kept',
  ]);
});

test('whatever came before, below the reserve the disk is full, and far above it is not', () => {
  fc.assert(
    fc.property(fc.boolean(), fc.nat(1_000), fc.integer({ min: 1, max: 500 }), (full, free, reserve) => {
      const next = stepFull({ full, ballast: 'kept' }, free, reserve);
      if (free < reserve) assert.equal(next.full, true);
      if (free > 1.25 * reserve) assert.equal(next.full, false);
    }),
  );
});

const turns = async (): Promise<void> => {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
};

test('a full disk refuses puts and streams, and goes on with deletes, notes, marks and reads', async () => {
  const bed = new TestBed({ totalBytes: 10 * MIB, reserveBytes: 2 * MIB, maxVolumeBytes: MIB });
  let store = await bed.open();
  await putAll(store, [aRecord({ sequence: 1, name: 'a' }), aRecord({ sequence: 2, name: 'b' })]);
  bed.disk.limit(2 * MIB);
  bed.clock.advance(1_000);
  await turns();
  assert.equal(store.facts().full, true);
  await assert.rejects(store.append(aRecord({ sequence: 3 })), { code: 'DISK_FULL' });
  await assert.rejects(store.install(aRecord({ sequence: 3 })), { code: 'DISK_FULL' });
  await assert.rejects(Promise.resolve(store.stage(GROUP, aBlockId(1)).write(new Uint8Array(10))), {
    code: 'DISK_FULL',
  });
  await putAll(store, [
    aTombstone({ sequence: 3, name: 'a' }),
    aNote({ sequence: 4 }),
    aRecord({ sequence: 5, name: 'c', flags: FLAG.DELETE_MARKER }),
  ]);
  await store.mark(GROUP, { role: 'member', syncedIn: 4 });
  assert.equal(store.find(aKey('a')), undefined);
  assert.equal(await textOf(store, 'b'), 'text of 2');
  bed.disk.limit(10 * MIB);
  bed.clock.advance(1_000);
  await turns();
  await putAll(store, [aRecord({ sequence: 6, name: 'd' })]);
  store = await bed.crash('power');
  store.commit(GROUP, 6);
  assert.equal(await textOf(store, 'd'), 'text of 6');
});

test('the ballast is given up at half the reserve, and written again when there is space', async () => {
  const bed = new TestBed({ totalBytes: 100 * MIB, reserveBytes: 8 * MIB, ballast: true, maxVolumeBytes: MIB });
  const store = await bed.open();
  const sizeOf = (): number => [...bed.disk.files()].find(([path]) => path === `${FOLDER}/ballast`)?.[1].size ?? 0;
  for (let i = 0; i < 100; i++) {
    bed.clock.advance(50);
    await turns();
  }
  assert.equal(sizeOf(), 4 * MIB);
  bed.disk.limit(7 * MIB);
  bed.clock.advance(1_000);
  await turns();
  assert.equal(sizeOf(), 0);
  bed.disk.limit(100 * MIB);
  for (let i = 0; i < 100; i++) {
    bed.clock.advance(100);
    await turns();
  }
  assert.equal(sizeOf(), 4 * MIB);
  await store[Symbol.asyncDispose]();
});
