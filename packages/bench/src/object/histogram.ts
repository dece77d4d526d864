/** Latencies, kept whole up to a bound and sampled evenly beyond it (reservoir: Vitter, algorithm R, 1985). */
import type { Random } from '@webdfs/base';

export const MAX_SAMPLES = 200_000;

export class Histogram {
  readonly #samples: number[] = [];
  readonly #random: Random;
  #count = 0;
  #sum = 0;
  #largest = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  add(value: number): void {
    this.#count++;
    this.#sum += value;
    this.#largest = Math.max(this.#largest, value);
    if (this.#samples.length < MAX_SAMPLES) {
      this.#samples.push(value);
      return;
    }
    const slot = Math.floor(this.#random.fraction() * this.#count);
    if (slot < MAX_SAMPLES) this.#samples[slot] = value;
  }

  get count(): number {
    return this.#count;
  }

  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count;
  }

  get largest(): number {
    return this.#largest;
  }

  /** The values at the given shares (0..1), nearest rank; 0 where nothing was added. */
  percentiles(shares: readonly number[]): number[] {
    const sorted = this.#samples.toSorted((a, b) => a - b);
    return shares.map((share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0);
  }
}
