import { WebdfsError } from '@webdfs/base/errors';
import { BlockMemory } from './block-memory.ts';
import type { Field } from './field.ts';
import {
  checkMatrix,
  type CompiledMatrix,
  type Kernel,
  MAX_COLUMNS,
  type Product,
  type SharedKernel,
} from './kernel.ts';
import type { Matrix } from './matrix.ts';
import { CONSTANTS, DESCRIPTOR_BYTES, READ_PAST_BYTES, TABLE_BYTES } from './wasm/layout.ts';
import { loadProgram, makeMemory, type Program, type WasmMemory } from './wasm/load.ts';
import { type Pass, passesOf } from './wasm/pass.ts';
import { TableCache, type TableOwner } from './wasm/table-cache.ts';

/*
 * A kernel's own part of the memory, at `offset` of it:
 *
 *    offset    size  field
 *         0     320  descriptors of sources
 *       320     160  addresses of targets
 *       512  262144  stage: tiles of blocks that lie elsewhere
 *    262656  524288  tables
 *
 * The memory begins with the constants (layout.ts), then the part of the kernel that made it, then the blocks.
 */
const TARGETS = DESCRIPTOR_BYTES * MAX_COLUMNS;
const STAGE = 512;
const STAGE_BYTES = 262_144;
const TABLES = STAGE + STAGE_BYTES;
const TABLES_BYTES = 524_288;
export const PART_BYTES = TABLES + TABLES_BYTES;

/** Begins nowhere in the memory: to be copied. */
const OUTSIDE = -1;

/** Tiles are whole steps of every pass, so that only a block's end is handled as an end. */
const TILE_STEP = 384;

export interface WasmKernelOptions {
  readonly program: 'relaxed' | 'simd';
  readonly memoryBytes: number;
  readonly shared: boolean;
}

export class WasmKernel implements Kernel {
  readonly name: 'relaxed' | 'simd';
  readonly memory: BlockMemory;
  readonly #wasmMemory: WasmMemory;
  readonly #program: Program;
  readonly #part: number;
  readonly #tables: TableCache;
  readonly #stage: Uint8Array;
  /** Descriptors of sources and addresses of targets, as words. */
  readonly #words: Int32Array;
  /** Of the product under way: where sources and targets begin, by their order, or OUTSIDE; and where their tiles lie. */
  readonly #sourceBase: number[] = [];
  readonly #targetBase: number[] = [];
  readonly #sourceAt: number[] = [];
  readonly #targetAt: number[] = [];

  constructor(program: 'relaxed' | 'simd', wasmMemory: WasmMemory, part: number, memory: BlockMemory) {
    this.name = program;
    this.memory = memory;
    this.#wasmMemory = wasmMemory;
    this.#program = loadProgram(program, wasmMemory);
    this.#part = part;
    this.#tables = new TableCache(new BlockMemory(wasmMemory.buffer, part + TABLES, TABLES_BYTES));
    this.#stage = memory.view(part + STAGE, STAGE_BYTES);
    this.#words = new Int32Array(wasmMemory.buffer, part, STAGE / 4);
  }

  static open({ program, memoryBytes, shared }: WasmKernelOptions): WasmKernel {
    const blocks = CONSTANTS.bytes + PART_BYTES;
    const wasmMemory = makeMemory(blocks + memoryBytes + READ_PAST_BYTES, shared);
    const bytes = new Uint8Array(wasmMemory.buffer);
    bytes.fill(0x0f, CONSTANTS.nibble, CONSTANTS.nibble + 16);
    bytes.fill(0x1d, CONSTANTS.polynomial, CONSTANTS.polynomial + 16);
    const memory = new BlockMemory(wasmMemory.buffer, blocks, memoryBytes);
    return new WasmKernel(program, wasmMemory, CONSTANTS.bytes, memory);
  }

  compile(field: Field, matrix: Matrix): CompiledMatrix {
    checkMatrix(matrix);
    return new WasmMatrix(this, field, matrix);
  }

