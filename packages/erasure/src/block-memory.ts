import { WebdfsError } from '@webdfs/base/errors';

/** Blocks start at multiples of this: a cache line. */
const ALIGNMENT = 64;

interface Range {
  offset: number;
  bytes: number;
}

/**
 * Memory that a kernel computes in without copying. It is of fixed size, so views of it stay valid as long as it lives; blocks
 * are given out and taken back, first fit.
 */
export class BlockMemory {
  readonly buffer: ArrayBufferLike;
  /** What is free, by offset; neighbours are merged. */
  readonly #free: Range[];
  readonly #taken = new Map<number, number>();

  /** Gives out the bytes [offset, offset + bytes) of a buffer. */
  constructor(buffer: ArrayBufferLike, offset: number, bytes: number) {
    this.buffer = buffer;
    this.#free = bytes === 0 ? [] : [{ offset, bytes }];
  }

  /**
   * A block of so many bytes, all zero; the caller's until `free`.
   * @throws WebdfsError TOO_LARGE if no free stretch is long enough
   */
  allocate(bytes: number): Uint8Array {
    if (!Number.isInteger(bytes) || bytes < 0) throw new WebdfsError('INVALID', `a block of ${bytes} bytes`);
    const size = Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
    const at = this.#free.findIndex((range) => range.bytes >= size);
    const range = this.#free[at];
    if (range === undefined) {
      const most = this.#free.reduce((most, { bytes }) => Math.max(most, bytes), 0);
      throw new WebdfsError('TOO_LARGE', `no room for a block of ${bytes} bytes: the longest free stretch has ${most}`);
    }
    const { offset } = range;
    if (range.bytes === size) this.#free.splice(at, 1);
    else {
      range.offset += size;
      range.bytes -= size;
    }
    this.#taken.set(offset, size);
    return new Uint8Array(this.buffer, offset, bytes).fill(0);
  }

  /**
   * Takes a block back; its bytes may be given out again.
   * @throws WebdfsError INVALID if it is no block of this memory, or was taken back before
   */
  free(block: Uint8Array): void {
    const bytes = block.buffer === this.buffer ? this.#taken.get(block.byteOffset) : undefined;
    if (bytes === undefined) throw new WebdfsError('INVALID', `no block of this memory starts at ${block.byteOffset}`);
    this.#taken.delete(block.byteOffset);
    const after = this.#free.findIndex(({ offset }) => offset > block.byteOffset);
    const at = after === -1 ? this.#free.length : after;
    this.#free.splice(at, 0, { offset: block.byteOffset, bytes });
    this.#merge(at);
    this.#merge(at - 1);
  }

  /** Any bytes of the memory, such as a block that another thread was given. */
  view(offset: number, bytes: number): Uint8Array {
    return new Uint8Array(this.buffer, offset, bytes);
  }

  holds(view: Uint8Array): boolean {
    return view.buffer === this.buffer;
  }

  #merge(at: number): void {
    const [left, right] = [this.#free[at], this.#free[at + 1]];
    if (left === undefined || right === undefined || left.offset + left.bytes !== right.offset) return;
    left.bytes += right.bytes;
    this.#free.splice(at + 1, 1);
  }
}
