import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, crc32c } from '@webdfs/base';
import { type Code, type CodeName, codeNameOf, CODES, MAX_DATA, MAX_PARITY, parityMatrix } from './code.ts';
import { type Field, GF16, GF8 } from './field.ts';
import type { Matrix } from './matrix.ts';

/**
 * Counts the sets of `parity` shards, out of all, that can be lost together and found again: those whose columns of `[P I]` are
 * independent. Depth first, each choice eliminated from the columns still to come, so that a set costs hardly more than a product.
 */
function repairableLosses(field: Field, parity: Matrix): number {
  const { multiply, inverse } = field;
  const total = parity[0]!.length + parity.length;
  /** The columns still to choose from, by height: column after column, each so many entries. */
  const columns = Array.from({ length: parity.length + 1 }, (_, height) => new Uint16Array(total * height));
  parity.forEach((row, p) => {
    row.forEach((entry, d) => (columns[parity.length]![d * parity.length + p] = entry));
    columns[parity.length]![(row.length + p) * parity.length + p] = 1;
  });
  const alike = new Uint32Array(2 ** field.bits + 1);

  /** Of two rows: columns depend on each other exactly if their entries have one ratio, so that pairs are counted, not tried. */
  function countPairs(width: number): number {
    const rest = columns[2]!;
    let [found, others] = [0, 0];
    const ratioOf = (i: number): number =>
      rest[2 * i + 1] === 0 ? 2 ** field.bits : multiply(rest[2 * i]!, inverse(rest[2 * i + 1]!));
    const isZero = (i: number): boolean => rest[2 * i] === 0 && rest[2 * i + 1] === 0;
    for (let i = 0; i < width; i++) if (!isZero(i)) found += others++ - alike[ratioOf(i)]!++;
    for (let i = 0; i < width; i++) if (!isZero(i)) alike[ratioOf(i)] = 0;
    return found;
  }

  function count(height: number, width: number): number {
    if (height === 2) return countPairs(width);
    const [rest, reduced] = [columns[height]!, columns[height - 1]!];
    let found = 0;
    for (let chosen = 0; chosen <= width - height; chosen++) {
      const first = chosen * height;
      let pivot = 0;
      while (pivot < height && rest[first + pivot] === 0) pivot++;
      if (pivot === height) continue;
      const scale = inverse(rest[first + pivot]!);
      for (let row = 0, to = 0; row < height; row++) {
        if (row === pivot) continue;
        const factor = multiply(rest[first + row]!, scale);
        for (let i = chosen + 1, at = to; i < width; i++, at += height - 1) {
          reduced[at] = rest[i * height + row]! ^ multiply(factor, rest[i * height + pivot]!);
        }
        to++;
      }
      found += count(height - 1, width - chosen - 1);
    }
    return found;
  }
  return count(parity.length, total);
}

function choose(n: number, k: number): number {
  let ways = 1;
  for (let i = 1; i <= k; i++) ways = (ways * (n - k + i)) / i;
  return Math.round(ways);
}

const names = Object.keys(CODES) as CodeName[];
const log = (code: Code, matrix: Matrix): number[][] => matrix.map((row) => row.map(code.field.logarithm));

test('ids are distinct: stored data names its code by them', () => {
  assert.deepEqual(
    names.map((name) => CODES[name].id),
    [1, 2, 3, 4],
  );
});

test('an id leads back to its code, and one from a newer release is told apart', () => {
  for (const name of names) assert.equal(codeNameOf(CODES[name].id), name);
  assert.throws(
    () => codeNameOf(99),
    (error) => codeOf(error) === 'NEWER_FORMAT',
  );
});

test('what an id means never changes: every coefficient, as it was when the code was first shipped', () => {
  const digests = names.map((name) => {
    const { maxData, maxParity } = CODES[name];
    return crc32c(
      Uint8Array.from(
        parityMatrix(CODES[name], maxData, maxParity)
          .flat()
          .flatMap((c) => [c & 255, c >> 8]),
      ),
    );
  });
  assert.deepEqual(digests, [436_203_468, 745_986_066, 4_100_461_474, 224_093_243]);
});

