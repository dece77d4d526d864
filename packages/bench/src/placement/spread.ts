/** Mean and standard deviation over seeds. */
export interface Spread {
  readonly mean: number;
  readonly deviation: number;
}

/** Of a sample; the deviation of one value is 0. */
export function spreadOf(values: readonly number[]): Spread {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, deviation: values.length < 2 ? 0 : Math.sqrt(squares / (values.length - 1)) };
}
