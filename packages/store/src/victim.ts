import { SEAL_BYTES } from './entry-format.ts';
import { VOLUME_HEAD_BYTES } from './volume-format.ts';

/** Tombstones that could go are a reason to rewrite their volume; tombstones that wait, one to rewrite the oldest. */
const TOMBSTONE_SHARE = 0.05;

/** What the choice goes by: see `Volume`. */
export interface VolumeFacts {
  readonly id: number;
  readonly size: number;
  readonly live: number;
  readonly tombstones: number;
  readonly horizon: number;
}

export interface ChoiceOptions<V> {
  /** The share of garbage from which a volume is worth rewriting. */
  readonly leastShare: number;
  /** The highest id given out. */
  readonly highest: number;
  /** Whether a volume may be rewritten at all now. */
  readonly allowed: (volume: V) => boolean;
}

/**
 * Whether another file may hold something that a tombstone of this volume takes away: any that existed when the last of
 * its tombstones was applied. Later files cannot: what was removed is not copied into them.
 */
export function mustKeepTombstones(volume: VolumeFacts, all: readonly VolumeFacts[]): boolean {
  return all.some((other) => other.id !== volume.id && other.id <= volume.horizon);
}

/**
 * The volume to rewrite next: of those with enough garbage the one with the largest share of it times its age; else, if too
 * many tombstones wait for old files to go, the oldest. Undefined: nothing is worth it. Every rewriting either frees space
 * or takes away an old file, so that repeating it ends.
 *
 * Source: Rosenblum and Ousterhout, "The design and implementation of a log-structured file system", TOCS 10(1), 1992, 3.5.
 */
export function chooseVolume<V extends VolumeFacts>(all: readonly V[], options: ChoiceOptions<V>): V | undefined {
  const kept = keptTombstones(all);
  const allowed = all.filter(options.allowed);
  let best: V | undefined;
  let bestScore = 0;
  for (const volume of allowed) {
    const waiting = kept.get(volume) ?? 0;
    if (!isWorthIt(volume, waiting, options.leastShare)) continue;
    const score = Math.max(garbageShare(volume, waiting), Number.EPSILON) * (options.highest - volume.id + 1);
    if (score <= bestScore) continue;
    best = volume;
    bestScore = score;
  }
  return best ?? oldestInTheWay(all, allowed, kept);
}

/** Bytes of tombstones that must stay, per volume that has such. */
function keptTombstones<V extends VolumeFacts>(all: readonly V[]): Map<V, number> {
  const [lowest = Infinity, second = Infinity] = all.map(({ id }) => id).sort((a, b) => a - b);
  const kept = new Map<V, number>();
  for (const volume of all) {
    const oldestOther = volume.id === lowest ? second : lowest;
    if (oldestOther <= volume.horizon && volume.tombstones > 0) kept.set(volume, volume.tombstones);
  }
  return kept;
}

function garbageShare(volume: VolumeFacts, waiting: number): number {
  return (volume.size - VOLUME_HEAD_BYTES - SEAL_BYTES - volume.live - waiting) / volume.size;
}

function isWorthIt(volume: VolumeFacts, waiting: number, leastShare: number): boolean {
  if (volume.live === 0 && waiting === 0) return true;
  if (garbageShare(volume, waiting) >= leastShare) return true;
  return waiting === 0 && volume.tombstones > volume.size * TOMBSTONE_SHARE;
}

function oldestInTheWay<V extends VolumeFacts>(
  all: readonly V[],
  allowed: readonly V[],
  kept: ReadonlyMap<V, number>,
): V | undefined {
  let total = 0;
  for (const volume of all) total += volume.size;
  let waiting = 0;
  let horizon = 0;
  for (const [volume, bytes] of kept) {
    waiting += bytes;
    horizon = Math.max(horizon, volume.horizon);
  }
  if (waiting <= total * TOMBSTONE_SHARE) return undefined;
  return allowed.filter(({ id }) => id <= horizon).sort((a, b) => a.id - b.id)[0];
}
