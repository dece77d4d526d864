const TILE_BYTES = 256 * 1024;
/** A read on this thread that took longer was not cached. */
const SLOW_READ_MS = 1;
const LEAST_TILES = 64;
/** What a read that was cached gives back of a budget that was halved. */
const REGAINED_TILES = 0.04;

/**
 * Guesses which parts of the volumes the system has cached: what this process wrote or read lately, in tiles of 256 KiB (one read),
 * up to a budget. A guess that proves wrong (a slow read) halves the budget; each right one gives a little back.
 */
export class Residency {
  readonly #most: number;
  #budget: number;
  /** Tiles, oldest first. */
  readonly #tiles = new Set<number>();
  #last = -1;
  slowReads = 0;

  /** @param bytes  how much may be thought to be cached */
  constructor(bytes: number) {
    this.#most = Math.max(LEAST_TILES, Math.floor(bytes / TILE_BYTES));
    this.#budget = this.#most;
  }

  /** Bytes were written or read: they are cached now. */
  touch(volume: number, place: number, count: number): void {
    const first = tileOf(volume, place);
    const final = tileOf(volume, place + Math.max(0, count - 1));
    if (first === this.#last && final === first) return;
    for (let tile = first; tile <= final; tile++) {
      if (!this.#tiles.has(tile)) this.#tiles.add(tile);
    }
    this.#last = final;
    while (this.#tiles.size > this.#budget) this.#tiles.delete(this.#tiles.values().next().value!);
  }

  isCached(volume: number, place: number, count: number): boolean {
    return this.#tiles.has(tileOf(volume, place)) && this.#tiles.has(tileOf(volume, place + Math.max(0, count - 1)));
  }

  /** How long a read on this thread took. */
  readTook(ms: number): void {
    if (ms <= SLOW_READ_MS) {
      if (this.#budget < this.#most) this.#budget = Math.min(this.#most, this.#budget + REGAINED_TILES);
      return;
    }
    this.slowReads += 1;
    this.#budget = Math.max(LEAST_TILES, Math.floor(this.#budget / 2));
  }
}

/** Volumes have at most 2^17 tiles (32 GiB). */
function tileOf(volume: number, place: number): number {
  return volume * 131_072 + Math.floor(place / TILE_BYTES);
}
