/** Waits of one kind that are kept; of more, the newest. */
const KEPT = 512;
/** Fewer say nothing of a 95th percentile; they are kept for the next look, for so many looks. */
const LEAST = 20;
const MOST_LOOKS = 10;

interface Kind {
  readonly waits: Float64Array;
  count: number;
  looks: number;
}

/** How long clients waited since the last look, by kind of request. */
export class WaitSamples {
  readonly #kinds = new Map<string, Kind>();
  #isUsed = false;

  /** @param kind  of few: each has a table of its own */
  add(kind: string, waitMs: number): void {
    let of = this.#kinds.get(kind);
    if (of === undefined) {
      of = { waits: new Float64Array(KEPT), count: 0, looks: 0 };
      this.#kinds.set(kind, of);
    }
    of.waits[of.count++ % KEPT] = waitMs;
    this.#isUsed = true;
  }

  /** The 95th percentile of each kind of which there are enough; those begin anew. */
  take(): { readonly hasClients: boolean; readonly waits: ReadonlyMap<string, number> } {
    const hasClients = this.#isUsed;
    this.#isUsed = false;
    const waits = new Map<string, number>();
    for (const [kind, of] of this.#kinds) {
      of.looks++;
      const isEnough = of.count >= LEAST;
      if (isEnough) {
        const sorted = of.waits.slice(0, Math.min(of.count, KEPT)).sort();
        waits.set(kind, sorted[Math.floor(0.95 * (sorted.length - 1))]!);
      }
      if (isEnough || of.looks >= MOST_LOOKS) [of.count, of.looks] = [0, 0];
    }
    return { hasClients, waits };
  }
}
