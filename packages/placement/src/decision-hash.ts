/**
 * Chance for decisions: a 32-bit hash of (seed, group, id, salt). Murmur3-style mixing of 32-bit words.
 * For one group and salt it is a bijection of the id, so two nodes never share a value.
 *
 * Part of every algorithm's version: a change here moves data.
 */

/** What a draw is for; a node and a sub-cluster with the same id must not draw alike. */
export const SALT = {
  NODE: 0,
  SUBCLUSTER: 1,
  SHUFFLE: 2,
  SUBCLUSTER_LOW: 3,
  KEY: 4,
  /** From here on: one for each rank or trial of an algorithm, and for each level of a tree. */
  FIRST_TRIAL: 16,
} as const;

/** The mixed form of a word, to be computed once for ids that are used for many groups. */
export function mixWord(word: number): number {
  const k = Math.imul(word, 0xcc9e2d51);
  return Math.imul((k << 15) | (k >>> 17), 0x1b873593);
}

/** Takes an already mixed word into the state. */
function takeWord(state: number, mixed: number): number {
  const h = state ^ mixed;
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
}

function avalanche(state: number): number {
  let h = state;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The state after seed and group: the part that all nodes of a group share. */
export function groupState(seed: number, group: number): number {
  return takeWord(takeWord(seed | 0, mixWord(group)), 0x10);
}

/** Uniform in 0..2^32−1 for an id that went through `mixWord`. */
export function decide(state: number, mixedId: number, salt: number): number {
  return avalanche(takeWord(takeWord(state, mixedId), mixWord(salt)));
}

/** Draw `index` of the stream that begins at `start`: costs the same for every index. Uniform in 0..2^32−1. */
export function streamDraw(start: number, index: number): number {
  return avalanche((start + Math.imul(index + 1, 0x9e3779b9)) | 0);
}
