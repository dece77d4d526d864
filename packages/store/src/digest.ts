const MODULUS = 2 ** 48;
const HIGH = 4_294_967_296;

/** Murmur3's finaliser: every bit of the input moves about half of the output's. */
function mix(value: number): number {
  let h = value >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** 48 bits of a key's placement hash and the sequence of its version. Two members that agree on all have equal sums. */
export function digestOf(hashHigh: number, hashLow: number, sequence: number): number {
  const low = mix(hashHigh ^ mix(hashLow ^ mix((sequence >>> 0) ^ Math.imul(Math.floor(sequence / HIGH), 0x9e3779b1))));
  const high = mix(low ^ hashLow ^ 0x27d4eb2f);
  return (high & 0xffff) * HIGH + low;
}

export function addDigest(sum: number, digest: number): number {
  return (sum + digest) % MODULUS;
}

export function subtractDigest(sum: number, digest: number): number {
  return (sum - digest + MODULUS) % MODULUS;
}
