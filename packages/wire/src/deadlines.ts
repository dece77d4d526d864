import type { Clock, Timer } from '@webdfs/base';

/**
 * One timer for many deadlines: it stands at the earliest one seen, and when it runs, `scan` ends what is due and says
 * what comes next. Most calls end long before; so a call costs a comparison, not a timer.
 */
export class DeadlineTimer {
  readonly #clock: Clock;
  readonly #scan: (now: number) => number;
  #timer: Timer | undefined;
  #due = Infinity;

  /** @param scan  ends what is due at `now` and returns the earliest deadline left, or Infinity */
  constructor(clock: Clock, scan: (now: number) => number) {
    this.#clock = clock;
    this.#scan = scan;
  }

  /** Something ends at `due`, by `Clock.monotonic`. */
  watch(due: number): void {
    if (due >= this.#due) return;
    this.#timer?.cancel();
    this.#due = due;
    this.#timer = this.#clock.after(Math.max(0, due - this.#clock.monotonic()), () => {
      this.#timer = undefined;
      this.#due = Infinity;
      this.watch(this.#scan(this.#clock.monotonic()));
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#due = Infinity;
  }
}
