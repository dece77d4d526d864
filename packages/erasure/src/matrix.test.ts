import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { multiplySlowly } from './conformance.ts';
import { type Field, GF16, GF8 } from './field.ts';
import { invertMatrix, multiplyMatrices } from './matrix.ts';

function identity(size: number): number[][] {
  return Array.from({ length: size }, (_, i) => Array.from({ length: size }, (_, j) => (i === j ? 1 : 0)));
}

function randomMatrix(field: Field, size: number, random: SeededRandom): number[][] {
  const most = random.below(2) === 0 ? 2 : 2 ** field.bits;
  return Array.from({ length: size }, () => Array.from({ length: size }, () => random.below(most)));
}

for (const field of [GF8, GF16]) {
  test(`GF(2^${field.bits}): an inverse is one on both sides, zeros on the diagonal or not`, (t) => {
    const random = new SeededRandom(seedOf(t));
    let inverted = 0;
    for (let round = 0; round < 400; round++) {
      const matrix = randomMatrix(field, 1 + random.below(8), random);
      const inverse = invertMatrix(field, matrix);
      if (inverse === undefined) continue;
      inverted++;
      assert.deepEqual(multiplyMatrices(field, matrix, inverse), identity(matrix.length));
      assert.deepEqual(multiplyMatrices(field, inverse, matrix), identity(matrix.length));
    }
    assert.ok(inverted > 100);
  });

  test(`GF(2^${field.bits}): a matrix whose rows depend on each other has no inverse`, (t) => {
    const random = new SeededRandom(seedOf(t));
    for (let round = 0; round < 200; round++) {
      const matrix = randomMatrix(field, 2 + random.below(7), random);
      const [factor, ...others] = matrix.slice(1).map(() => random.below(2 ** field.bits));
      matrix[0] = matrix[0]!.map((_, column) =>
        matrix
          .slice(1)
          .reduce((sum, row, i) => sum ^ field.multiply(row[column]!, i === 0 ? factor! : others[i - 1]!), 0),
      );
      assert.equal(invertMatrix(field, matrix), undefined);
    }
  });
}

test('a Vandermonde code of other makers, rebuilt from our parts, gives the bytes of their published test', () => {
  // JavaReedSolomon and its descendants: rows r^0, r^1 …, made systematic by the inverse of the top
  const power = (base: number, exponent: number): number =>
    exponent === 0 ? 1 : base === 0 ? 0 : GF8.power(GF8.logarithm(base) * exponent);
  const vandermonde = Array.from({ length: 10 }, (_, r) => Array.from({ length: 5 }, (_, c) => power(r, c)));
  const matrix = multiplyMatrices(GF8, vandermonde, invertMatrix(GF8, vandermonde.slice(0, 5))!);
  assert.deepEqual(matrix.slice(0, 5), identity(5));
  const data = [
    [0, 1],
    [4, 5],
    [2, 3],
    [6, 7],
    [8, 9],
  ].map((bytes) => Uint8Array.from(bytes));
  assert.deepEqual(
    multiplySlowly(GF8, matrix.slice(5), data).map((block) => [...block]),
    [
      [12, 13],
      [10, 11],
      [14, 15],
      [90, 91],
      [94, 95],
    ],
  );
});
