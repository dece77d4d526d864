import { randomBytes } from 'node:crypto';

/** The seam to chance. */
export interface Random {
  /** `count` fresh bytes, the caller's own. */
  bytes(count: number): Uint8Array;
  /** Uniform in [0, 1). */
  fraction(): number;
}

/** Chance fit for secrets and ids that must never meet again: the kernel's generator, drawn in blocks. */
export class SystemRandom implements Random {
  #pool: Uint8Array = new Uint8Array(0);
  #next = 0;

  bytes(count: number): Uint8Array {
    if (count > 512) return new Uint8Array(randomBytes(count));
    if (this.#next + count > this.#pool.length) {
      // Not the Buffer itself: its `slice` is a view, which `fill` below would wipe.
      this.#pool = new Uint8Array(randomBytes(4096));
      this.#next = 0;
    }
    const taken = this.#pool.slice(this.#next, this.#next + count);
    this.#pool.fill(0, this.#next, this.#next + count);
    this.#next += count;
    return taken;
  }

  fraction(): number {
    const bytes = this.bytes(4);
    return ((bytes[0]! << 24) | (bytes[1]! << 16) | (bytes[2]! << 8) | bytes[3]!) / 4_294_967_296 + 0.5;
  }
}

/** Repeatable chance from a seed; for tests and simulation only. Source: Vigna, splitmix; 32-bit form. */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Uniform in 0..2^32−1. */
  uint32(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }

  bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let i = 0; i < count; i++) bytes[i] = this.uint32() & 255;
    return bytes;
  }

  fraction(): number {
    return this.uint32() / 4_294_967_296;
  }

  /** Uniform in 0..limit−1. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }
}
