import type { Clock } from '@webdfs/base';

/** How far a bucket may lag real time: a timer that is late by less loses nothing. */
const BURST_MS = 20;

/** A rate that is kept over time: what is taken must wait until the bytes before it, and its own, have had their time. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #bytesPerMs: number;
  #freeAt: number;

  /** @param rate  bytes per second; `Infinity` never waits */
  constructor(rate: number, clock: Clock) {
    this.#clock = clock;
    this.#bytesPerMs = rate / 1000;
    this.#freeAt = clock.monotonic();
  }

  /** Runs `action` when some bytes have had their time. */
  take(bytes: number, action: () => void): void {
    const now = this.#clock.monotonic();
    this.#freeAt = Math.max(this.#freeAt, now - BURST_MS) + bytes / this.#bytesPerMs;
    if (this.#freeAt <= now) action();
    else this.#clock.after(this.#freeAt - now, action);
  }
}
