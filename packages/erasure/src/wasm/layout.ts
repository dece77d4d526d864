/** What the program and its callers agree on; program.ts explains it. */

/** Passes by field, a letter a row: `x` all coefficients are 1, `h` they are powers of 2, `t` any. */
export const PASSES: Readonly<Record<8 | 16, readonly string[]>> = {
  8: ['x', 'xh', 'xt', 'xtt', 'xttt', 't', 'tt', 'ttt', 'tttt'],
  16: ['xt', 't', 'tt'],
};

/** Rows that one pass can make. */
export const MOST_ROWS: Readonly<Record<8 | 16, number>> = { 8: 4, 16: 2 };

/** A source: its address, and that of its tables; two 32-bit words. */
export const DESCRIPTOR_BYTES = 8;

/** Tables of one coefficient: sixteen bytes per nibble and byte of a product. */
export const TABLE_BYTES: Readonly<Record<8 | 16, number>> = { 8: 32, 16: 128 };

/**
 * Where every memory holds two constant vectors, sixteen times 0x0f and 0x1d. They are loaded because engines make constants anew
 * at each use, which costs more than the use.
 */
export const CONSTANTS = { nibble: 0, polynomial: 16, bytes: 64 } as const;

/** So far the program may read past the end of a source. */
export const READ_PAST_BYTES = 64;
