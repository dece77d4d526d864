import { WebdfsError } from '@webdfs/base/errors';
import { BlockMemory } from './block-memory.ts';
import type { Field } from './field.ts';
import type { CompiledMatrix, Kernel, Product, SharedKernel } from './kernel.ts';
import type { Matrix } from './matrix.ts';

/** Positions that are summed at once; the sums stay in the fastest cache. */
const TILE = 2048;

/** Bits of a packed sum: so many rows of a field fit into one 32-bit word. */
const WORD_BITS = 32;

/**
 * Some rows of a matrix as one table: for each column (in GF(2^16) for each of its two bytes) 256 words, each with the products
 * of all these rows side by side, so that one look-up serves them all.
 */
interface Pack {
  readonly firstRow: number;
  readonly rows: number;
  readonly words: Uint32Array;
}

function packsOf(field: Field, matrix: Matrix): Pack[] {
  const perWord = WORD_BITS / field.bits;
  const packs: Pack[] = [];
  for (let firstRow = 0; firstRow < matrix.length; firstRow += perWord) {
    const rows = matrix.slice(firstRow, firstRow + perWord);
    const lanes = rows[0]!.length * field.symbolBytes;
    const words = new Uint32Array(lanes * 256);
    for (let i = 0; i < words.length; i++) {
      const lane = i >> 8;
      const column = Math.floor(lane / field.symbolBytes);
      const symbol = (i & 255) << (8 * (lane % field.symbolBytes));
      words[i] = rows.reduce((word, row, r) => word | (field.multiply(row[column]!, symbol) << (r * field.bits)), 0);
    }
    packs.push({ firstRow, rows: rows.length, words });
  }
  return packs;
}

class PlainMatrix implements CompiledMatrix {
  readonly #step: number;
  readonly #packs: readonly Pack[];
  readonly #onlyOnes: boolean;
  readonly #sums = new Uint32Array(TILE);

  constructor(field: Field, matrix: Matrix) {
    this.#step = field.symbolBytes;
    this.#packs = packsOf(field, matrix);
    this.#onlyOnes = matrix.length === 1 && matrix[0]!.every((entry) => entry === 1);
  }

  multiply(product: Product): void {
    if (this.#onlyOnes) {
      addBlocks(product);
      return;
    }
    for (let from = product.from; from < product.to; from += TILE * this.#step) {
      const to = Math.min(product.to, from + TILE * this.#step);
      for (const pack of this.#packs) {
        this.#sum(product, pack, from, to);
        this.#unpack(product, pack, from, to);
      }
    }
  }

  #sum({ columns, sources }: Product, { words }: Pack, from: number, to: number): void {
    const step = this.#step;
    const count = (to - from) / step;
    const sums = this.#sums;
    sums.fill(0, 0, count);
    const lanes = columns.length * step;
    // four lanes at a time: a sum is read and written a quarter as often
    let lane = 0;
    for (; lane + 4 <= lanes; lane += 4) {
      const [a, b, c, d] = four((i) => sources[columns[Math.floor((lane + i) / step)]!]!);
      const [A, B, C, D] = four((i) => this.#table(columns, lane + i));
      const [o, p, q, r] = four((i) => from + ((lane + i) % step));
      for (let i = 0, at = 0; i < count; i++, at += step) {
        sums[i]! ^= words[A + a[o + at]!]! ^ words[B + b[p + at]!]! ^ words[C + c[q + at]!]! ^ words[D + d[r + at]!]!;
      }
    }
    for (; lane < lanes; lane++) {
      const source = sources[columns[Math.floor(lane / step)]!]!;
      const table = this.#table(columns, lane);
      const first = from + (lane % step);
      for (let i = 0, at = first; i < count; i++, at += step) sums[i]! ^= words[table + source[at]!]!;
    }
  }

  /** Where the words of a lane begin. */
  #table(columns: readonly number[], lane: number): number {
    return (columns[Math.floor(lane / this.#step)]! * this.#step + (lane % this.#step)) * 256;
  }

  #unpack({ targets, accumulate }: Product, { firstRow, rows }: Pack, from: number, to: number): void {
    const step = this.#step;
    const sums = this.#sums;
    for (let row = 0; row < rows; row++) {
      const target = targets[firstRow + row]!;
      for (let byte = 0; byte < step; byte++) {
        const shift = 8 * (row * step + byte);
        if (accumulate) for (let i = 0, at = from + byte; at < to; i++, at += step) target[at]! ^= sums[i]! >>> shift;
        else for (let i = 0, at = from + byte; at < to; i++, at += step) target[at] = sums[i]! >>> shift;
      }
    }
  }
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
}
