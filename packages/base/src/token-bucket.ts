import type { Clock } from './clock.ts';

/** How far a bucket may lag real time, milliseconds: a timer that is late by less loses nothing. */
const BURST_MS = 20;

/**
 * A rate that is kept over time: what is taken must wait until the bytes before it, and its own, have had their time. It keeps the
 * moment at which it will be free next (virtual scheduling, ITU-T I.371), not tokens.
 */
export class TokenBucket {
  readonly #clock: Clock;
  #bytesPerMs: number;
  #freeAt: number;

  /** @param rate  bytes per second; `Infinity` never waits */
  constructor(rate: number, clock: Clock) {
    this.#clock = clock;
    this.#bytesPerMs = rate / 1000;
    this.#freeAt = clock.monotonic();
  }

  /** Bytes per second. */
  get rate(): number {
    return this.#bytesPerMs * 1000;
  }

  /** What is owed is owed at the new rate; whoever waits already waits no longer for it, and no shorter. */
  setRate(rate: number): void {
    if (rate === this.rate) return;
    const now = this.#clock.monotonic();
    const owed = Math.max(0, this.#freeAt - now) * this.#bytesPerMs;
    this.#bytesPerMs = rate / 1000;
    // without a rate until now nothing was owed
    this.#freeAt = now + (owed > 0 && owed < Infinity ? owed / this.#bytesPerMs : 0);
  }

  /** Counts some bytes. @returns milliseconds until they, too, have had their time */
  reserve(bytes: number): number {
    const now = this.#clock.monotonic();
    this.#freeAt = Math.max(this.#freeAt, now - BURST_MS) + bytes / this.#bytesPerMs;
    return Math.max(0, this.#freeAt - now);
  }

  /** Runs `action` when some bytes have had their time. */
  take(bytes: number, action: () => void): void {
    const waitMs = this.reserve(bytes);
    if (waitMs === 0) action();
    else this.#clock.after(waitMs, action);
  }
}
