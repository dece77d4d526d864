/** The seam to time. Whatever waits or asks what time it is does so through a `Clock`. */

/** Something scheduled; cancelling it twice, or after it ran, does nothing. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall clock, milliseconds since 1970; may jump. */
  now(): number;
  /** Milliseconds of a clock that never goes back; may stop while the machine sleeps. */
  monotonic(): number;
  /** Runs `action` once after `ms`. Does not keep the process alive. */
  after(ms: number, action: () => void): Timer;
  /** Runs `action` at the end of this turn of the event loop, after what has already arrived. */
  soon(action: () => void): void;
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  soon(action) {
    setImmediate(action);
  },
};

const AN_HOUR_MS = 3_600_000;

/** Keeps this process alive, though nothing else might, until it is cancelled: timers of a clock do not. */
export function keepAlive(): Timer {
  const timer = setInterval(() => undefined, AN_HOUR_MS);
  return { cancel: () => clearInterval(timer) };
}

/**
 * Waits `ms`.
 *
 * @throws the signal's reason if it is aborted first
 */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** A clock moved by hand: timers run, in order, inside `advance`. For tests and simulation. */
export class ManualClock implements Clock {
  #now: number;
  readonly #origin: number;
  #order = 0;
  #timers: { at: number; order: number; action: () => void }[] = [];

  constructor(now = 1_800_000_000_000) {
    this.#now = now;
    this.#origin = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#origin;
  }

  after(ms: number, action: () => void): Timer {
    const timer = { at: this.#now + Math.max(0, ms), order: this.#order++, action };
    this.#timers.push(timer);
    return {
      cancel: () => {
        const index = this.#timers.indexOf(timer);
        if (index >= 0) this.#timers.splice(index, 1);
      },
    };
  }

  soon(action: () => void): void {
    setImmediate(action);
  }

  /** Moves time by `ms` and runs what falls due on the way. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= until);
      if (due.length === 0) break;
      due.sort((a, b) => a.at - b.at || a.order - b.order);
      const next = due[0]!;
      this.#timers.splice(this.#timers.indexOf(next), 1);
      this.#now = Math.max(this.#now, next.at);
      next.action();
    }
    this.#now = until;
  }
}
