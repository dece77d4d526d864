import { WebdfsError } from '@webdfs/base/errors';
import { type Field, GF8, GF16 } from './field.ts';
import type { Matrix } from './matrix.ts';

/**
 * The codes: which parity matrix over which field. `P[p][d]` is what data shard d gives to parity shard p.
 *
 * All of them are Cauchy matrices, `1 / (x_p + y_d)` for distinct x and y, whose rows and columns were scaled until the first of
 * each holds only ones. A square submatrix of a Cauchy matrix is one itself and has the determinant
 * `∏(x_i − x_j)(y_i − y_j) / ∏(x_i + y_j)`, which is not 0, and scaling keeps it so: hence any `data` of all shards restore the rest.
 * An entry depends on p and d alone, so a code grows to more parity or more data without touching what is there.
 *
 * Stored data names its code by `id`: what an id means never changes.
 */
export interface Code {
  readonly id: number;
  readonly field: Field;
  readonly maxData: number;
  readonly maxParity: number;
  readonly coefficient: (parity: number, data: number) => number;
}

/** Up to so many data and parity shards every loss is proven repairable, pattern by pattern, by a test. */
export const MAX_DATA = 32;
export const MAX_PARITY = 8;

/** x_p = p and y_d = 2^(bits−1) + d. */
function cauchy(field: Field): Code['coefficient'] {
  const y = (data: number): number => (1 << (field.bits - 1)) + data;
  return (parity, data) => {
    const numerator = field.multiply(parity ^ y(0), y(data));
    const denominator = field.multiply(parity ^ y(data), y(0));
    return field.multiply(numerator, field.inverse(denominator));
  };
}

/** x = ∞, 0, 2, 4, 8 … and y_d = 1 / 2^d: the second row becomes the powers of 2, which cost a doubling each. */
function doubling(field: Field): Code['coefficient'] {
  return (parity, data) => {
    if (parity === 0) return 1;
    const x = parity === 1 ? 0 : field.power(parity - 1);
    return field.multiply(x ^ 1, field.inverse(x ^ field.power(-data)));
  };
}

/**
 * Parity matrix of the LH*RS prototype, four data and three parity buckets, over GF(2^16).
 * Source: Moussa, "LH*RS", thesis presentation, Paris Dauphine, 2004, slide 15 (there transposed).
 */
const THESIS: Matrix = [
  [1, 1, 1, 1],
  [1, 0xeb9b, 0x2284, 0x9e44],
  [1, 0x2284, 0x9e74, 0xd7f1],
];

const LIMITS = { maxData: MAX_DATA, maxParity: MAX_PARITY } as const;

export const CODES = {
  /** The default. */
  cauchy: { id: 1, field: GF8, ...LIMITS, coefficient: cauchy(GF8) },
  /** As strong, and with two parity shards faster to encode: Horner's rule instead of tables. */
  doubling: { id: 2, field: GF8, ...LIMITS, coefficient: doubling(GF8) },
  /** Half the symbols, twice the work per byte: for comparison. */
  cauchy16: { id: 3, field: GF16, ...LIMITS, coefficient: cauchy(GF16) },
  thesis: { id: 4, field: GF16, maxData: 4, maxParity: 3, coefficient: (parity, data) => THESIS[parity]![data]! },
} as const satisfies Record<string, Code>;

export type CodeName = keyof typeof CODES;

/** The first rows and columns of a code's matrix. */
export function parityMatrix(code: Code, data: number, parity: number): number[][] {
  return Array.from({ length: parity }, (_, p) => Array.from({ length: data }, (_, d) => code.coefficient(p, d)));
}

/**
 * The code that stored data names.
 * @throws WebdfsError NEWER_FORMAT if this release knows no such id
 */
export function codeNameOf(id: number): CodeName {
  const name = (Object.keys(CODES) as CodeName[]).find((name) => CODES[name].id === id);
  if (name === undefined)
    throw new WebdfsError('NEWER_FORMAT', `data is encoded with code ${id}, which is not known here`);
  return name;
}
