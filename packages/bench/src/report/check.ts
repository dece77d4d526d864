/** What a benchmark promises: one line each, in text and in `--json` as `checks`. */
export interface Check {
  readonly name: string;
  readonly value: number;
  readonly limit: number;
  readonly unit: string;
  readonly pass: boolean;
}

/** A check that passes while `value` is at most `limit`. */
export function atMost(name: string, value: number, limit: number, unit: string): Check {
  return { name, value, limit, unit, pass: value <= limit };
}

/** A check that passes while `value` is at least `limit`. */
export function atLeast(name: string, value: number, limit: number, unit: string): Check {
  return { name, value, limit, unit, pass: value >= limit };
}

/** Exit codes of every benchmark: all checks pass, one fails, or the run proves nothing. */
export const BENCH_EXIT = { PASS: 0, FAIL: 1, INVALID: 2 } as const;
