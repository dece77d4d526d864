import { assert, type Timer } from '@webdfs/base';

/** What happens at an instant. */
interface Happening {
  at: number;
  /** Of two at one instant the one that was asked for first comes first. */
  readonly order: number;
  readonly owner: number;
  action: (() => void) | undefined;
}

function before(a: Happening, b: Happening): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/**
 * The time of a simulated world: a queue of what is to happen, run one after another. Between two, everything that follows
 * from the first at once (promises, microtasks) is let run, so that the order of all things depends on the queue alone.
 *
 * Happenings have an owner (a machine; 0: the world), so that those of one machine can be held up while it stands still.
 */
export class SimulatedTime {
  #now = 0;
  #order = 0;
  #heap: Happening[] = [];
  readonly #held = new Map<number, Happening[]>();
  /** Everything that has happened, as one number: two runs with the same are the same run. */
  #digest = 0x811c9dc5;
  happened = 0;

  /** Milliseconds since the world began. */
  get now(): number {
    return this.#now;
  }

  /** Eight hex digits. */
  get digest(): string {
    return this.#digest.toString(16).padStart(8, '0');
  }

  /** Mixes a fact of this run into its digest. Source: FNV-1a, 32 bit, by numbers instead of bytes. */
  note(fact: number): void {
    this.#digest = Math.imul(this.#digest ^ (fact & 0xffff), 0x01000193) >>> 0;
    this.#digest = Math.imul(this.#digest ^ ((fact >>> 16) & 0xffff), 0x01000193) >>> 0;
  }

  noteText(text: string): void {
    for (let i = 0; i < text.length; i++) this.#digest = Math.imul(this.#digest ^ text.charCodeAt(i), 0x01000193) >>> 0;
  }

  after(ms: number, owner: number, action: () => void): Timer {
    const happening: Happening = { at: this.#now + Math.max(0, ms), order: this.#order++, owner, action };
    this.#push(happening);
    // What is cancelled stays in the queue until its time comes.
    return { cancel: () => void (happening.action = undefined) };
  }

  /** From now on nothing of this owner happens. */
  hold(owner: number): void {
    if (!this.#held.has(owner)) this.#held.set(owner, []);
  }

  /** What was held up happens now, in its order; or, if its timers stood still too, everything is late by `laterMs`. */
  release(owner: number, laterMs = 0): void {
    const held = this.#held.get(owner) ?? [];
    this.#held.delete(owner);
    if (laterMs > 0) {
      const all = this.#heap;
      this.#heap = [];
      for (const each of all) {
        if (each.owner === owner) each.at += laterMs;
        this.#push(each);
      }
    }
    for (const happening of held) {
      happening.at = laterMs > 0 ? happening.at + laterMs : this.#now;
      this.#push(happening);
    }
  }

  /** Nothing of this owner that was asked for before will happen. */
  forget(owner: number): void {
    this.#held.delete(owner);
    for (const happening of this.#heap) if (happening.owner === owner) happening.action = undefined;
  }

  /** Runs what happens until `isOver` or `untilMs`. @throws what a happening throws */
  async run(untilMs: number, isOver: () => boolean = () => false): Promise<void> {
    while (!isOver()) {
      const next = this.#heap[0];
      if (next === undefined || next.at > untilMs) {
        this.#now = Math.max(this.#now, untilMs);
        return;
      }
      this.#pop();
      if (next.action === undefined) continue;
      const held = this.#held.get(next.owner);
      if (held !== undefined) {
        held.push(next);
        continue;
      }
      assert(next.at >= this.#now, 'time does not go back');
      this.#now = next.at;
      this.happened += 1;
      this.note(next.order);
      this.note(Math.floor(next.at * 64));
      next.action();
      await settled();
    }
  }

  #push(happening: Happening): void {
    const heap = this.#heap;
    heap.push(happening);
    let at = heap.length - 1;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      if (!before(happening, heap[above]!)) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = happening;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && before(heap[below + 1]!, heap[below]!)) below += 1;
      if (!before(heap[below]!, last)) break;
      heap[at] = heap[below]!;
      at = below;
    }
    heap[at] = last;
  }
}

/** Resolves when all that was to follow at once has followed: immediates come after every microtask. */
export function settled(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
