import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, equalBytes, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { type Field, GF16, GF8 } from './field.ts';
import { type Kernel, MAX_COLUMNS, MAX_ROWS } from './kernel.ts';
import type { Matrix } from './matrix.ts';

/** The promise of every kernel, as tests: it gives the bytes of the definition, and touches no others. */

/** A product by its definition, symbol by symbol. For tests. */
export function multiplySlowly(field: Field, matrix: Matrix, sources: readonly Uint8Array[]): Uint8Array[] {
  const { symbolBytes } = field;
  const symbolAt = (block: Uint8Array, at: number): number =>
    symbolBytes === 1 ? (block[at] ?? 0) : (block[at] ?? 0) | ((block[at + 1] ?? 0) << 8);
  const longest = Math.max(0, ...sources.map((source) => source.length));
  const bytes = Math.ceil(longest / symbolBytes) * symbolBytes;
  return matrix.map((row) => {
    const target = new Uint8Array(bytes);
    for (let at = 0; at < bytes; at += symbolBytes) {
      const sum = row.reduce((sum, factor, i) => sum ^ field.multiply(factor, symbolAt(sources[i]!, at)), 0);
      target[at] = sum;
      if (symbolBytes === 2) target[at + 1] = sum >> 8;
    }
    return target;
  });
}

/** Where a block of a test lies: in the kernel's memory at some offset from an aligned address, or anywhere else. */
type Place = (bytes: number) => Uint8Array;

function placesOf(kernel: Kernel, random: SeededRandom): { place: Place; free: () => void } {
  const taken: Uint8Array[] = [];
  return {
    place(bytes) {
      const shift = random.below(67);
      if (random.below(3) === 0) return new Uint8Array(bytes + shift).subarray(shift);
      const block = kernel.memory.allocate(bytes + shift);
      taken.push(block);
      return block.subarray(shift);
    },
    free() {
      for (const block of taken) kernel.memory.free(block);
    },
  };
}

const LENGTHS = [
  0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 95, 97, 127, 128, 129, 191, 300, 511, 1025, 5000,
];
const AROUND = 40;

interface Case {
  readonly field: Field;
  readonly matrix: Matrix;
  readonly bytes: number;
}

/** Matrices of all shapes; rows and columns of ones, powers of two, and zeros among them. */
function caseOf(field: Field, random: SeededRandom): Case {
  const columns = 1 + random.below(14);
  const rows = 1 + random.below(8);
  const most = 2 ** field.bits;
  const ways = [
    () => 1,
    (column: number) => field.power(column),
    () => random.below(most),
    () => random.below(most),
    () => random.below(2),
  ];
  const rowOf = (way: (column: number) => number): number[] =>
    Array.from({ length: columns }, (_, column) => way(column));
  const matrix = Array.from({ length: rows }, (_, row) =>
    rowOf(row < 2 && random.below(2) === 0 ? ways[row]! : ways[random.below(ways.length)]!),
  );
  if (random.below(2) === 0) for (const row of matrix) row[0] = 1;
  const bytes = LENGTHS[random.below(LENGTHS.length)]!;
  return { field, matrix, bytes: bytes - (bytes % field.symbolBytes) };
}

function runCase(kernel: Kernel, { field, matrix, bytes }: Case, random: SeededRandom): void {
  const { place, free } = placesOf(kernel, random);
  const sources = matrix[0]!.map(() => {
    const source = place(bytes);
    source.set(random.bytes(bytes));
    return source;
  });
  const columns = sources.map((_, column) => column).filter(() => random.below(4) !== 0);
  const listed = random.below(2) === 0 || columns.length === 0 ? sources.map((_, column) => column) : columns;
  const from = random.below(3) === 0 ? random.below(bytes + 1) : 0;
  const range = { from: from - (from % field.symbolBytes), to: bytes };
  const accumulate = random.below(2) === 0;
  // targets stand within blocks of noise: what is around them must stay
  const fields = matrix.map(() => {
    const block = place(bytes + 2 * AROUND);
    block.set(random.bytes(block.length));
    return { block, before: block.slice(), target: block.subarray(AROUND, AROUND + bytes) };
  });
  const zeros = new Uint8Array(bytes);
  const used = sources.map((source, column) => (listed.includes(column) ? source : zeros));
  const products = multiplySlowly(field, matrix, used);
  const compiled = kernel.compile(field, matrix);
  compiled.multiply({ columns: listed, sources, targets: fields.map(({ target }) => target), ...range, accumulate });
  for (const [row, { block, before }] of fields.entries()) {
    const expected = before.slice();
    for (let at = range.from; at < range.to; at++) {
      expected[AROUND + at] = products[row]![at]! ^ (accumulate ? before[AROUND + at]! : 0);
    }
    assert.deepEqual(
      block,
      expected,
      `row ${row} of ${JSON.stringify({ bits: field.bits, matrix, listed, ...range })}`,
    );
  }
  free();
}

