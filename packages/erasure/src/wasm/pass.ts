import type { Field } from '../field.ts';
import type { Matrix } from '../matrix.ts';
import { MOST_ROWS, TABLE_BYTES } from './layout.ts';
import type { Program, ProgramFunction } from './load.ts';

/** One run of a kernel function: some neighbouring rows of a matrix in one reading of the sources. */
export interface Pass {
  readonly run: ProgramFunction;
  readonly firstRow: number;
  readonly rows: number;
  /** By column: all coefficients of these rows are 1. */
  readonly ones: readonly boolean[];
  /** Of the first row's table within the tables of a column. */
  readonly tableOffset: number;
}

function isPowersOfTwo(field: Field, row: readonly number[]): boolean {
  return row.every((entry, column) => entry === field.power(column));
}

/** The ways of so many rows from `firstRow` on; Horner's rule only where `whole` promises every source. */
function waysOf(field: Field, rows: Matrix, whole: boolean): string {
  const sum = rows[0]!.every((entry) => entry === 1);
  if (!sum) return 't'.repeat(rows.length);
  const horner = whole && field.bits === 8 && rows.length === 2 && isPowersOfTwo(field, rows[1]!);
  return horner ? 'xh' : `x${'t'.repeat(rows.length - 1)}`;
}

/** How to multiply by a matrix: few passes, each of as many rows as there is a function for. */
export function passesOf(program: Program, field: Field, matrix: Matrix, whole: boolean): Pass[] {
  const passes: Pass[] = [];
  for (let firstRow = 0; firstRow < matrix.length;) {
    const rows = matrix.slice(firstRow, firstRow + MOST_ROWS[field.bits]);
    const ways = waysOf(field, rows, whole);
    passes.push({
      run: program[`gf${ways === 'x' ? 8 : field.bits}_${ways}`] as ProgramFunction,
      firstRow,
      rows: rows.length,
      ones: rows[0]!.map((_, column) => rows.every((row) => row[column] === 1)),
      tableOffset: firstRow * TABLE_BYTES[field.bits],
    });
    firstRow += rows.length;
  }
  return passes;
}
