import { compareTurns, type Transfer } from './parcel.ts';

interface Entry<Item> {
  readonly transfer: Transfer;
  readonly item: Item;
}

/** What one device or link has to do: so many at a time, those whose turn is first. */
export class TurnQueue<Item> {
  readonly #atOnce: number;
  /** Waiting; the last is next. */
  readonly #waiting: Entry<Item>[] = [];
  #running = 0;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  add(transfer: Transfer, item: Item): void {
    const waiting = this.#waiting;
    let [low, high] = [0, waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareTurns(waiting[middle]!.transfer, transfer) > 0) low = middle + 1;
      else high = middle;
    }
    waiting.splice(low, 0, { transfer, item });
  }

  /** One is finished. */
  finish(): void {
    this.#running -= 1;
  }

  /** What may begin now. */
  begin(): Item[] {
    const begun: Item[] = [];
    while (this.#running < this.#atOnce && this.#waiting.length > 0) {
      this.#running += 1;
      begun.push(this.#waiting.pop()!.item);
    }
    return begun;
  }
}
