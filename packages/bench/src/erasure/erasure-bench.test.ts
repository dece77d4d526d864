import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, ManualClock, messageOf, SeededRandom } from '@webdfs/base';
import { openKernel, ReedSolomon } from '@webdfs/erasure';
import { reportHtml } from '../report/html.ts';
import type { Cell } from './cell.ts';
import { benchErasure } from './erasure-bench.ts';
import { checksOf } from './gates.ts';
import { loadRonomon } from './ronomon.ts';
import { measureRates } from './sampling.ts';
import { makeStripe, proveStripe } from './stripe.ts';

test('a quick run measures every operation of every kernel and its report can be shown', async () => {
  const report = await benchErasure({
    shapes: [{ data: 2, parity: 2 }],
    shardSizes: [1024],
    seed: 7,
    sampling: { rounds: 1, sampleBytes: 1000, slowBytes: 1 },
    clock: new ManualClock(),
    command: 'webdfs bench erasure',
    onProgress: () => undefined,
  });
  const rows = report.sections[0]!.tables[0]!.rows;
  const names = rows.map(([name]) => name);
  for (const kernel of ['relaxed', 'simd', 'plain']) {
    for (const what of ['encode cauchy', 'encode doubling', 'encode cauchy16', 'delta of one shard', 'repair 2']) {
      assert.ok(names.includes(`${kernel}, ${what}`), `${kernel}, ${what}`);
    }
  }
  for (const [name, , rate] of rows) assert.ok(Number(rate) > 0, String(name));
  assert.deepEqual(report.checks, []);
  assert.equal(report.sections[1]!.tables[0]!.rows.length, 6);
  assert.match(reportHtml(report), /Erasure coding/);
});

test('gates take the figures of their shape at 64 KiB, and fail below their limits', () => {
  const rate = (name: string, gigabytes: number): Cell['rates'][number] => {
    const median = gigabytes * 1e9;
    return { name, median, least: median, most: median };
  };
  const cell = (shardBytes: number): Cell => ({
    shape: { data: 4, parity: 2 },
    shardBytes,
    rates: [
      rate('memcpy of the data', 10),
      rate('relaxed, encode cauchy', 5.9),
      rate('plain, encode cauchy', 0.7),
      rate('encode cauchy, copied in and out', 3),
      rate('relaxed, repair 1 by XOR', 5.5),
    ],
  });
  const checks = checksOf([cell(65_536), cell(4096)], 'relaxed');
  assert.deepEqual(
    checks.map(({ value, limit, pass }) => [Number(value.toFixed(2)), limit, pass]),
    [
      [5.9, 6, false],
      [8.43, 8, true],
      [3, 3, true],
      [5.5, 5, true],
    ],
  );
});

test('a median is of the rounds after the first, and slow contestants have fewer', async () => {
  const runs = { quick: 0, slow: 0 };
  const rates = await measureRates(
    [
      { name: 'quick', bytes: 1000, run: () => void runs.quick++ },
      { name: 'slow', bytes: 1_000_000, slow: true, run: async () => void runs.slow++ },
    ],
    { rounds: 9, sampleBytes: 4000, slowBytes: 1 },
  );
  assert.deepEqual(runs, { quick: 40, slow: 6 });
  for (const { least, median, most } of rates) assert.ok(least <= median && median <= most && least > 0);
});

test('a native module that is not installed is told by name', () => {
  assert.throws(
    () => loadRonomon('/nowhere'),
    (error) => codeOf(error) === 'NOT_FOUND' && messageOf(error).includes('/nowhere'),
  );
});

test('a codec that gives wrong bytes is not measured', () => {
  const kernel = openKernel({ name: 'plain' });
  const stripe = makeStripe({ data: 3, parity: 2 }, 256, new SeededRandom(1));
  const code = new ReedSolomon({ kernel, data: 3, parity: 2 });
  proveStripe('right', code, stripe);
  class Wrong extends ReedSolomon {
    override encode(data: readonly Uint8Array[], parity: readonly Uint8Array[]): void {
      super.encode(data, parity);
      parity[1]![100]! ^= 1;
    }
  }
  assert.throws(() => proveStripe('wrong', new Wrong({ kernel, data: 3, parity: 2 }), stripe), /wrong: the parity/);
});
