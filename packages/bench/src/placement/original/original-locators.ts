import { crc32 } from 'node:zlib';
import { AdditiveRandom } from './additive-random.ts';
import { MersenneTwister, type MersenneTwisterOptions, RAND_MAX, scaleDraw } from './mersenne-twister.ts';

/**
 * The two locators of WebDFS as it was in 2009, draw for draw, with what later placement does better: keys of 15 bits, seeds
 * from positions instead of ids, primes that may divide. For experiments only: no cluster places by them.
 */

/** Disks added together, oldest first: numbers of disks, and the weight of each. */
export interface OriginalSubcluster {
  readonly weight: number;
  readonly disks: readonly number[];
}

/** The disks that hold an object, in the order of the original. @param key  0..32 767, see `originalKey` */
export type OriginalLocator = (key: number) => number[];

export const ORIGINAL_KEYS = 32_768;
/** Keeps the seeds of the choice of disks apart from those of the draw. */
const CHOICE_SEED = 1560;

/** The key of a name: bits 16 to 30 of its CRC32. */
export function originalKey(name: string): number {
  return (crc32(name) >>> 16) & 0x7fff;
}

/** How many of `copies` land on a sub-cluster: each draw takes a disk out of both weights if it hits. */
function drawHits(
  twister: MersenneTwister,
  draw: { copies: number; here: number; total: number; weight: number },
): number {
  let { here, total } = draw;
  let hits = 0;
  for (let i = 0; i < draw.copies; i++) {
    if (total === 0) continue;
    const hit = (twister.uint32() >>> 1) / RAND_MAX <= here / total;
    if (hit) {
      hits++;
      here -= draw.weight;
    }
    total -= draw.weight;
  }
  return hits;
}

/** Takes `count` of the disks by a partial shuffle. */
function chooseDisks(twister: MersenneTwister, disks: readonly number[], count: number): number[] {
  const left = [...disks];
  const chosen: number[] = [];
  for (let i = 0; i < count; i++) {
    const last = left.length - i - 1;
    const at = scaleDraw(twister.uint32() >>> 1, 0, last);
    const disk = left[at]!;
    left[at] = left[last]!;
    left[last] = disk;
    chosen.push(disk);
  }
  return chosen;
}

/**
 * RUSH_R as WebDFS had it. A key that finds too few disks gets a short list.
 *
 * @param twist  `right` shows what the defect of PHP 5 does to the figures
 */
export function originalRushR(
  subclusters: readonly OriginalSubcluster[],
  copies: number,
  twist: MersenneTwisterOptions['twist'] = 'php5',
): OriginalLocator {
  const twister = new MersenneTwister(0, { twist });
  return (key) => {
    const found: number[] = [];
    let disksBelow = subclusters.reduce((sum, { disks }) => sum + disks.length, 0);
    let weightBelow = subclusters.reduce((sum, { disks, weight }) => sum + disks.length * weight, 0);
    for (let index = subclusters.length - 1; index >= 0 && found.length < copies; index--) {
      const { disks, weight } = subclusters[index]!;
      const here = disks.length * weight;
      disksBelow -= disks.length;
      weightBelow -= here;
      twister.seed(key + index);
      const left = copies - found.length;
      const must = Math.max(0, left - disksBelow);
      const draw = { copies: left - must, here: here - must, total: here + weightBelow - must, weight };
      const count = Math.min(disks.length, must + drawHits(twister, draw));
      if (count === 0) continue;
      twister.seed(key + index + CHOICE_SEED);
      found.push(...chooseDisks(twister, disks, count));
    }
    return found;
  };
}

/** The first prime above `number`. */
function primeAbove(number: number): number {
  for (let candidate = number + 1; ; candidate++) {
    let divisor = 2;
    while (divisor * divisor <= candidate && candidate % divisor !== 0) divisor++;
    if (divisor * divisor > candidate) return candidate;
  }
}

/** RUSH_P as WebDFS had it, on top of `random()` as BSD has it. A rank that no sub-cluster takes is left out. */
export function originalRushP(subclusters: readonly OriginalSubcluster[], copies: number): OriginalLocator {
  const random = new AdditiveRandom();
  let below = 0;
  const layers = subclusters.map(({ disks, weight }, index) => {
    const here = disks.length * weight;
    const layer = { disks, weight, here, total: below + here, prime: primeAbove(here), index };
    below += here;
    return layer;
  });
  layers.reverse();

  const draws = new Uint32Array(layers.length + 1);
  return (key) => {
    // the original seeds anew for every sub-cluster and draws once more than its index: one sequence, read from its front
    random.seed(key);
    for (let i = 0; i < draws.length; i++) draws[i] = random.uint31();
    const base = layers.map((layer) => scaleDraw(draws[layer.index + 1]!, 0, layer.total - 1));
    const found: number[] = [];
    for (let rank = 0; rank < copies; rank++) {
      for (const [i, layer] of layers.entries()) {
        const shifted = base[i]! + rank * layer.prime;
        const place = shifted % layer.total;
        const size = layer.disks.length;
        if (size >= copies && place < layer.here) {
          found.push(layer.disks[(key + shifted) % size]!);
          break;
        }
        if (size < copies && place < copies * layer.weight && (key + shifted) % copies < size) {
          found.push(layer.disks[(key + shifted) % copies]!);
          break;
        }
      }
    }
    return found;
  };
}
