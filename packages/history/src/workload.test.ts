import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, SeededRandom, WebdfsError } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { checkHistory } from './check-history.ts';
import { valueBytes, valueName } from './check-values.ts';
import { type RecordedWorkload, recordWorkload, type Subject } from './workload.ts';

/** A store in memory; `trouble` may throw before or after anything is done, `spoil` changes what is read. */
function aStore(
  clock: ManualClock,
  options: {
    trouble?: (when: 'before' | 'after') => void;
    spoil?: (bytes: Uint8Array) => Uint8Array;
    drops?: () => boolean;
  },
): Subject {
  const held = new Map<string, { bytes: Uint8Array; tag: string }>();
  let tags = 0;
  const perform = async <T>(work: () => T): Promise<T> => {
    await new Promise<void>((resolve) => void clock.after(3, resolve));
    options.trouble?.('before');
    const result = work();
    await new Promise<void>((resolve) => void clock.after(3, resolve));
    options.trouble?.('after');
    return result;
  };
  return {
    read: (key) =>
      perform(() => {
        const found = held.get(key);
        return found && { ...found, bytes: options.spoil?.(found.bytes) ?? found.bytes };
      }),
    write: (key, bytes, condition) =>
      perform(() => {
        const now = held.get(key);
        if (condition === 'absent' && now !== undefined) return undefined;
        if (typeof condition === 'object' && now?.tag !== condition.tag) return undefined;
        const tag = `tag ${++tags}`;
        if (options.drops?.() !== true) held.set(key, { bytes, tag });
        return tag;
      }),
    remove: (key) => perform(() => void held.delete(key)),
    list: () => perform(() => new Map([...held].map(([key, { tag }]) => [key, tag]))),
  };
}

async function recorded(
  seed: number,
  options: (random: SeededRandom) => Parameters<typeof aStore>[1],
): Promise<RecordedWorkload> {
  const clock = new ManualClock();
  const subject = aStore(clock, options(new SeededRandom(seed + 1)));
  const state: { result?: RecordedWorkload; error?: unknown } = {};
  void recordWorkload({
    subjects: [subject],
    clients: 5,
    keys: ['a', 'b', 'c'],
    sizes: [10, 400],
    durationMs: 5_000,
    thinkMs: 10,
    conditions: true,
    seed,
    clock,
    signal: new AbortController().signal,
  }).then(
    (result) => (state.result = result),
    (error: unknown) => (state.error = error),
  );
  while (state.result === undefined && state.error === undefined) {
    clock.advance(1);
    await new Promise(setImmediate);
  }
  if (state.error !== undefined) throw state.error;
  return state.result!;
}

test('a sound store that fails now and then, before or after it did its work, has a linearizable history', async (t) => {
  const { operations, odd, errors } = await recorded(seedOf(t), (random) => ({
    trouble: () => {
      if (random.below(30) === 0) throw new WebdfsError('UNAVAILABLE', 'try again');
    },
  }));
  const report = checkHistory(operations);
  assert.ok(report.linearizable && operations.length > 500, JSON.stringify(report));
  assert.deepEqual(odd, []);
  assert.ok(errors['UNAVAILABLE']! > 10 && report.unknown > 5);
});

test('an acknowledged write that is lost is shown', async (t) => {
  const { operations } = await recorded(seedOf(t), (random) => ({ drops: () => random.below(20) === 0 }));
  assert.ok(checkHistory(operations).offence !== undefined);
});

test('bytes that nobody wrote are odd, wherever the bit is that turned over', async (t) => {
  const seed = seedOf(t);
  const { odd } = await recorded(seed, (random) => ({
    spoil: (bytes) => {
      if (random.below(20) > 0) return bytes;
      const spoilt = bytes.slice();
      spoilt[random.below(spoilt.length)]! ^= 1 << random.below(8);
      return spoilt;
    },
  }));
  assert.ok(odd.length > 0);
});

test('an error that no waiting mends ends the workload', async (t) => {
  const seed = seedOf(t);
  const denied = recorded(seed, () => ({
    trouble: () => {
      throw new WebdfsError('ACCESS_DENIED', 'no');
    },
  }));
  await assert.rejects(denied, { code: 'ACCESS_DENIED' });
});

test('a value tells who it is, and every other bytes do not', () => {
  assert.equal(valueName(valueBytes(17, 500)), 'v17');
  assert.equal(valueName(valueBytes(17, 5)), 'v17');
  assert.equal(valueName(valueBytes(17, 500).subarray(0, 499)), undefined);
  assert.equal(valueName(new Uint8Array(500)), undefined);
  const mixed = valueBytes(17, 500);
  mixed.set(valueBytes(18, 500).subarray(250), 250);
  assert.equal(valueName(mixed), undefined);
});
