import { WebdfsError } from '@webdfs/base/errors';
import type { BlockMemory } from './block-memory.ts';
import type { Field } from './field.ts';
import type { Matrix } from './matrix.ts';

/** `relaxed` and `simd` are WebAssembly, with and without relaxed swizzles; `plain` is TypeScript alone. */
export type KernelName = 'relaxed' | 'simd' | 'plain';

/**
 * What multiplies blocks of memory by matrices: the inner loop of Reed-Solomon, encoding and repair alike. All kernels give the
 * same bytes (`testKernel` of `@webdfs/erasure/conformance`); they differ in speed alone. A kernel belongs to one thread.
 */
export interface Kernel {
  readonly name: KernelName;
  /** Blocks of this memory are computed in place; all others are copied in and out, a tile at a time. */
  readonly memory: BlockMemory;
  /**
   * Prepares a matrix of at most `MAX_ROWS` rows and `MAX_COLUMNS` columns; tables are kept while there is room.
   * @throws WebdfsError INVALID if it is larger, or empty
   */
  compile(field: Field, matrix: Matrix): CompiledMatrix;
  /** True if every byte is 0. */
  isZero(block: Uint8Array): boolean;
  /**
   * What another thread needs to open a kernel over the same memory (`joinKernel`): post it as it is.
   * @throws WebdfsError UNSUPPORTED if the memory is not shared; TOO_LARGE if no room is left for the thread's tables
   */
  share(): SharedKernel;
  /** Takes back what `share` gave, once the other thread is done with it. */
  unshare(shared: SharedKernel): void;
}

export const MAX_ROWS = 40;
export const MAX_COLUMNS = 40;

/** For kernels. @throws WebdfsError INVALID if a matrix is empty, ragged or larger than a kernel takes */
export function checkMatrix(matrix: Matrix): void {
  const [rows, columns] = [matrix.length, matrix[0]?.length ?? 0];
  const fits = rows > 0 && rows <= MAX_ROWS && columns > 0 && columns <= MAX_COLUMNS;
  if (!fits || matrix.some((row) => row.length !== columns)) {
    throw new WebdfsError(
      'INVALID',
      `a matrix of ${rows} × ${columns}; kernels take 1 × 1 to ${MAX_ROWS} × ${MAX_COLUMNS}`,
    );
  }
}

export interface CompiledMatrix {
  /**
   * For the bytes [from, to) of all blocks: `targets[row] = Σ matrix[row][column] · sources[column]` over the columns listed, plus
   * (XOR) what the target held if `accumulate`. Lengths are the caller's care: whole symbols, all blocks at least `to` long, no
   * target overlapping another block. Allocates nothing per byte.
   */
  multiply(product: Product): void;
}

export interface Product {
  /** Ascending. */
  readonly columns: readonly number[];
  /** By column; those not listed are not looked at. */
  readonly sources: readonly (Uint8Array | undefined)[];
  readonly targets: readonly Uint8Array[];
  readonly from: number;
  readonly to: number;
  readonly accumulate: boolean;
}

export interface SharedKernel {
  readonly kind: 'webdfs-erasure-kernel';
  /** The `WebAssembly.Memory`, or the `SharedArrayBuffer` of a plain kernel. */
  readonly memory: object;
  /** Where the thread's own part begins. */
  readonly offset: number;
}
