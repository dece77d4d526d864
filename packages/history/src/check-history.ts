import { checkKey, MAX_STEPS } from './linearizability.ts';
import type { Operation } from './operation.ts';
import { shortestOffending } from './shortest.ts';

/** A key whose history no order of its operations explains. */
export interface Offence {
  readonly key: string;
  /** The least that shows it, in the order of questions. */
  readonly operations: readonly Operation[];
}

export interface HistoryReport {
  readonly linearizable: boolean;
  readonly keys: number;
  readonly operations: number;
  /** Operations of which nobody knows whether they happened. */
  readonly unknown: number;
  /** The offence that takes the fewest operations to show; undefined if there is none. */
  readonly offence: Offence | undefined;
  /** Keys of which neither was found within the limit of steps. */
  readonly undecided: readonly string[];
}

/**
 * Checks a history key by key. Linearizability is local: a history is linearizable if that of each key is.
 *
 * Source: Herlihy and Wing, "Linearizability: A Correctness Condition for Concurrent Objects", TOPLAS 12(3), 1990, theorem 1.
 */
export function checkHistory(
  operations: readonly Operation[],
  options: { readonly maxSteps?: number } = {},
): HistoryReport {
  const byKey = Map.groupBy(operations, ({ key }) => key);
  const undecided: string[] = [];
  let offence: Offence | undefined;
  for (const [key, ofKey] of byKey) {
    const verdict = checkKey(ofKey, { maxSteps: options.maxSteps ?? MAX_STEPS });
    if (verdict.type === 'undecided') undecided.push(key);
    if (verdict.type !== 'not-linearizable') continue;
    const found: Offence = { key, operations: shortestOffending(ofKey) };
    if (offence === undefined || found.operations.length < offence.operations.length) offence = found;
  }
  return {
    linearizable: offence === undefined && undecided.length === 0,
    keys: byKey.size,
    operations: operations.length,
    unknown: operations.filter(({ result }) => result.type === 'unknown').length,
    offence,
    undecided,
  };
}
