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
    for (let row = 0; row < rows; row++) {
      for (let byte = 0; byte < step; byte++) {
        const target = targets[firstRow + row]!;
        unpackByte(this.#sums, 8 * (row * step + byte), accumulate, target, from + byte, to, step);
      }
    }
  }
}

/** Sums the look-ups of all columns, four at a time, so that a sum is read and written a quarter as often. */
function sumBytes(sums: Int32Array, { tables }: Pack, { columns, sources }: Product, from: number, to: number): void {
  const count = to - from;
  if (columns.length < 4) sums.fill(0, 0, count);
  let i = 0;
  for (; i + 4 <= columns.length; i += 4) {
    const [a, b, c, d] = four((j) => sources[columns[i + j]!]!);
    const [A, B, C, D] = four((j) => tables[columns[i + j]!]!);
    const first = i === 0;
    for (let at = 0; at < count; at++) {
      const sum = A[a[from + at]!]! ^ B[b[from + at]!]! ^ C[c[from + at]!]! ^ D[d[from + at]!]!;
      sums[at] = first ? sum : sums[at]! ^ sum;
    }
  }
  for (; i < columns.length; i++) {
    const source = sources[columns[i]!]!;
    const table = tables[columns[i]!]!;
    for (let at = 0; at < count; at++) sums[at]! ^= table[source[from + at]!]!;
  }
}

function sumWords(sums: Int32Array, { tables }: Pack, { columns, sources }: Product, from: number, to: number): void {
  sums.fill(0, 0, (to - from) / 2);
  for (const column of columns) {
    const source = sources[column]!;
    const [low, high] = [tables[2 * column]!, tables[2 * column + 1]!];
    for (let at = from, i = 0; at < to; at += 2, i++) sums[i]! ^= low[source[at]!]! ^ high[source[at + 1]!]!;
  }
}

/** One byte of each sum to every `step`th byte of a target. */
function unpackByte(
  sums: Int32Array,
  shift: number,
  accumulate: boolean,
  target: Uint8Array,
  from: number,
  to: number,
  step: number,
): void {
  if (accumulate) for (let at = from, i = 0; at < to; at += step, i++) target[at]! ^= sums[i]! >>> shift;
  else for (let at = from, i = 0; at < to; at += step, i++) target[at] = sums[i]! >>> shift;
}

function four<T>(of: (i: number) => T): readonly [T, T, T, T] {
  return [of(0), of(1), of(2), of(3)];
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
