/** Least, median and most of some figures. */
export interface Spread {
  readonly least: number;
  readonly median: number;
  readonly most: number;
}

/** @param values  at least one */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { least: sorted[0]!, median: sorted[Math.floor(sorted.length / 2)]!, most: sorted.at(-1)! };
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
