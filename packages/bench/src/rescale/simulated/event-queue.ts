interface Event {
  readonly at: number;
  readonly order: number;
  readonly action: () => void;
}

function before(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** Virtual time in seconds: actions run in order of time, those of one time in the order in which they were asked for. */
export class EventQueue {
  #now = 0;
  #order = 0;
  readonly #heap: Event[] = [];

  get now(): number {
    return this.#now;
  }

  at(seconds: number, action: () => void): void {
    const event = { at: Math.max(seconds, this.#now), order: this.#order++, action };
    const heap = this.#heap;
    let i = heap.length;
    heap.push(event);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!before(event, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = event;
  }

  /** Runs until nothing is left to do. */
  run(): void {
    for (let event = this.#take(); event !== undefined; event = this.#take()) {
      this.#now = event.at;
      event.action();
    }
  }

  #take(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || last === undefined) return first;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return first;
  }
}
