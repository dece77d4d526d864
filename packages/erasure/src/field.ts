/**
 * Finite fields GF(2^8) and GF(2^16): addition is XOR, multiplication is of polynomials modulo one that is primitive, so that the
 * powers of 2 run through all elements but 0. Elements are numbers, 0..2^bits − 1.
 *
 * Tables of logarithms serve whoever needs a few products (matrices, odd ends). Blocks of memory are multiplied by a kernel.
 */
export interface Field {
  readonly bits: 8 | 16;
  /** Bytes of a symbol in a block; GF(2^16) reads them little-endian. */
  readonly symbolBytes: 1 | 2;
  readonly polynomial: number;
  readonly multiply: (a: number, b: number) => number;
  /** The element that gives 1 with `a`. @throws RangeError if `a` is 0 */
  readonly inverse: (a: number) => number;
  /** 2 to the power of any whole number. */
  readonly power: (exponent: number) => number;
  /** The power of 2 that is `a`, 0..2^bits − 2. @throws RangeError if `a` is 0 */
  readonly logarithm: (a: number) => number;
}

function makeField(bits: 8 | 16, polynomial: number): Field {
  const order = (1 << bits) - 1;
  const logarithms = new Uint16Array(order + 1);
  // twice in a row: the sum of two logarithms needs no remainder
  const powers = new Uint16Array(2 * order);
  for (let exponent = 0, element = 1; exponent < order; exponent++) {
    powers[exponent] = element;
    powers[exponent + order] = element;
    logarithms[element] = exponent;
    element <<= 1;
    if (element > order) element ^= polynomial;
  }
  const logarithm = (a: number): number => {
    if (a === 0) throw new RangeError('0 has no logarithm and no inverse');
    return logarithms[a]!;
  };
  return {
    bits,
    symbolBytes: bits === 8 ? 1 : 2,
    polynomial,
    logarithm,
    multiply: (a, b) => (a === 0 || b === 0 ? 0 : powers[logarithms[a]! + logarithms[b]!]!),
    inverse: (a) => powers[order - logarithm(a)]!,
    power: (exponent) => powers[((exponent % order) + order) % order]!,
  };
}

/** x^8 + x^4 + x^3 + x^2 + 1, as in RAID-6, QR codes and most storage codes. */
export const GF8: Field = makeField(8, 0x11d);

/** x^16 + x^12 + x^3 + x + 1, the field of the LH*RS prototype of 2004. */
export const GF16: Field = makeField(16, 0x1100b);
