/** Lets at most so many pieces of work run at once; the others wait in the order in which they came. */
export class Turns {
  readonly #limit: number;
  #running = 0;
  #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  get running(): number {
    return this.#running;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    // whoever ends hands its turn on: the count stays
    if (this.#running >= this.#limit) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    else this.#running++;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
