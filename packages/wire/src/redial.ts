import type { Clock, Random, Timer } from '@webdfs/base';
import type { Limits } from './limits.ts';

/** When to try a connection again: after 50 ms, doubling to 2 s, each ± 50 %, so that nodes do not call in step. */
export class Redial {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: Limits;
  readonly #attempt: () => void;
  #pauseMs: number;
  #upAt: number | undefined;
  #timer: Timer | undefined;

  constructor(options: { clock: Clock; random: Random; limits: Limits; attempt: () => void }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#limits = options.limits;
    this.#attempt = options.attempt;
    this.#pauseMs = options.limits.firstRetryMs;
  }

  /** Tries at once, with a fresh back-off. */
  start(): void {
    this.stop();
    this.#attempt();
  }

  up(): void {
    this.#upAt = this.#clock.monotonic();
  }

  /** The connection failed, or never stood. Only one that lived for a while resets the back-off. */
  down(): void {
    const lived = this.#upAt === undefined ? 0 : this.#clock.monotonic() - this.#upAt;
    this.#upAt = undefined;
    if (lived >= this.#limits.pingAfterMs) this.#pauseMs = this.#limits.firstRetryMs;
    const pauseMs = this.#pauseMs * (0.5 + this.#random.fraction());
    this.#pauseMs = Math.min(this.#limits.lastRetryMs, this.#pauseMs * 2);
    this.#timer?.cancel();
    this.#timer = this.#clock.after(pauseMs, this.#attempt);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#upAt = undefined;
    this.#pauseMs = this.#limits.firstRetryMs;
  }
}
