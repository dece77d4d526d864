/** Words of state, and the distance of the word that is mixed in. */
const WORDS = 624;
const MIDDLE = 397;

export interface MersenneTwisterOptions {
  /**
   * `php5`: the twist of PHP up to 7.0, which takes the lowest bit from the upper of the two words instead of the lower.
   * `right`: as published.
   */
  readonly twist: 'php5' | 'right';
}

/**
 * MT19937, re-seeded at will: the generator under PHP's `mt_srand` and `mt_rand`.
 *
 * Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998, seeded as in their code of 2002. The defect of PHP's
 * twist was corrected in PHP 7.1, where `MT_RAND_PHP` still asks for it.
 */
export class MersenneTwister {
  readonly #state = new Int32Array(WORDS);
  readonly #defect: boolean;
  #next = 0;

  constructor(seed: number, options: MersenneTwisterOptions) {
    this.#defect = options.twist === 'php5';
    this.seed(seed);
  }

  /** Begins again. @param seed  32 bits count */
  seed(seed: number): void {
    let word = seed | 0;
    this.#state[0] = word;
    for (let i = 1; i < WORDS; i++) {
      word = (Math.imul(1_812_433_253, word ^ (word >>> 30)) + i) | 0;
      this.#state[i] = word;
    }
    this.#next = 0;
  }

  /** 32 bits, 0..2^32−1. A word is twisted when it is due: few are drawn between two seeds. */
  uint32(): number {
    const state = this.#state;
    const i = this.#next;
    const after = (i + 1) % WORDS;
    const upper = state[i]!;
    const lower = state[after]!;
    const mixed = (upper & 0x8000_0000) | (lower & 0x7fff_ffff);
    const lowBit = (this.#defect ? upper : lower) & 1;
    let word = state[(i + MIDDLE) % WORDS]! ^ (mixed >>> 1) ^ (lowBit === 1 ? 0x9908_b0df : 0);
    state[i] = word;
    this.#next = after;
    word ^= word >>> 11;
    word ^= (word << 7) & 0x9d2c_5680;
    word ^= (word << 15) & 0xefc6_0000;
    return (word ^ (word >>> 18)) >>> 0;
  }
}

/** What `mt_getrandmax()` and `getrandmax()` answer. */
export const RAND_MAX = 0x7fff_ffff;

/** PHP's way into a range: scaled, both ends included. @param draw  0..RAND_MAX */
export function scaleDraw(draw: number, least: number, most: number): number {
  return least + Math.trunc((most - least + 1) * (draw / (RAND_MAX + 1)));
}
