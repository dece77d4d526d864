/** A cyclic redundancy check in its reflected form, all ones before and after, as all three of S3's are. */
export interface CrcKind {
  readonly bits: 32 | 64;
  /** Reflected polynomial. */
  readonly polynomial: bigint;
}

export const CRC_KINDS = {
  crc32: { bits: 32, polynomial: 0xedb88320n },
  crc32c: { bits: 32, polynomial: 0x82f63b78n },
  crc64nvme: { bits: 64, polynomial: 0x9a6c9329ac4bc9b5n },
} as const satisfies Record<string, CrcKind>;

/** Product of two polynomials modulo the kind's, in reflected form: the highest bit is x^0. */
function product({ bits, polynomial }: CrcKind, a: bigint, b: bigint): bigint {
  let sum = 0n;
  let shifted = b;
  for (let bit = 1n << BigInt(bits - 1); bit > 0n; bit >>= 1n) {
    if ((a & bit) !== 0n) sum ^= shifted;
    shifted = (shifted & 1n) === 0n ? shifted >> 1n : (shifted >> 1n) ^ polynomial;
  }
  return sum;
}

/** x^(8 · bytes) modulo the kind's polynomial. */
function shiftBy(kind: CrcKind, bytes: number): bigint {
  let power = 1n << BigInt(kind.bits - 1); // x^0
  let square = 1n << BigInt(kind.bits - 1 - 8); // x^8, then x^16, …
  for (let left = bytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) power = product(kind, power, square);
    square = product(kind, square, square);
  }
  return power;
}

/**
 * The CRC of several pieces one after another from the CRC and length of each, without their bytes.
 *
 * Cost: one multiplication per piece, and some tens more for each new length.
 * Source: Adler, zlib, `crc32_combine`; the arithmetic is that of any reflected CRC.
 */
export function combineCrcs(kind: CrcKind, pieces: Iterable<{ readonly crc: bigint; readonly size: number }>): bigint {
  let whole = 0n;
  let size = -1;
  let shift = 0n;
  for (const piece of pieces) {
    if (piece.size !== size) {
      size = piece.size;
      shift = shiftBy(kind, size);
    }
    whole = product(kind, whole, shift) ^ piece.crc;
  }
  return whole;
}
