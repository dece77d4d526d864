import { WebdfsError } from '@webdfs/base/errors';
import type { Code } from './code.ts';
import type { Kernel } from './kernel.ts';
import { LinearMap, type Source } from './linear-map.ts';
import { invertMatrix, type Matrix, multiplyMatrices } from './matrix.ts';

/** How to make lost shards again: which to read, and the sums to form. */
export interface RepairPlan {
  /** The shards it makes, ascending. */
  readonly lost: readonly number[];
  /** The shards it reads, ascending; as many as there are data shards. */
  readonly reads: readonly number[];
  /** True if plain XOR will do, several times faster than anything else. */
  readonly byXor: boolean;
  /** What a lost shard (row) takes of each shard read (column). */
  readonly matrix: Matrix;
  /**
   * Makes the lost shards, or the same range of each: a code works byte by byte, so who wants a part reads that part.
   * @param sources by `reads`; shorter ones count as padded with zeros, undefined as all zeros
   * @param targets by `lost`, all as long as the parity
   * @throws WebdfsError INVALID if blocks are missing, of wrong lengths, or overlap
   */
  repair(sources: readonly Source[], targets: readonly Uint8Array[]): void;
}

export interface RepairQuestion {
  readonly code: Code;
  readonly kernel: Kernel;
  readonly data: number;
  readonly parity: Matrix;
  readonly lost: readonly number[];
  /** Shards that can be read. */
  readonly available: readonly number[];
}

/** The row of a shard in the generator, `[I; P]`. */
function generatorRow(shard: number, data: number, parity: Matrix): readonly number[] {
  if (shard >= data) return parity[shard - data]!;
  return Array.from({ length: data }, (_, column) => (column === shard ? 1 : 0));
}

/**
 * Reads data shards before parity, and parity of low number first: so one lost data shard is the XOR of the others as long as the
 * first parity is there.
 *
 * @throws WebdfsError LOST if fewer shards are available than there is data
 */
export function planRepair({ code, kernel, data, parity, lost, available }: RepairQuestion): RepairPlan {
  const { field } = code;
  if (available.length < data) {
    throw new WebdfsError(
      'LOST',
      `${available.length} of ${data + parity.length} shards are left, ${data} are needed; lost: ${lost.join(', ')}`,
    );
  }
  const reads = available.toSorted((a, b) => a - b).slice(0, data);
  const survivors = reads.map((shard) => generatorRow(shard, data, parity));
  const inverse = invertMatrix(field, survivors);
  // no loss within the limits of a code ends here: code.test.ts tries every one
  if (inverse === undefined) throw new WebdfsError('LOST', `shards ${reads.join(', ')} do not determine the rest`);
  const wanted = lost.map((shard) => generatorRow(shard, data, parity));
  const matrix = multiplyMatrices(field, wanted, inverse);
  const map = lost.length === 0 ? undefined : new LinearMap(kernel, field, matrix);
  return {
    lost,
    reads,
    byXor: matrix.length > 0 && matrix.every((row) => row.every((entry) => entry === 1)),
    matrix,
    repair: (sources, targets) => map?.apply(sources, targets),
  };
}
