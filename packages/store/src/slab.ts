/**
 * Cuts small short-lived buffers from large ones: one allocation outside the heap for many. A buffer that is kept pins the
 * whole slab, so what outlives its batch or request is copied (`copyOf`).
 */
export class Slab {
  readonly #size: number;
  readonly #most: number;
  readonly #zeroed: boolean;
  #bytes: Buffer = Buffer.alloc(0);
  #next = 0;

  /** @param options.most  larger buffers are allocated on their own */
  constructor(options: { size: number; most: number; zeroed: boolean }) {
    this.#size = options.size;
    this.#most = options.most;
    this.#zeroed = options.zeroed;
  }

  take(count: number): Buffer {
    if (count > this.#most) return this.#allocate(count);
    if (this.#next + count > this.#bytes.length) {
      this.#bytes = this.#allocate(this.#size);
      this.#next = 0;
    }
    const from = this.#next;
    this.#next = from + count;
    return this.#bytes.subarray(from, from + count);
  }

  #allocate(count: number): Buffer {
    return this.#zeroed ? Buffer.from(new ArrayBuffer(count)) : Buffer.allocUnsafeSlow(count);
  }
}