  isZero(block: Uint8Array): boolean {
    if (this.memory.holds(block)) return this.#program.is_zero(block.byteOffset, block.length) === 1;
    for (let from = 0; from < block.length; from += STAGE_BYTES) {
      const tile = block.subarray(from, from + STAGE_BYTES);
      this.#stage.set(tile);
      if (this.#program.is_zero(this.#stage.byteOffset, tile.length) === 0) return false;
    }
    return true;
  }

  share(): SharedKernel {
    if (this.memory.buffer instanceof ArrayBuffer) {
      throw new WebdfsError('UNSUPPORTED', "this kernel's memory is not shared: open it with { shared: true }");
    }
    const part = this.memory.allocate(PART_BYTES);
    return { kind: 'webdfs-erasure-kernel', memory: this.#wasmMemory, offset: part.byteOffset };
  }

  unshare({ offset }: SharedKernel): void {
    this.memory.free(this.memory.view(offset, PART_BYTES));
  }

  /** Tile by tile where blocks have to pass through the stage; else in one go. For `WasmMatrix`. */
  multiply(matrix: WasmMatrix, product: Product): void {
    const { columns, targets, from, to, accumulate } = product;
    const slots = this.#findBlocks(product);
    const bytes = slots === 0 ? to - from : Math.floor(STAGE_BYTES / slots / TILE_STEP) * TILE_STEP;
    for (let at = from; at < to; at += bytes) {
      const end = Math.min(to, at + bytes);
      const firstTarget = this.#placeSources(product, at, end, bytes);
      this.#placeTargets(product, at, end, bytes, firstTarget);
      this.#run(matrix, columns, end - at, accumulate);
      if (slots > firstTarget) this.#copyOut(targets, at, end, bytes, firstTarget);
    }
  }

  /** Notes where blocks begin, and counts those outside the memory. */
  #findBlocks({ columns, sources, targets }: Product): number {
    let outside = 0;
    for (let i = 0; i < columns.length; i++) {
      if ((this.#sourceBase[i] = this.#baseOf(sources[columns[i]!]!)) === OUTSIDE) outside++;
    }
    for (let row = 0; row < targets.length; row++) {
      if ((this.#targetBase[row] = this.#baseOf(targets[row]!)) === OUTSIDE) outside++;
    }
    return outside;
  }

  /** Tells where the tiles of the sources lie, in slots of the stage if need be; answers how many slots. */
  #placeSources({ columns, sources }: Product, from: number, to: number, bytes: number): number {
    let slot = 0;
    for (let i = 0; i < columns.length; i++) {
      const base = this.#sourceBase[i]!;
      if (base !== OUTSIDE) this.#sourceAt[i] = base + from;
      else this.#sourceAt[i] = this.#copyIn(part(sources[columns[i]!]!, from, to), bytes * slot++);
    }
    return slot;
  }

  #placeTargets({ targets, accumulate }: Product, from: number, to: number, bytes: number, firstSlot: number): void {
    let slot = firstSlot;
    for (let row = 0; row < targets.length; row++) {
      const base = this.#targetBase[row]!;
      if (base !== OUTSIDE) this.#targetAt[row] = base + from;
      else if (accumulate) this.#targetAt[row] = this.#copyIn(part(targets[row]!, from, to), bytes * slot++);
      else this.#targetAt[row] = this.#stage.byteOffset + bytes * slot++;
    }
  }

  /** Where a block begins in the memory, or OUTSIDE. Asked once per block: engines answer `buffer` slowly. */
  #baseOf(block: Uint8Array): number {
    return this.memory.holds(block) ? block.byteOffset : OUTSIDE;
  }

  #copyIn(bytes: Uint8Array, place: number): number {
    this.#stage.set(bytes, place);
    return this.#stage.byteOffset + place;
  }

  #copyOut(targets: readonly Uint8Array[], from: number, to: number, bytes: number, firstSlot: number): void {
    let slot = firstSlot;
    for (let row = 0; row < targets.length; row++) {
      if (this.#targetBase[row] !== OUTSIDE) continue;
      const place = bytes * slot++;
      targets[row]!.set(this.#stage.subarray(place, place + to - from), from);
    }
  }

  /** All passes over blocks at known addresses. */
  #run(matrix: WasmMatrix, columns: readonly number[], length: number, accumulate: boolean): void {
    const tables = this.#tables.addressOf(matrix);
    const words = this.#words;
    const whole = columns.length === matrix.columns;
    for (const pass of whole ? matrix.passes : matrix.partialPasses) {
      let ones = 0;
      let word = 0;
      const last = 2 * columns.length - 2;
      // Horner's rule takes the last source first; those of ones go to the end, wherever they stand
      for (let i = columns.length - 1; i >= 0; i--) {
        const column = columns[i]!;
        const isOnes = pass.ones[column]!;
        const at = isOnes ? last - 2 * ones++ : word;
        if (!isOnes) word += 2;
        words[at] = this.#sourceAt[i]!;
        words[at + 1] = tables + column * matrix.columnBytes + pass.tableOffset;
      }
      for (let row = 0; row < pass.rows; row++) words[TARGETS / 4 + row] = this.#targetAt[pass.firstRow + row]!;
      const { run } = pass;
      run(this.#part, ones, columns.length, this.#part + TARGETS, length, accumulate ? 1 : 0);
    }
  }

  passes(field: Field, matrix: Matrix, whole: boolean): Pass[] {
    return passesOf(this.#program, field, matrix, whole);
  }
}

function part(block: Uint8Array, from: number, to: number): Uint8Array {
  return from === 0 && to === block.length ? block : block.subarray(from, to);
}

class WasmMatrix implements CompiledMatrix, TableOwner {
  readonly columns: number;
  /** Bytes of the tables of one column. */
  readonly columnBytes: number;
  readonly passes: readonly Pass[];
  readonly partialPasses: readonly Pass[];
  readonly field: Field;
  readonly matrix: Matrix;
  readonly #kernel: WasmKernel;

  constructor(kernel: WasmKernel, field: Field, matrix: Matrix) {
    this.#kernel = kernel;
    this.field = field;
    this.matrix = matrix;
    this.columns = matrix[0]!.length;
    this.passes = kernel.passes(field, matrix, true);
    this.partialPasses = kernel.passes(field, matrix, false);
    this.columnBytes = matrix.length * TABLE_BYTES[field.bits];
  }

  multiply(product: Product): void {
    this.#kernel.multiply(this, product);
  }
}
