import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import fc from 'fast-check';
import { codeOf, concat } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { packEntries, packHeader, packWrites, unpackLog, unpackSnapshot } from './map-log.ts';
import type { Write } from './map-store.ts';

const PAGE = new URL('../../../docs/formats/map-log.md', import.meta.url);

/** The bytes of the page's dump. */
async function dumped(): Promise<Uint8Array> {
  const rows = (await readFile(PAGE, 'utf8')).matchAll(/^[0-9a-f]{8} {2}((?:[0-9a-f]{2} ?)+) +\|/gm);
  return Uint8Array.from(
    [...rows].flatMap(([, row]) =>
      row!
        .trim()
        .split(' ')
        .map((byte) => Number.parseInt(byte, 16)),
    ),
  );
}

test('the dump in the format page is the log that the page says it is', async () => {
  const bytes = await dumped();
  assert.equal(bytes.length, 0x85);
  const put: Write = { type: 'put', key: 'down/2', value: '{"reason":"lost","session":0}' };
  const deletion: Write = { type: 'delete', key: 'live/2' };
  assert.deepEqual(unpackLog(bytes, 'page'), {
    base: 41,
    transactions: [
      { revision: 42, writes: [put] },
      { revision: 43, writes: [deletion] },
    ],
    torn: 0,
  });
  assert.deepEqual(concat([packHeader('log', 41), packWrites(42, [put]), packWrites(43, [deletion])]), bytes);
});

test('a transaction comes back as it was stored, whatever its texts', (t) => {
  const write: fc.Arbitrary<Write> = fc.oneof(
    fc.record({ type: fc.constant('put' as const), key: fc.string(), value: fc.string({ unit: 'binary' }) }),
    fc.record({
      type: fc.constant('put' as const),
      key: fc.string(),
      value: fc.string(),
      lease: fc.nat(),
    }),
    fc.record({ type: fc.constant('delete' as const), key: fc.string() }),
  );
  fc.assert(
    fc.property(fc.array(fc.array(write, { minLength: 1, maxLength: 4 }), { maxLength: 5 }), (transactions) => {
      const records = transactions.map((writes, i) => packWrites(i + 1, writes));
      const read = unpackLog(concat([packHeader('log', 0), ...records]), 'test');
      assert.deepEqual(
        read.transactions.map(({ writes }) => writes),
        transactions.map((writes) => writes.map((each) => ({ ...each }))),
      );
    }),
    { seed: seedOf(t), numRuns: 200 },
  );
});

test('a snapshot comes back as it was stored', () => {
  const entries = [
    { key: 'map', value: '{}', createRevision: 3, modRevision: 9 },
    { key: 'live/1', value: 'ü', createRevision: 4, modRevision: 4, lease: 77 },
  ];
  const bytes = concat([packHeader('snapshot', 9), packEntries(9, entries)]);
  assert.deepEqual(unpackSnapshot(bytes, 'test'), { revision: 9, entries });
  assert.throws(() => unpackSnapshot(bytes.subarray(0, -1), 'test'), { code: 'CORRUPT' });
  assert.throws(() => unpackLog(bytes, 'test'), { code: 'CORRUPT' });
});

test('a flipped bit anywhere is found, or takes no more than the last record', async (t) => {
  const bytes = await dumped();
  const intact = unpackLog(bytes, 'page').transactions;
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(7), (offset, bit) => {
      const damaged = bytes.slice();
      damaged[offset]! ^= 1 << bit;
      try {
        const { transactions, torn } = unpackLog(damaged, 'page');
        assert.ok(offset >= 0x60, `byte ${offset} was believed`);
        assert.deepEqual(transactions, intact.slice(0, 1));
        assert.equal(torn, bytes.length - 0x60);
      } catch (error) {
        assert.ok(offset < 0x60);
        assert.equal(codeOf(error), 'CORRUPT');
      }
    }),
    { seed: seedOf(t), numRuns: 500 },
  );
});

test('whatever bytes are no log are refused by name', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      for (const read of [() => unpackLog(bytes, 'x'), () => unpackSnapshot(bytes, 'x')]) {
        try {
          read();
          assert.fail('random bytes were believed');
        } catch (error) {
          assert.equal(codeOf(error), 'CORRUPT');
        }
      }
    }),
    { seed: seedOf(t), numRuns: 200 },
  );
});

test('a later version is not guessed at', async () => {
  const { crc32c } = await import('@webdfs/base');
  const bytes = packHeader('log', 1);
  const view = new DataView(bytes.buffer);
  view.setUint32(8, 2, true);
  view.setUint32(20, crc32c(bytes.subarray(0, 20)), true);
  assert.throws(() => unpackLog(bytes, 'x'), { code: 'NEWER_FORMAT' });
});
