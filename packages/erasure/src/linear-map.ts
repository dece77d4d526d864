import { WebdfsError } from '@webdfs/base/errors';
import type { Field } from './field.ts';
import type { CompiledMatrix, Kernel } from './kernel.ts';
import type { Matrix } from './matrix.ts';

/** Nothing at all, or a block of zeros that need not exist. */
export type Source = Uint8Array | undefined;

/**
 * A matrix at work on blocks. It checks what the kernel trusts, and makes up for what a kernel does not know: sources shorter than the
 * targets count as padded with zeros, of which none is ever written or read.
 */
export class LinearMap {
  readonly #field: Field;
  readonly #matrix: Matrix;
  readonly #compiled: CompiledMatrix;
  readonly #allColumns: readonly number[];

  constructor(kernel: Kernel, field: Field, matrix: Matrix) {
    this.#field = field;
    this.#matrix = matrix;
    this.#compiled = kernel.compile(field, matrix);
    this.#allColumns = matrix[0]!.map((_, column) => column);
  }

  /**
   * `targets[row] = Σ matrix[row][column] · sources[column]`.
   * @throws WebdfsError INVALID if there are not as many blocks as rows and columns, the targets differ in length or are shorter
   *   than a source, or a target overlaps another block
   */
  apply(sources: readonly Source[], targets: readonly Uint8Array[]): void {
    if (sources.length !== this.#allColumns.length) {
      throw new WebdfsError('INVALID', `${sources.length} sources, expected ${this.#allColumns.length}`);
    }
    const length = this.#checkTargets(targets);
    const full = sources.every((source) => source?.length === length);
    checkApart(sources, targets, length);
    if (full) {
      this.#multiply(this.#allColumns, sources, targets, 0, length);
      return;
    }
    this.#applyUneven(sources, targets, length);
  }

  /**
   * `targets[row] += matrix[row][column] · block`, from byte `offset` of the targets on. Done twice it is undone.
   * @throws WebdfsError INVALID as `apply`
   */
  add(column: number, block: Uint8Array, targets: readonly Uint8Array[], offset = 0): void {
    if (this.#matrix[0]![column] === undefined) throw new WebdfsError('INVALID', `there is no shard ${column}`);
    const length = this.#checkTargets(targets);
    if (offset < 0 || offset + block.length > length) {
      throw new WebdfsError('INVALID', `${block.length} bytes at ${offset} of parity of ${length}`);
    }
    checkApart([block], targets, length);
    if (block.length === 0) return;
    // where symbols have two bytes, a first or last one may be there by half
    const lead = offset % this.#field.symbolBytes;
    if (lead === 1) this.#addSymbol(column, block[0]! << 8, targets, offset - 1);
    const body = lead === 0 ? block : block.subarray(1);
    const at = offset + lead;
    const shifted = at === 0 ? targets : targets.map((target) => target.subarray(at));
    const to = this.#wholeSymbols(body.length);
    if (to > 0) {
      const sources: Source[] = [];
      sources[column] = body;
      this.#compiled.multiply({ columns: [column], sources, targets: shifted, from: 0, to, accumulate: true });
    }
    if (to < body.length) this.#addSymbol(column, body[to]!, targets, at + to);
  }

  #applyUneven(sources: readonly Source[], targets: readonly Uint8Array[], length: number): void {
    const wholes = sources.map((source) => this.#wholeSymbols(source?.length ?? 0));
    let from = 0;
    for (const to of [...new Set([...wholes, length])].toSorted((a, b) => a - b)) {
      const columns = this.#allColumns.filter((column) => wholes[column]! >= to);
      this.#multiply(columns, sources, targets, from, to);
      from = to;
    }
    for (const [column, source] of sources.entries()) {
      const at = wholes[column]!;
      if (source !== undefined && at < source.length) this.#addSymbol(column, source[at]!, targets, at);
    }
  }

  #multiply(
    columns: readonly number[],
    sources: readonly Source[],
    targets: readonly Uint8Array[],
    from: number,
    to: number,
  ): void {
    if (from === to) return;
    if (columns.length === 0) for (const target of targets) target.fill(0, from, to);
    else this.#compiled.multiply({ columns, sources, targets, from, to, accumulate: false });
  }

  /** Adds the products of one symbol of two bytes. */
  #addSymbol(column: number, symbol: number, targets: readonly Uint8Array[], at: number): void {
    for (const [row, target] of targets.entries()) {
      const product = this.#field.multiply(this.#matrix[row]![column]!, symbol);
      target[at]! ^= product;
      target[at + 1]! ^= product >> 8;
    }
  }

  #wholeSymbols(bytes: number): number {
    return bytes - (bytes % this.#field.symbolBytes);
  }

  #checkTargets(targets: readonly Uint8Array[]): number {
    if (targets.length !== this.#matrix.length) {
      throw new WebdfsError('INVALID', `${targets.length} targets, expected ${this.#matrix.length}`);
    }
    const { length } = targets[0]!;
    for (const target of targets) {
      if (target.length !== length) {
        throw new WebdfsError('INVALID', `targets of ${length} and ${target.length} bytes; all must have one length`);
      }
    }
    if (this.#wholeSymbols(length) !== length) {
      throw new WebdfsError('INVALID', `targets of ${length} bytes; symbols have ${this.#field.symbolBytes}`);
    }
    return length;
  }
}

function overlap(a: Uint8Array, b: Uint8Array): boolean {
  // the buffers last: engines answer for them slowly
  const apart = a.byteOffset >= b.byteOffset + b.length || b.byteOffset >= a.byteOffset + a.length;
  return !apart && a.length > 0 && b.length > 0 && a.buffer === b.buffer;
}

/** Refuses sources longer than the targets, and targets that share a byte with another block: they would be read half written. */
function checkApart(sources: readonly Source[], targets: readonly Uint8Array[], length: number): void {
  for (let column = 0; column < sources.length; column++) {
    const source = sources[column];
    if (source === undefined) continue;
    if (source.length > length) {
      throw new WebdfsError('INVALID', `source ${column} has ${source.length} bytes, the targets have ${length}`);
    }
    for (let row = 0; row < targets.length; row++) {
      if (overlap(source, targets[row]!)) throw new WebdfsError('INVALID', `target ${row} overlaps source ${column}`);
    }
  }
  for (let row = 0; row < targets.length; row++) {
    for (let other = row + 1; other < targets.length; other++) {
      if (overlap(targets[row]!, targets[other]!)) {
        throw new WebdfsError('INVALID', `target ${row} overlaps target ${other}`);
      }
    }
  }
}