/** @param rounds random products per field; `npm test` takes a few hundred */
export function testKernel(house: string, open: () => Kernel, rounds = 300): void {
  for (const field of [GF8, GF16]) {
    test(`${house}: products in GF(2^${field.bits}) are those of the definition, and bytes around them stay`, (t) => {
      const random = new SeededRandom(seedOf(t));
      const kernel = open();
      for (let round = 0; round < rounds; round++) runCase(kernel, caseOf(field, random), random);
    });
  }

  for (const field of [GF8, GF16]) {
    test(`${house}: blocks longer than a tile in GF(2^${field.bits}), within the memory and outside`, (t) => {
      const random = new SeededRandom(seedOf(t));
      const kernel = open();
      const matrix = [
        [1, 1, 1],
        [1, 2, 4],
        [7, 9, 200],
      ];
      const bytes = 131_070;
      const blocks = [0, 1, 2].map(() => random.bytes(bytes));
      const expected = multiplySlowly(field, matrix, blocks);
      for (const place of [
        (bytes: number) => kernel.memory.allocate(bytes),
        (bytes: number) => new Uint8Array(bytes),
      ]) {
        const sources = blocks.map(() => place(bytes));
        for (const [i, source] of sources.entries()) source.set(blocks[i]!);
        const targets = blocks.map(() => place(bytes));
        const product = { columns: [0, 1, 2], sources, targets, from: 0, to: bytes, accumulate: false };
        kernel.compile(field, matrix).multiply(product);
        assert.ok(targets.every((target, row) => equalBytes(target, expected[row]!)));
      }
    });
  }

  test(`${house}: more matrices than there is room for tables still give right products, in any order`, (t) => {
    const random = new SeededRandom(seedOf(t));
    const kernel = open();
    const source = random.bytes(33);
    const compiled = Array.from({ length: 60 }, () => {
      const matrix = Array.from({ length: 8 }, () => Array.from({ length: 32 }, () => random.below(65_536)));
      return { matrix, product: kernel.compile(GF16, matrix) };
    });
    for (let round = 0; round < 200; round++) {
      const { matrix, product } = compiled[random.below(compiled.length)]!;
      const targets = matrix.map(() => new Uint8Array(32));
      product.multiply({ columns: [5], sources: [...Array(5), source], targets, from: 0, to: 32, accumulate: false });
      const column = matrix.map((row) => [row[5]!]);
      assert.deepEqual(targets, multiplySlowly(GF16, column, [source.subarray(0, 32)]));
    }
  });

  test(`${house}: a matrix that is empty, ragged or too large is refused, the largest is not`, () => {
    const kernel = open();
    const ones = (rows: number, columns: number): number[][] =>
      Array.from({ length: rows }, () => Array.from({ length: columns }, () => 1));
    kernel.compile(GF8, ones(MAX_ROWS, MAX_COLUMNS));
    for (const matrix of [[], [[]], ones(MAX_ROWS + 1, 1), ones(1, MAX_COLUMNS + 1), [...ones(1, 2), ...ones(1, 3)]]) {
      assert.throws(
        () => kernel.compile(GF8, matrix),
        (error) => codeOf(error) === 'INVALID',
      );
    }
  });

  test(`${house}: one bit among zeros is seen wherever it is, and none outside`, () => {
    const kernel = open();
    for (const block of [kernel.memory.allocate(400), new Uint8Array(400)]) {
      for (let length = 0; length < 200; length += 7) {
        const view = block.subarray(3, 3 + length);
        block.fill(255);
        view.fill(0);
        assert.equal(kernel.isZero(view), true);
        for (let at = 0; at < length; at++) {
          view[at] = 1 << (at & 7);
          assert.equal(kernel.isZero(view), false);
          view[at] = 0;
        }
      }
    }
  });
}
