import { assert } from '@webdfs/base';
import type { Piece } from '@webdfs/wire';

/** One read of the store, and one piece sent: whole chunks, so that each is verified once. */
export const READ_BYTES = 256 * 1024;
/** Smaller pieces get memory of their size. */
const LEAST_POOLED_BYTES = 64 * 1024;
/** Buffers that wait for their next use; more are left to the collector. */
const MOST_KEPT = 64;

/**
 * Buffers that blocks are read into on their way out. Fresh ones would be the dearest part of reading: they are zeroed, their
 * pages are faulted in, and V8 collects after every few hundred of them.
 */
export class ReadBuffers {
  readonly #free: Uint8Array[] = [];

  /** A piece of so many bytes, at most `READ_BYTES`, with whatever stood there before. */
  take(length: number): Piece {
    assert(length <= READ_BYTES, 'a piece fits into a buffer');
    if (length < LEAST_POOLED_BYTES) return new OwnPiece(new Uint8Array(length), () => undefined);
    const buffer = this.#free.pop() ?? new Uint8Array(READ_BYTES);
    return new OwnPiece(buffer.subarray(0, length), () => {
      if (this.#free.length < MOST_KEPT) this.#free.push(buffer);
    });
  }
}

class OwnPiece implements Piece {
  readonly bytes: Uint8Array;
  readonly #released: () => void;
  #references = 1;

  constructor(bytes: Uint8Array, released: () => void) {
    this.bytes = bytes;
    this.#released = released;
  }

  hold(): void {
    assert(this.#references > 0, 'a released piece is not held again');
    this.#references++;
  }

  release(): void {
    assert(this.#references > 0, 'a piece is released as often as it was held');
    if (--this.#references === 0) this.#released();
  }
}
