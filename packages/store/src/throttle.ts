import { assert, type Clock, sleep, WebdfsError } from '@webdfs/base';

/** How often a throttle looks again while writers suffer, and how long it waits at most before it goes on all the same. */
const LOOK_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** Bytes that may go at once after idling. */
const BURST_MS = 200;

export interface ThrottleOptions {
  readonly clock: Clock;
  /** Infinity: no limit. */
  readonly bytesPerSecond: number;
  /** True while others should not be disturbed. */
  readonly busy?: () => boolean;
  /** True while nothing matters but to be done, as on a full disk. */
  readonly urgent?: () => boolean;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A token bucket for work in the background: `take` resolves when so many bytes may be read or written.
 * Source: Turner, "New directions in communications", IEEE Communications 24(10), 1986 (the leaky bucket as a meter).
 */
export class Throttle {
  readonly #options: ThrottleOptions;
  /** When the bytes taken so far are paid for, on the monotonic clock. */
  #paidAtMs = -Infinity;

  constructor(options: ThrottleOptions) {
    assert(options.bytesPerSecond > 0, 'a throttle lets something through');
    this.#options = options;
  }

  /** @throws CANCELLED once the signal is aborted */
  async take(bytes: number): Promise<void> {
    const { clock, bytesPerSecond } = this.#options;
    this.#check();
    if (this.#options.urgent?.() !== true) {
      const now = clock.monotonic();
      this.#paidAtMs = Math.max(this.#paidAtMs, now - BURST_MS) + (bytes / bytesPerSecond) * 1000;
      if (this.#paidAtMs > now) await this.#sleep(this.#paidAtMs - now);
      let waitedMs = 0;
      while (waitedMs < LONGEST_PAUSE_MS && this.#options.busy?.() === true) {
        await this.#sleep(LOOK_MS);
        waitedMs += LOOK_MS;
      }
    }
    // Whatever else has arrived goes first.
    await new Promise<void>((resolve) => clock.soon(resolve));
    this.#check();
  }

  async #sleep(ms: number): Promise<void> {
    try {
      await sleep(this.#options.clock, ms, this.#options.signal);
    } catch {
      this.#check();
    }
  }

  #check(): void {
    if (this.#options.signal?.aborted === true) throw new WebdfsError('CANCELLED', 'the work was called off');
  }
}
