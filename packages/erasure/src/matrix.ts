import type { Field } from './field.ts';

/** Rows of field elements, all of one length. */
export type Matrix = readonly (readonly number[])[];

/** The product of two matrices; `left` has as many columns as `right` has rows. */
export function multiplyMatrices(field: Field, left: Matrix, right: Matrix): number[][] {
  const columns = right[0]?.length ?? 0;
  return left.map((row) =>
    Array.from({ length: columns }, (_, column) =>
      row.reduce((sum, factor, i) => sum ^ field.multiply(factor, right[i]![column]!), 0),
    ),
  );
}

/**
 * The inverse of a square matrix, or undefined if it has none. Gauss-Jordan; any entry that is not 0 will do as a pivot, for
 * arithmetic in a finite field is exact.
 */
export function invertMatrix(field: Field, matrix: Matrix): number[][] | undefined {
  const size = matrix.length;
  const rows = matrix.map((row, i) => [...row, ...row.map((_, column) => (column === i ? 1 : 0))]);
  for (let column = 0; column < size; column++) {
    const pivot = rows.findIndex((row, i) => i >= column && row[column] !== 0);
    if (pivot === -1) return undefined;
    [rows[column], rows[pivot]] = [rows[pivot]!, rows[column]!];
    const scale = field.inverse(rows[column]![column]!);
    const chosen = rows[column]!.map((entry) => field.multiply(entry, scale));
    rows[column] = chosen;
    for (const [i, row] of rows.entries()) {
      const factor = row[column]!;
      if (i === column || factor === 0) continue;
      rows[i] = row.map((entry, j) => entry ^ field.multiply(factor, chosen[j]!));
    }
  }
  return rows.map((row) => row.slice(size));
}
