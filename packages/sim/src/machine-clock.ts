import type { Clock, Timer } from '@webdfs/base';
import type { SimulatedTime } from './simulated-time.ts';

/** A world's begin, as wall clocks show it: 2027. */
const EPOCH_MS = 1_800_000_000_000;

const NO_TIMER: Timer = { cancel: () => undefined };

/** As the machine's own: a timer for no time at all would come again and again at one instant. */
const LEAST_MS = 1;

/**
 * The clock of one machine: it may run fast or slow, its wall clock may jump, and the machine may stand still. It outlives
 * processes; each of these has its own `life`, whose timers end with it.
 */
export class MachineClock implements Clock {
  readonly #time: SimulatedTime;
  readonly #owner: number;
  /** Local milliseconds per millisecond of the world. */
  #rate = 1;
  #since = 0;
  #elapsed = 0;
  #wallOffset: number;
  /** The farthest that the wall clock has ever been ahead of the monotonic one. */
  #farthest: number;
  /** When it fell asleep, by the world's time. */
  #asleepSince: number | undefined;

  constructor(time: SimulatedTime, owner: number, wallOffset: number) {
    this.#time = time;
    this.#owner = owner;
    this.#wallOffset = EPOCH_MS + wallOffset;
    this.#farthest = this.#wallOffset;
  }

  monotonic(): number {
    return this.#elapsed + (this.#time.now - this.#since) * this.#rate;
  }

  now(): number {
    return Math.floor(this.monotonic() + this.#wallOffset);
  }

  after(ms: number, action: () => void): Timer {
    return this.#time.after(Math.max(ms, LEAST_MS) / this.#rate, this.#owner, action);
  }

  soon(action: () => void): void {
    this.#time.after(0, this.#owner, action);
  }

  /** From now on it runs at this rate. Timers that are set keep their time. */
  drift(rate: number): void {
    this.#elapsed = this.monotonic();
    this.#since = this.#time.now;
    this.#rate = rate;
  }

  /** The wall clock is set forward, or back. */
  jump(ms: number): void {
    this.#wallOffset += ms;
    this.#farthest = Math.max(this.#farthest, this.#wallOffset);
  }

  get farthest(): number {
    return this.#farthest;
  }

  /** The wall clock is set forward to where the farthest of several clocks has been. */
  catchUpWith(farthest: number): void {
    this.jump(Math.max(0, farthest - this.#wallOffset));
  }

  /** SIGSTOP: nothing runs, the clocks do. `asleep`: the whole machine sleeps, and its monotonic clock stands still. */
  pause(asleep: boolean): void {
    this.#time.hold(this.#owner);
    if (asleep) this.#asleepSince = this.#time.now;
  }

  resume(): void {
    const slept = this.#asleepSince === undefined ? 0 : this.#time.now - this.#asleepSince;
    this.#asleepSince = undefined;
    this.#elapsed -= slept * this.#rate;
    this.jump(slept * this.#rate);
    this.#time.release(this.#owner, slept);
  }

  /** A clock for one process: after `end` its timers are no more, and no new ones begin. */
  life(): Clock & { end(): void } {
    const timers = new Set<Timer>();
    let over = false;
    const after = (ms: number, action: () => void): Timer => {
      if (over) return NO_TIMER;
      const timer = this.after(ms, () => {
        timers.delete(timer);
        action();
      });
      timers.add(timer);
      return {
        cancel: () => {
          timers.delete(timer);
          timer.cancel();
        },
      };
    };
    return {
      now: () => this.now(),
      monotonic: () => this.monotonic(),
      after,
      soon: (action) => void after(0, action),
      end: () => {
        over = true;
        for (const timer of timers) timer.cancel();
        timers.clear();
      },
    };
  }
}
