import type { Clock } from '@webdfs/base';

/** Time over which a rate is taken, milliseconds: long enough for a figure that can be read, short enough to be of now. */
const SPAN_MS = 5_000;
const STEP_MS = 500;

/** How fast a counter grew over the last seconds, from looks at it that come at any time. */
export class Rate {
  readonly #clock: Clock;
  #looks: { at: number; count: number }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param count  the counter now; never less than before */
  perSecond(count: number): number {
    const at = this.#clock.monotonic();
    const last = this.#looks.at(-1);
    if (last === undefined || at - last.at >= STEP_MS) this.#looks.push({ at, count });
    while (this.#looks.length > 2 && this.#looks[1]!.at <= at - SPAN_MS) this.#looks.shift();
    const first = this.#looks[0]!;
    return at === first.at ? 0 : Math.round(((count - first.count) * 1_000) / (at - first.at));
  }
}
