import { SeededRandom } from '@webdfs/base';
import { UNIT_WEIGHT } from '@webdfs/placement';
import type { Subclusters } from '../layout.ts';
import type { Placed } from '../placed.ts';
import { ORIGINAL_KEYS, type OriginalLocator, type OriginalSubcluster } from './original-locators.ts';

type Build = (subclusters: readonly OriginalSubcluster[], copies: number) => OriginalLocator;

/** Every key there is under one layout: the names of an experiment are draws from these. */
export function everyKey(build: Build, subclusters: Subclusters, copies: number): Placed {
  const locate = build(
    subclusters.map(({ nodes }) => ({
      weight: nodes[0]!.weight / UNIT_WEIGHT,
      disks: nodes.map((node) => node.id),
    })),
    copies,
  );
  const rows = new Uint16Array(ORIGINAL_KEYS * copies);
  for (let key = 0; key < ORIGINAL_KEYS; key++) rows.set(locate(key), key * copies);
  return { subclusters, copies, groupCount: ORIGINAL_KEYS, rows };
}

/** Objects with the given keys. */
export function withKeys(every: Placed, keys: Uint16Array): Placed {
  const { copies } = every;
  const rows = new Uint16Array(keys.length * copies);
  for (const [i, key] of keys.entries()) rows.set(every.rows.subarray(key * copies, (key + 1) * copies), i * copies);
  return { ...every, groupCount: keys.length, rows };
}

/** Keys of fresh random names. */
export function randomKeys(count: number, seed: number): Uint16Array {
  const random = new SeededRandom(seed);
  return Uint16Array.from({ length: count }, () => random.uint32() >>> 17);
}
