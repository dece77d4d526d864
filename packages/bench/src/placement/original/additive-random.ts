/** Words of state, the lag, and the draws thrown away after seeding. */
const WORDS = 31;
const LAG = 3;
const WARM_UP = 310;

/**
 * The additive generator of the C library's `random()`, which PHP 5 gives out as `rand()`: x_i = x_{i−31} + x_{i−3} over 32 bits, the
 * lowest bit dropped.
 *
 * Source: BSD's random(3), degree 31; seeded by x ← 16 807·x mod (2^31 − 1), as Park and Miller, CACM 31(10), 1988.
 */
export class AdditiveRandom {
  readonly #state = new Int32Array(WORDS);
  #front = LAG;

  /** Begins again. @param seed  0..2^31−1; 0 is taken for 123 459 876, since it would give zeros only */
  seed(seed: number): void {
    this.#state[0] = seed;
    let word = seed;
    for (let i = 1; i < WORDS; i++) {
      word = ((word === 0 ? 123_459_876 : word) * 16_807) % 0x7fff_ffff;
      this.#state[i] = word;
    }
    this.#front = LAG;
    for (let i = 0; i < WARM_UP; i++) this.uint31();
  }

  /** 0..2^31−1. */
  uint31(): number {
    const front = this.#front;
    const rear = (front + WORDS - LAG) % WORDS;
    const sum = (this.#state[front]! + this.#state[rear]!) | 0;
    this.#state[front] = sum;
    this.#front = (front + 1) % WORDS;
    return (sum >>> 1) & 0x7fff_ffff;
  }
}
