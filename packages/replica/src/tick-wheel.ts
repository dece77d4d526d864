import type { Clock, Timer } from '@webdfs/base';

/** Times within one slot fall due together, ms. */
const SLOT_MS = 10;

/**
 * One timer for all groups of a node. Things are put down for a time and handed out once, when it has come; a node without
 * work has no timer at all. A thing put down twice is handed out twice: who has nothing to do then does nothing.
 */
export class TickWheel<Thing> {
  readonly #clock: Clock;
  readonly #due: (things: readonly Thing[], at: number) => void;
  readonly #slots = new Map<number, Thing[]>();
  #timer: Timer | undefined;
  #timerSlot = Infinity;

  constructor(clock: Clock, due: (things: readonly Thing[], at: number) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  /** @param at  by `Clock.monotonic()` */
  put(thing: Thing, at: number): void {
    const slot = Math.ceil(at / SLOT_MS);
    const things = this.#slots.get(slot);
    if (things === undefined) this.#slots.set(slot, [thing]);
    else things.push(thing);
    if (slot < this.#timerSlot) this.#setTimer(slot);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#slots.clear();
  }

  #setTimer(slot: number): void {
    this.#timer?.cancel();
    this.#timerSlot = slot;
    const inMs = Math.max(0, slot * SLOT_MS - this.#clock.monotonic());
    this.#timer = this.#clock.after(inMs, () => this.#turn());
  }

  #turn(): void {
    this.#timer = undefined;
    this.#timerSlot = Infinity;
    const at = this.#clock.monotonic();
    const due: Thing[] = [];
    let next = Infinity;
    for (const [slot, things] of this.#slots) {
      if (slot * SLOT_MS <= at) {
        this.#slots.delete(slot);
        due.push(...things);
      } else next = Math.min(next, slot);
    }
    if (next < this.#timerSlot) this.#setTimer(next);
    if (due.length > 0) this.#due(due, at);
  }
}
