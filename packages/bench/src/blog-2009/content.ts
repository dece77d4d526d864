import { createHash } from 'node:crypto';
import { SeededRandom } from '@webdfs/base';
import { PUBLISHED } from './published.ts';

/** The objects of a run: each has its size and its bytes from its number, so that whoever reads it can tell. */

const POOL_BYTES = 4 * 1024 * 1024;
const NAME_BYTES = 32;

export class Content {
  readonly #pool: Uint8Array;
  readonly #seed: number;
  readonly #sizeFactor: number;

  /** @param sizeFactor  1: sizes as published; 0.02: a fiftieth */
  constructor(seed: number, sizeFactor: number) {
    this.#seed = seed;
    this.#sizeFactor = sizeFactor;
    this.#pool = new SeededRandom(seed).bytes(POOL_BYTES);
  }

  keyOf(index: number): string {
    return `object-${index}`;
  }

  /** Evenly spread over the logarithms between the smallest and the largest. */
  sizeOf(index: number): number {
    const { smallestBytes, largestBytes } = PUBLISHED;
    const share = this.#nameOf(index).readUInt32LE(0) / 2 ** 32;
    const size = smallestBytes * (largestBytes / smallestBytes) ** share;
    return Math.max(NAME_BYTES, Math.round(size * this.#sizeFactor));
  }

  bytesOf(index: number): Uint8Array {
    const name = this.#nameOf(index);
    const bytes = new Uint8Array(this.sizeOf(index));
    let from = name.readUInt32LE(4) % POOL_BYTES;
    for (let at = 0; at < bytes.length;) {
      const piece = this.#pool.subarray(from, from + Math.min(POOL_BYTES - from, bytes.length - at));
      bytes.set(piece, at);
      at += piece.length;
      from = 0;
    }
    bytes.set(name);
    return bytes;
  }

  #nameOf(index: number): Buffer {
    return createHash('sha256').update(`${this.#seed} ${index}`).digest();
  }
}
