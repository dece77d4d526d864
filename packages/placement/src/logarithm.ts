const LN2 = 0.6931471805599453;
/** 2^−e at index e + 1, for e = −1…31: a product with it is exact, and quicker than a power. */
const SCALE = Float64Array.from({ length: 33 }, (_, i) => 2 ** (1 - i));

/**
 * ln((h + 0.5) / 2^32) for an unsigned 32-bit `h`: never 0, never infinite.
 *
 * Made of + − × ÷ alone, which IEEE 754 rounds exactly, because ECMAScript leaves the last bit of `Math.log` to the engine and
 * one bit is enough to send a group elsewhere. x = m · 2^e with 1 ≤ m < 2; ln m = 2(s + s³/3 + … + s²³/23), s = (m − 1)/(m + 1).
 * Within 1.1e-13 of the true value; the number of terms belongs to the algorithm's version.
 */
export function logUnit(h: number): number {
  const exponent = 31 - Math.clz32(h);
  const m = (h + 0.5) * SCALE[exponent + 1]!;
  const s = (m - 1) / (m + 1);
  const q = s * s;
  let sum = 1 / 23;
  sum = sum * q + 1 / 21;
  sum = sum * q + 1 / 19;
  sum = sum * q + 1 / 17;
  sum = sum * q + 1 / 15;
  sum = sum * q + 1 / 13;
  sum = sum * q + 1 / 11;
  sum = sum * q + 1 / 9;
  sum = sum * q + 1 / 7;
  sum = sum * q + 1 / 5;
  sum = sum * q + 1 / 3;
  sum = sum * q + 1;
  return 2 * s * sum + (exponent - 32) * LN2;
}
