import { WebdfsError } from '@webdfs/base/errors';
import { BlockMemory } from './block-memory.ts';
import type { Field } from './field.ts';
import { checkMatrix, type CompiledMatrix, type Kernel, type Product, type SharedKernel } from './kernel.ts';
import type { Matrix } from './matrix.ts';

/** Symbols that are summed at once; the sums stay in the fastest cache. */
const TILE = 2048;

/** Bits of a packed sum: so many rows of a field fit into one 32-bit word. */
const WORD_BITS = 32;

/**
 * Some rows of a matrix as tables: for each column one (in GF(2^16) two, of its low and its high bytes) of 256 words, each with the
 * products of all these rows side by side, so that one look-up serves them all.
 */
interface Pack {
  readonly firstRow: number;
  readonly rows: number;
  readonly tables: readonly Int32Array[];
}

function packsOf(field: Field, matrix: Matrix): Pack[] {
  const perWord = WORD_BITS / field.bits;
  const packs: Pack[] = [];
  for (let firstRow = 0; firstRow < matrix.length; firstRow += perWord) {
    const rows = matrix.slice(firstRow, firstRow + perWord);
    const tables = Array.from({ length: rows[0]!.length * field.symbolBytes }, (_, lane) => {
      const column = Math.floor(lane / field.symbolBytes);
      const shift = 8 * (lane % field.symbolBytes);
      return Int32Array.from({ length: 256 }, (_, byte) =>
        rows.reduce((word, row, r) => word | (field.multiply(row[column]!, byte << shift) << (r * field.bits)), 0),
      );
    });
    packs.push({ firstRow, rows: rows.length, tables });
  }
  return packs;
}

class PlainMatrix implements CompiledMatrix {
  readonly #field: Field;
  readonly #packs: readonly Pack[];
  readonly #onlyOnes: boolean;
  readonly #sums = new Int32Array(TILE);

  constructor(field: Field, matrix: Matrix) {
    this.#field = field;
    this.#packs = packsOf(field, matrix);
    this.#onlyOnes = matrix.length === 1 && matrix[0]!.every((entry) => entry === 1);
  }

