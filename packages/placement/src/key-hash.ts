import type { GroupId } from './ids.ts';

const C1 = 0x239b961b;
const C2 = 0xab0e9789;
const C3 = 0x38b34ae5;
const C4 = 0xa1e38b93;

/** The first 64 bits of a hash, as two unsigned words; `high` decides the group. */
export interface KeyHash {
  readonly high: number;
  readonly low: number;
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

function avalanche(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

function wordAt(bytes: Uint8Array, offset: number): number {
  return bytes[offset]! | (bytes[offset + 1]! << 8) | (bytes[offset + 2]! << 16) | (bytes[offset + 3]! << 24);
}

/** The bytes from `offset` on, at most four, as one little-endian word; missing ones are 0. */
function partAt(bytes: Uint8Array, offset: number): number {
  let word = 0;
  for (let i = Math.min(offset + 4, bytes.length) - 1; i >= offset; i--) word = (word << 8) | bytes[i]!;
  return word;
}

/**
 * MurmurHash3, x86_128, all 128 bits as four unsigned words. Only 32-bit operations, so that every engine agrees.
 *
 * Source: Appleby, SMHasher, MurmurHash3.cpp (public domain).
 */
export function murmur128(bytes: Uint8Array, seed = 0): readonly [number, number, number, number] {
  let h1 = seed | 0;
  let h2 = h1;
  let h3 = h1;
  let h4 = h1;
  const whole = bytes.length & ~15;
  for (let at = 0; at < whole; at += 16) {
    h1 ^= Math.imul(rotate(Math.imul(wordAt(bytes, at), C1), 15), C2);
    h1 = (Math.imul((rotate(h1, 19) + h2) | 0, 5) + 0x561ccd1b) | 0;
    h2 ^= Math.imul(rotate(Math.imul(wordAt(bytes, at + 4), C2), 16), C3);
    h2 = (Math.imul((rotate(h2, 17) + h3) | 0, 5) + 0x0bcaa747) | 0;
    h3 ^= Math.imul(rotate(Math.imul(wordAt(bytes, at + 8), C3), 17), C4);
    h3 = (Math.imul((rotate(h3, 15) + h4) | 0, 5) + 0x96cd1c35) | 0;
    h4 ^= Math.imul(rotate(Math.imul(wordAt(bytes, at + 12), C4), 18), C1);
    h4 = (Math.imul((rotate(h4, 13) + h1) | 0, 5) + 0x32ac3b17) | 0;
  }
  // a missing word is 0 and mixes to 0, so no case per length is needed
  h4 ^= Math.imul(rotate(Math.imul(partAt(bytes, whole + 12), C4), 18), C1);
  h3 ^= Math.imul(rotate(Math.imul(partAt(bytes, whole + 8), C3), 17), C4);
  h2 ^= Math.imul(rotate(Math.imul(partAt(bytes, whole + 4), C2), 16), C3);
  h1 ^= Math.imul(rotate(Math.imul(partAt(bytes, whole), C1), 15), C2);
  return finish(h1 ^ bytes.length, h2 ^ bytes.length, h3 ^ bytes.length, h4 ^ bytes.length);
}

function finish(a: number, b: number, c: number, d: number): readonly [number, number, number, number] {
  let h1 = (a + b + c + d) | 0;
  let h2 = avalanche((b + h1) | 0);
  let h3 = avalanche((c + h1) | 0);
  let h4 = avalanche((d + h1) | 0);
  h1 = avalanche(h1);
  h1 = (h1 + h2 + h3 + h4) | 0;
  h2 = (h2 + h1) | 0;
  h3 = (h3 + h1) | 0;
  h4 = (h4 + h1) | 0;
  return [h1 >>> 0, h2 >>> 0, h3 >>> 0, h4 >>> 0];
}

/** The placement hash of a key's canonical bytes: the first 64 bits of MurmurHash3 x86_128 with seed 0. */
export function hashKey(bytes: Uint8Array): KeyHash {
  const [high, low] = murmur128(bytes);
  return { high, low };
}

/**
 * The group of a key: the top bits of its hash, so that doubling the groups splits group g into 2g and 2g + 1.
 *
 * @param high       first word of the key's hash, unsigned
 * @param groupBits  log2 of the number of groups, 0..32
 */
export function groupOf(high: number, groupBits: number): GroupId {
  return (groupBits === 0 ? 0 : high >>> (32 - groupBits)) as GroupId;
}
