/** Lets at most so many pieces of work run at once; of those that wait, the first in rank is next, of one rank the first that came. */
export class Turns {
  readonly #limit: number;
  #running = 0;
  /** In the order of their ranks, the next one last. */
  readonly #waiting: { readonly rank: number; readonly begin: () => void }[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get running(): number {
    return this.#running;
  }

  /** @param rank  the smallest is next */
  async run<T>(work: () => Promise<T>, rank = 0): Promise<T> {
    // whoever ends hands its turn on: the count stays
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#wait(rank, resolve));
    else this.#running++;
    try {
      return await work();
    } finally {
      const next = this.#waiting.pop();
      if (next === undefined) this.#running--;
      else next.begin();
    }
  }

  #wait(rank: number, begin: () => void): void {
    let [low, high] = [0, this.#waiting.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#waiting[middle]!.rank > rank) low = middle + 1;
      else high = middle;
    }
    this.#waiting.splice(low, 0, { rank, begin });
  }
}