for (const name of names) {
  const code: Code = CODES[name];
  const { maxData, maxParity } = code;

  test(`${name}: the first row and the first column are ones`, () => {
    for (let d = 0; d < maxData; d++) assert.equal(code.coefficient(0, d), 1);
    for (let p = 0; p < maxParity; p++) assert.equal(code.coefficient(p, 0), 1);
  });

  test(`${name}: a smaller code is the corner of a larger one, so that it can grow`, () => {
    const largest = parityMatrix(code, maxData, maxParity);
    for (let data = 1; data <= maxData; data++) {
      for (let parity = 1; parity <= maxParity; parity++) {
        const corner = largest.slice(0, parity).map((row) => row.slice(0, data));
        assert.deepEqual(parityMatrix(code, data, parity), corner);
      }
    }
  });
}

// A set of k lost shards is repairable exactly if a square submatrix of P (its lost data, its surviving parity) is invertible, so
// to repair all sets of the largest code is to have no singular submatrix of any size, and to prove every smaller code too.
for (const [name, data, parity] of [
  ['cauchy', MAX_DATA, MAX_PARITY],
  ['doubling', MAX_DATA, MAX_PARITY],
  ['cauchy16', MAX_DATA, 6],
  ['thesis', 4, 3],
] as const) {
  test(`${name}: every loss of ${parity} of ${data} + ${parity} shards can be repaired`, () => {
    const matrix = parityMatrix(CODES[name], data, parity);
    assert.equal(repairableLosses(CODES[name].field, matrix), choose(data + parity, parity));
  });
}

test('the count of repairable losses falls when a submatrix is singular', () => {
  const powers = Array.from({ length: 4 }, (_, p) => Array.from({ length: 22 }, (_, d) => GF8.power(p * d)));
  assert.equal(repairableLosses(GF8, powers), choose(26, 4) - 2);
  assert.equal(
    repairableLosses(
      GF8,
      powers.map((row) => row.slice(0, 21)),
    ),
    choose(25, 4),
  );
});

test('cauchy: the matrix of four data and three parity shards, and its logarithms', () => {
  const matrix = parityMatrix(CODES.cauchy, 4, 3);
  assert.deepEqual(matrix, [
    [0x01, 0x01, 0x01, 0x01],
    [0x01, 0x59, 0x05, 0xe6],
    [0x01, 0x05, 0x7c, 0xbe],
  ]);
  assert.deepEqual(log(CODES.cauchy, matrix), [
    [0, 0, 0, 0],
    [0, 0xd2, 0x32, 0xa0],
    [0, 0x32, 0x73, 0x41],
  ]);
});

test('doubling: the second row is the powers of 2, as the Q of RAID-6', () => {
  const [, second] = parityMatrix(CODES.doubling, MAX_DATA, 2);
  assert.deepEqual(
    second,
    Array.from({ length: MAX_DATA }, (_, d) => GF8.power(d)),
  );
});

test('thesis: logarithms of the matrix, as the prototype of 2004 kept them', () => {
  assert.deepEqual(log(CODES.thesis, parityMatrix(CODES.thesis, 4, 3)), [
    [0, 0, 0, 0],
    [0, 0x5ab5, 0xe267, 0x784d],
    [0, 0xe267, 0x0dce, 0x2b66],
  ]);
});

test('thesis: it is a scaled Cauchy matrix too, of x = ∞, 0, 57be and y = 1, 91a0, 79cc, d3de', () => {
  const y = [1, 0x91a0, 0x79cc, 0xd3de];
  const row = (x: number): number[] => y.map((value) => GF16.multiply(x ^ 1, GF16.inverse(x ^ value)));
  assert.deepEqual(parityMatrix(CODES.thesis, 4, 3), [[1, 1, 1, 1], row(0), row(0x57be)]);
});
