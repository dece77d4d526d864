import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareBytes, equalBytes, type Random, toHex, utf8 } from '@webdfs/base';
import { SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import type { Row, RowChange, RowIndex, RowIndexHouse, RowRange } from './row-index.ts';

/** A house under test, and a folder on its disk that holds no index yet. */
export interface HouseUnderTest extends AsyncDisposable {
  readonly house: RowIndexHouse;
  readonly folder: string;
}

type Open = () => Promise<HouseUnderTest>;

/** The rows as a plain map: what every house is compared with. */
export class ModelIndex {
  readonly #rows = new Map<string, Row>();

  apply(changes: readonly RowChange[]): void {
    for (const { key, value } of changes) {
      if (value === undefined) this.#rows.delete(toHex(key));
      else this.#rows.set(toHex(key), { key, value });
    }
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.get(toHex(key))?.value;
  }

  range({ gte, gt, lt, limit, reverse }: RowRange): Row[] {
    const rows = [...this.#rows.values()]
      .filter(({ key }) => gte === undefined || compareBytes(key, gte) >= 0)
      .filter(({ key }) => gt === undefined || compareBytes(key, gt) > 0)
      .filter(({ key }) => lt === undefined || compareBytes(key, lt) < 0)
      .toSorted((a, b) => compareBytes(a.key, b.key));
    return (reverse === true ? rows.toReversed() : rows).slice(0, limit);
  }
}

/** A short key: few enough that they meet, with zeros and 255s in it. */
export function someKey(random: SeededRandom): Uint8Array {
  return Uint8Array.from({ length: 1 + random.below(3) }, () => [0, 1, 114, 255][random.below(4)]!);
}

/** One to eight changes, a third of them removals; some keys twice. */
export function someChanges(random: SeededRandom): RowChange[] {
  return Array.from({ length: 1 + random.below(8) }, () =>
    random.below(3) === 0
      ? { key: someKey(random) }
      : { key: someKey(random), value: random.bytes(random.below(10) === 0 ? 9000 : random.below(40)) },
  );
}

function someRange(random: SeededRandom): RowRange {
  return {
    ...(random.below(2) === 0 ? { gte: someKey(random) } : {}),
    ...(random.below(3) === 0 ? { gt: someKey(random) } : {}),
    ...(random.below(2) === 0 ? { lt: someKey(random) } : {}),
    limit: 1 + random.below(30),
    reverse: random.below(2) === 0,
  };
}

const ALL: RowRange = { limit: 100_000 };

export function sameRows(actual: readonly Row[], expected: readonly Row[]): boolean {
  return (
    actual.length === expected.length &&
    actual.every(({ key, value }, i) => equalBytes(key, expected[i]!.key) && equalBytes(value, expected[i]!.value))
  );
}

async function compareWith(model: ModelIndex, index: RowIndex, random: SeededRandom): Promise<void> {
  for (let i = 0; i < 10; i++) {
    const key = someKey(random);
    const [actual, expected] = [index.get(key), model.get(key)];
    assert.equal(actual === undefined, expected === undefined);
    if (actual !== undefined && expected !== undefined) assert.ok(equalBytes(actual, expected));
    const range = someRange(random);
    assert.ok(sameRows(await index.range(range), model.range(range)), JSON.stringify(range));
  }
}

function testRows(name: string, open: Open): void {
  test(`${name}: rows, points and ranges are those of a map, also after it was closed and opened`, async (t) => {
    const random = new SeededRandom(seedOf(t));
    await using under = await open();
    const model = new ModelIndex();
    for (let life = 0; life < 4; life++) {
      await using index = await under.house.open(`${under.folder}/index`);
      await compareWith(model, index, random);
      for (let i = 0; i < 12; i++) {
        const changes = someChanges(random);
        await index.batch(changes, { sync: random.below(4) === 0 });
        model.apply(changes);
      }
      await compareWith(model, index, random);
    }
  });

  test(`${name}: batches that nobody waits for keep their order`, async () => {
    await using under = await open();
    await using index = await under.house.open(`${under.folder}/index`);
    const key = utf8('k');
    const batches = Array.from({ length: 200 }, (_, i) => index.batch([{ key, value: Uint8Array.of(i) }]));
    await Promise.all(batches);
    assert.deepEqual([...(index.get(key) ?? [])], [199]);
  });

  test(`${name}: more rows than one step of an iterator come back whole and in order`, async () => {
    await using under = await open();
    await using index = await under.house.open(`${under.folder}/index`);
    const keyOf = (i: number): Uint8Array => utf8(String(i).padStart(5, '0'));
    await index.batch(Array.from({ length: 2500 }, (_, i) => ({ key: keyOf(i), value: utf8(`value ${i}`) })));
    const rows = await index.range(ALL);
    assert.equal(rows.length, 2500);
    rows.forEach(({ key, value }, i) => {
      assert.ok(equalBytes(key, keyOf(i)));
      assert.ok(equalBytes(value, utf8(`value ${i}`)));
    });
    assert.equal((await index.range({ gt: keyOf(10), limit: 1200 })).length, 1200);
  });

  test(`${name}: what was handed out is the caller's own`, async () => {
    await using under = await open();
    await using index = await under.house.open(`${under.folder}/index`);
    await index.batch([{ key: utf8('a'), value: utf8('one') }]);
    index.get(utf8('a'))?.fill(0);
    for (const { key, value } of await index.range(ALL)) {
      key.fill(0);
      value.fill(0);
    }
    assert.ok(equalBytes(index.get(utf8('a')) ?? utf8(''), utf8('one')));
  });
}

function testHouse(name: string, open: Open): void {
  test(`${name}: a rename moves all rows, a removal forgets them`, async () => {
    await using under = await open();
    const { house, folder } = under;
    {
      await using index = await house.open(`${folder}/index.new`);
      await index.batch([{ key: utf8('a'), value: utf8('moved') }], { sync: true });
    }
    await house.remove(`${folder}/index`);
    await house.rename(`${folder}/index.new`, `${folder}/index`);
    {
      await using index = await house.open(`${folder}/index`);
      assert.ok(equalBytes(index.get(utf8('a')) ?? utf8(''), utf8('moved')));
    }
    await house.remove(`${folder}/index`);
    await using index = await house.open(`${folder}/index`);
    assert.equal(index.get(utf8('a')), undefined);
  });
}

/** What every house of `RowIndex` promises while nothing crashes; how each crashes is tested beside it. */
export function testRowIndex(name: string, open: Open): void {
  testRows(name, open);
  testHouse(name, open);
}

/** Numbered batches for crash tests: after any crash the rows must be those of a prefix. */
export function numberedBatch(random: Random, number: number): RowChange[] {
  const last = { key: utf8('last'), value: utf8(String(number)) };
  const own = { key: utf8(`n${String(number).padStart(6, '0')}`), value: random.bytes(50) };
  const old = { key: utf8(`n${String(number - 100).padStart(6, '0')}`) };
  return [last, own, old];
}

/** The number of the last batch in an index, if its rows are exactly those that batches 1..n leave. */
export async function lastBatchOf(index: RowIndex): Promise<number> {
  const value = index.get(utf8('last'));
  const rows = await index.range(ALL);
  if (value === undefined) {
    assert.equal(rows.length, 0);
    return 0;
  }
  const last = Number(new TextDecoder().decode(value));
  const expected = Array.from({ length: Math.min(last, 100) }, (_, i) => last - i).toReversed();
  const names = rows.map(({ key }) => new TextDecoder().decode(key));
  assert.deepEqual(names, ['last', ...expected.map((number) => `n${String(number).padStart(6, '0')}`)]);
  return last;
}
