import type { Clock, Timer } from '@webdfs/base';
import { PACE_BYTES, PACE_SECONDS } from './limits.ts';

/** Something that counts the seconds. */
export interface Ticking {
  tick(): void;
}

/** Ticks everything that waits for a client once a second: one timer for the whole door, none when nothing waits. */
export class Wheel {
  readonly #clock: Clock;
  readonly #ticking = new Set<Ticking>();
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#ticking.size;
  }

  add(ticking: Ticking): void {
    this.#ticking.add(ticking);
    this.#timer ??= this.#clock.after(1_000, () => this.#turn());
  }

  delete(ticking: Ticking): void {
    this.#ticking.delete(ticking);
  }

  #turn(): void {
    this.#timer = undefined;
    for (const ticking of this.#ticking) ticking.tick();
    if (this.#ticking.size > 0) this.#timer ??= this.#clock.after(1_000, () => this.#turn());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#ticking.clear();
  }
}

/** Seconds that a client may take to move so many bytes: `PACE_BYTES` in `PACE_SECONDS`, and never less than those. */
export function secondsFor(bytes: number): number {
  return PACE_SECONDS * Math.max(1, Math.ceil(bytes / PACE_BYTES));
}