  multiply(product: Product): void {
    if (this.#onlyOnes) {
      addBlocks(product);
      return;
    }
    const step = this.#field.symbolBytes;
    for (let from = product.from; from < product.to; from += TILE * step) {
      const to = Math.min(product.to, from + TILE * step);
      for (const pack of this.#packs) {
        if (step === 1) sumBytes(this.#sums, pack, product, from, to);
        else sumWords(this.#sums, pack, product, from, to);
        this.#unpack(product, pack, from, to);
      }
    }
  }

  #unpack({ targets, accumulate }: Product, { firstRow, rows }: Pack, from: number, to: number): void {
    const step = this.#field.symbolBytes;
    const unpack = accumulate ? addByte : storeByte;
    for (let row = 0; row < rows; row++) {
      for (let byte = 0; byte < step; byte++) {
        unpack(this.#sums, 8 * (row * step + byte), targets[firstRow + row]!, from + byte, to, step);
      }
    }
  }
}

/** A column as the loops see it: its block, and the table to look its bytes up in. */
interface Lane {
  readonly block: Uint8Array;
  readonly table: Int32Array;
}

/** Sums the look-ups of all columns, four at a time, so that a sum is read and written a quarter as often. */
function sumBytes(sums: Int32Array, { tables }: Pack, { columns, sources }: Product, from: number, to: number): void {
  const lane = (i: number): Lane => ({ block: sources[columns[i]!]!, table: tables[columns[i]!]! });
  if (columns.length < 4) sums.fill(0, 0, to - from);
  let i = 0;
  for (; i + 4 <= columns.length; i += 4) {
    const lanes = [lane(i), lane(i + 1), lane(i + 2), lane(i + 3)] as const;
    if (i === 0) sumFour(sums, lanes, from, to);
    else addFour(sums, lanes, from, to);
  }
  for (; i < columns.length; i++) addOne(sums, lane(i), from, to);
}

// The loops are functions of their own: they are called often, so that engines compile them whole and keep them.

function sumFour(sums: Int32Array, lanes: readonly [Lane, Lane, Lane, Lane], from: number, to: number): void {
  const [{ block: a, table: A }, { block: b, table: B }, { block: c, table: C }, { block: d, table: D }] = lanes;
  for (let at = from, i = 0; at < to; at++, i++) sums[i] = A[a[at]!]! ^ B[b[at]!]! ^ C[c[at]!]! ^ D[d[at]!]!;
}

function addFour(sums: Int32Array, lanes: readonly [Lane, Lane, Lane, Lane], from: number, to: number): void {
  const [{ block: a, table: A }, { block: b, table: B }, { block: c, table: C }, { block: d, table: D }] = lanes;
  for (let at = from, i = 0; at < to; at++, i++) sums[i]! ^= A[a[at]!]! ^ B[b[at]!]! ^ C[c[at]!]! ^ D[d[at]!]!;
}

function addOne(sums: Int32Array, { block, table }: Lane, from: number, to: number): void {
  for (let at = from, i = 0; at < to; at++, i++) sums[i]! ^= table[block[at]!]!;
}

function sumWords(sums: Int32Array, { tables }: Pack, { columns, sources }: Product, from: number, to: number): void {
  sums.fill(0, 0, (to - from) / 2);
  for (const column of columns)
    addWords(sums, sources[column]!, tables[2 * column]!, tables[2 * column + 1]!, from, to);
}

function addWords(
  sums: Int32Array,
  block: Uint8Array,
  low: Int32Array,
  high: Int32Array,
  from: number,
  to: number,
): void {
  for (let at = from, i = 0; at < to; at += 2, i++) sums[i]! ^= low[block[at]!]! ^ high[block[at + 1]!]!;
}

/** One byte of each sum becomes every `step`th byte of a target. */
function storeByte(sums: Int32Array, shift: number, target: Uint8Array, from: number, to: number, step: number): void {
  for (let at = from, i = 0; at < to; at += step, i++) target[at] = sums[i]! >>> shift;
}

/** The same, added to what is there. */
function addByte(sums: Int32Array, shift: number, target: Uint8Array, from: number, to: number, step: number): void {
  for (let at = from, i = 0; at < to; at += step, i++) target[at]! ^= sums[i]! >>> shift;
}

/** The XOR of all sources, by words of four bytes where all blocks are aligned for it. */
function addBlocks({ columns, sources, targets, from, to, accumulate }: Product): void {
  const target = targets[0]!;
  const listed = columns.map((column) => sources[column]!);
  if (!accumulate) target.fill(0, from, to);
  const aligned = [target, ...listed].every((block) => (block.byteOffset + from) % 4 === 0);
  const words = aligned ? (to - from) >> 2 : 0;
  const wordsOf = (block: Uint8Array): Int32Array => new Int32Array(block.buffer, block.byteOffset + from, words);
  for (const source of listed) {
    if (words > 0) addInto(wordsOf(target), wordsOf(source), 0, words);
    addInto(target, source, from + words * 4, to);
  }
}

function addInto<T extends Int32Array | Uint8Array>(target: T, source: T, from: number, to: number): void {
  for (let i = from; i < to; i++) target[i]! ^= source[i]!;
}

export interface PlainKernelOptions {
  readonly memoryBytes: number;
  readonly shared: boolean;
}

/** The kernel for runtimes without SIMD in WebAssembly, and the measure for the others. */
export class PlainKernel implements Kernel {
  readonly name = 'plain';
  readonly memory: BlockMemory;

  constructor(memory: BlockMemory) {
    this.memory = memory;
  }

  static open({ memoryBytes, shared }: PlainKernelOptions): PlainKernel {
    const buffer = shared ? new SharedArrayBuffer(memoryBytes) : new ArrayBuffer(memoryBytes);
    return new PlainKernel(new BlockMemory(buffer, 0, memoryBytes));
  }

  compile(field: Field, matrix: Matrix): CompiledMatrix {
    checkMatrix(matrix);
    return new PlainMatrix(field, matrix);
  }

  isZero(block: Uint8Array): boolean {
    return block.every((byte) => byte === 0);
  }

  share(): SharedKernel {
    const { buffer } = this.memory;
    if (!(buffer instanceof SharedArrayBuffer)) {
      throw new WebdfsError('UNSUPPORTED', "this kernel's memory is not shared: open it with { shared: true }");
    }
    return { kind: 'webdfs-erasure-kernel', memory: buffer, offset: 0 };
  }

  unshare(): void {
    // a plain kernel keeps its tables outside the shared memory
  }
}
