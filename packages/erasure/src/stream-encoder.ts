import { WebdfsError } from '@webdfs/base/errors';
import type { LinearMap } from './linear-map.ts';

/**
 * Parity of shards that arrive in pieces, in any order between shards and front to back within each. It reads and writes the parity
 * once per piece, so `encode` is faster where all shards are at hand.
 */
export class StreamEncoder {
  readonly #map: LinearMap;
  readonly #parity: readonly Uint8Array[];
  readonly #shardBytes: number;
  readonly #written: number[];

  /** Begins with parity of zeros: what `parity` held is gone. */
  constructor(map: LinearMap, data: number, parity: readonly Uint8Array[]) {
    this.#map = map;
    this.#parity = parity;
    this.#shardBytes = parity[0]?.length ?? 0;
    this.#written = Array.from({ length: data }, () => 0);
    for (const block of parity) block.fill(0);
  }

  /**
   * Adds the next piece of data shard `index`; the piece is not kept.
   * @throws WebdfsError INVALID if there is no such shard, the shard would outgrow the parity, or the piece overlaps the parity
   */
  write(index: number, piece: Uint8Array): void {
    const written = this.#written[index];
    if (written === undefined) throw new WebdfsError('INVALID', `there is no data shard ${index}`);
    if (written + piece.length > this.#shardBytes) {
      throw new WebdfsError(
        'INVALID',
        `data shard ${index} has ${written} bytes, ${piece.length} more exceed the ${this.#shardBytes} of the parity`,
      );
    }
    this.#map.add(index, piece, this.#parity, written);
    this.#written[index] = written + piece.length;
  }

  /** Bytes of data shard `index` so far; what is missing to the parity's length counts as zeros. */
  written(index: number): number {
    return this.#written[index] ?? 0;
  }
}
