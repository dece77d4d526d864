import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, SeededRandom, utf8 } from '@webdfs/base';
import { MAX_OVERLAY_BYTES } from './limits.ts';
import { LocationCache } from './location-cache.ts';
import { Overlay } from './overlay.ts';
import type { Row, RowChange, RowIndex } from './row-index.ts';

/** An index whose batches are finished by hand. */
class SlowIndex implements RowIndex {
  readonly rows = new Map<string, Uint8Array>();
  readonly batches: { changes: readonly RowChange[]; sync: boolean; finish: (error?: Error) => void }[] = [];

  get(key: Uint8Array): Uint8Array | undefined {
    return this.rows.get(Buffer.from(key).toString('latin1'));
  }

  batch(changes: readonly RowChange[], options?: { sync?: boolean }): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (error?: Error): void => {
        if (error !== undefined) return reject(error);
        for (const { key, value } of changes) {
          const name = Buffer.from(key).toString('latin1');
          if (value === undefined) this.rows.delete(name);
          else this.rows.set(name, value);
        }
        resolve();
      };
      this.batches.push({ changes, sync: options?.sync === true, finish });
    });
  }

  range(): Promise<Row[]> {
    return Promise.resolve([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

interface Bed {
  readonly index: SlowIndex;
  readonly clock: ManualClock;
  readonly overlay: Overlay;
  readonly failures: unknown[];
}

function aBed(state: RowChange[] = []): Bed {
  const index = new SlowIndex();
  const clock = new ManualClock();
  const failures: unknown[] = [];
  const overlay = new Overlay({
    index,
    clock,
    addState: (changes) => void changes.push(...state),
    onFailed: (error) => void failures.push(error),
  });
  return { index, clock, overlay, failures };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const KEY = utf8('ra');

test('a row is seen from the moment it is put, in every stage of its way', async () => {
  const { index, clock, overlay } = aBed();
  overlay.put(KEY, utf8('1'));
  assert.deepEqual(overlay.get(KEY), utf8('1'));
  clock.advance(1_000);
  assert.equal(index.batches.length, 1);
  assert.deepEqual(overlay.get(KEY), utf8('1'));
  overlay.put(KEY, utf8('2'));
  assert.deepEqual(overlay.get(KEY), utf8('2'));
  index.batches[0]!.finish();
  await turn();
  assert.deepEqual(overlay.get(KEY), utf8('2'));
  clock.advance(1_000);
  index.batches[1]!.finish();
  await turn();
  assert.deepEqual(overlay.get(KEY), utf8('2'));
  assert.equal(overlay.bytes, 0);
});

test('a row that was removed is not seen though the index still has it', async () => {
  const { index, clock, overlay } = aBed();
  index.rows.set('ra', utf8('old'));
  assert.deepEqual(overlay.get(KEY), utf8('old'));
  overlay.put(KEY, undefined);
  assert.equal(overlay.get(KEY), undefined);
  clock.advance(1_000);
  assert.equal(overlay.get(KEY), undefined);
  index.batches[0]!.finish();
  await turn();
  assert.equal(overlay.get(KEY), undefined);
});

test('one batch is in flight; what gathers meanwhile is the next', async () => {
  const { index, clock, overlay } = aBed();
  overlay.put(utf8('r1'), utf8('x'));
  clock.advance(1_000);
  overlay.put(utf8('r2'), utf8('x'));
  overlay.put(utf8('r3'), utf8('x'));
  clock.advance(1_000);
  assert.equal(index.batches.length, 1);
  index.batches[0]!.finish();
  await turn();
  clock.advance(1_000);
  assert.deepEqual(
    index.batches.map((batch) => batch.changes.length),
    [1, 2],
  );
});

test('state goes with every batch, so that every batch is a checkpoint', () => {
  const { index, clock, overlay } = aBed([{ key: utf8('v'), value: utf8('state') }]);
  overlay.put(KEY, utf8('1'));
  clock.advance(1_000);
  assert.deepEqual(
    index.batches[0]!.changes.map(({ key }) => Buffer.from(key).toString()),
    ['ra', 'v'],
  );
});

test('settled waits for what was put before it was called, and for no more', async () => {
  const { index, overlay } = aBed();
  overlay.put(utf8('r1'), utf8('x'));
  let settled = false;
  const wait = overlay.settled().then(() => {
    settled = true;
  });
  await turn();
  overlay.put(utf8('r2'), utf8('x'));
  assert.equal(settled, false);
  index.batches[0]!.finish();
  await wait;
  assert.equal(index.batches.length, 1);
});

test('sync resolves after a batch that was synced, though nothing waits', async () => {
  const { index, overlay } = aBed();
  const wait = overlay.sync();
  await turn();
  assert.deepEqual(
    index.batches.map((batch) => batch.sync),
    [true],
  );
  index.batches[0]!.finish();
  await wait;
});

test('a sync asked for while a batch is in flight goes with the next', async () => {
  const { index, clock, overlay } = aBed();
  overlay.put(KEY, utf8('1'));
  clock.advance(1_000);
  const wait = overlay.sync();
  index.batches[0]!.finish();
  await turn();
  index.batches[1]!.finish();
  await wait;
  assert.deepEqual(
    index.batches.map((batch) => batch.sync),
    [false, true],
  );
});

test('beyond its bound the overlay has no room until a batch is written', async () => {
  const { index, overlay } = aBed();
  for (let i = 0; i < 9; i++) overlay.put(utf8(`r${i}`), new Uint8Array(MAX_OVERLAY_BYTES / 8));
  const room = overlay.room();
  assert.ok(room !== undefined);
  index.batches[0]!.finish();
  await room;
  assert.equal(overlay.room(), undefined);
});

test('a batch that fails is told once, and nobody waits for ever', async () => {
  const { index, clock, overlay, failures } = aBed();
  overlay.put(KEY, utf8('1'));
  clock.advance(1_000);
  const waits = [overlay.settled(), overlay.sync()];
  index.batches[0]!.finish(new Error('no space'));
  for (const wait of waits) await assert.rejects(wait, /no space/);
  await assert.rejects(overlay.settled(), /no space/);
  assert.equal(failures.length, 1);
});

test('a cache in between never tells of a row that has changed', async () => {
  const index = new SlowIndex();
  const clock = new ManualClock();
  const cache = new LocationCache({ random: new SeededRandom(1), slots: 4 });
  const overlay = new Overlay({ index, clock, cache, addState: () => undefined, onFailed: () => undefined });
  const random = new SeededRandom(5);
  const truth = new Map<number, number>();
  for (let i = 0; i < 3_000; i++) {
    const name = random.below(12);
    const key = utf8(`r${name}`);
    const what = random.below(10);
    if (what < 3) {
      overlay.put(key, new Uint8Array(72).fill(i));
      truth.set(name, i & 255);
    } else if (what === 3) {
      overlay.put(key, undefined);
      truth.delete(name);
    } else if (what === 4) {
      clock.advance(100);
      index.batches.at(-1)?.finish();
      await turn();
    } else assert.equal(overlay.get(key)?.[5], truth.get(name));
  }
  assert.ok(cache.hits > 100);
});
