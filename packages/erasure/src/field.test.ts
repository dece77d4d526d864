import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedOf } from '@webdfs/base/testing';
import * as fc from 'fast-check';
import { type Field, GF16, GF8 } from './field.ts';

/** Multiplication by its definition: polynomials over GF(2), shifted and reduced bit by bit. */
function multiplyBitwise(field: Field, a: number, b: number): number {
  let product = 0;
  for (let bit = field.bits - 1; bit >= 0; bit--) {
    product <<= 1;
    if (product >> field.bits !== 0) product ^= field.polynomial;
    if ((b >> bit) & 1) product ^= a;
  }
  return product;
}

for (const field of [GF8, GF16]) {
  const name = `GF(2^${field.bits})`;
  const element = fc.nat({ max: 2 ** field.bits - 1 });
  const unit = fc.integer({ min: 1, max: 2 ** field.bits - 1 });

  test(`${name}: the axioms of a field hold`, (t) => {
    const { multiply, inverse } = field;
    fc.assert(
      fc.property(element, element, element, unit, (a, b, c, u) => {
        assert.equal(multiply(a, b), multiply(b, a));
        assert.equal(multiply(a, multiply(b, c)), multiply(multiply(a, b), c));
        assert.equal(multiply(a, b ^ c), multiply(a, b) ^ multiply(a, c));
        assert.equal(multiply(a, 1), a);
        assert.equal(multiply(a, 0), 0);
        assert.equal(multiply(u, inverse(u)), 1);
      }),
      { seed: seedOf(t), numRuns: 2000 },
    );
  });

  test(`${name}: products are those of polynomials`, (t) => {
    fc.assert(
      fc.property(element, element, (a, b) => assert.equal(field.multiply(a, b), multiplyBitwise(field, a, b))),
      { seed: seedOf(t), numRuns: 2000 },
    );
  });

  test(`${name}: the powers of 2 are all elements but 0, and logarithms undo them`, () => {
    const order = 2 ** field.bits - 1;
    const seen = new Set<number>();
    for (let exponent = 0; exponent < order; exponent++) {
      const power = field.power(exponent);
      assert.equal(field.logarithm(power), exponent);
      seen.add(power);
    }
    assert.equal(seen.size, order);
    assert.equal(seen.has(0), false);
    assert.equal(field.power(-1), field.inverse(2));
    assert.equal(field.power(order), 1);
  });

  test(`${name}: 0 has no inverse and no logarithm`, () => {
    assert.throws(() => field.inverse(0), RangeError);
    assert.throws(() => field.logarithm(0), RangeError);
  });
}

test('GF(2^8): all products, against the definition', () => {
  for (let a = 0; a < 256; a++) {
    for (let b = a; b < 256; b++) assert.equal(GF8.multiply(a, b), multiplyBitwise(GF8, a, b));
  }
});

test('GF(2^8): single values published for the polynomial 0x11d', () => {
  assert.equal(GF8.multiply(2, 0x80), 0x1d);
  assert.equal(GF8.multiply(0x53, 0xca), 0x8f);
  assert.equal(GF8.multiply(0xff, 0xff), 0xe2);
  assert.equal(GF8.multiply(3, 7), 9);
  assert.deepEqual([2, 3, 0x53].map(GF8.inverse), [0x8e, 0xf4, 0x8c]);
});

test('GF(2^8): logarithms as JavaReedSolomon and the Go and Rust codecs after it publish them', () => {
  const published = [
    0, 1, 25, 2, 50, 26, 198, 3, 223, 51, 238, 27, 104, 199, 75, 4, 100, 224, 14, 52, 141, 239, 129, 28,
  ];
  assert.deepEqual(
    published.map((_, i) => GF8.logarithm(i + 1)),
    published,
  );
});

test('GF(2^8): generator polynomials of QR codes, exponents as ISO/IEC 18004 annex A lists them', () => {
  const published: Readonly<Record<number, readonly number[]>> = {
    7: [0, 87, 229, 146, 149, 238, 102, 21],
    10: [0, 251, 67, 46, 61, 118, 70, 64, 94, 32, 45],
    13: [0, 74, 152, 176, 100, 86, 100, 106, 104, 130, 218, 206, 140, 78],
  };
  for (const [degree, exponents] of Object.entries(published)) {
    let polynomial = [1];
    for (let root = 0; root < Number(degree); root++) {
      const shifted = [...polynomial, 0];
      polynomial = shifted.map((entry, i) => entry ^ (i === 0 ? 0 : GF8.multiply(polynomial[i - 1]!, GF8.power(root))));
    }
    assert.deepEqual(polynomial.map(GF8.logarithm), exponents);
  }
});
