import type { NodeId } from '@webdfs/base';
import type { Rates } from './rates.ts';
import { type Pace, paceOf, slowest, type Usage } from './usage.ts';

/** What one node has still to do, and how fast it was seen to do it. */
export interface NodeProgress {
  readonly left: Usage;
  readonly rates: Rates;
}

/**
 * The time that is left: that of the node which needs longest, with what it waits for. Bytes left over the sum of all rates would be wrong
 * as soon as one node lags.
 *
 * @returns undefined if no node has anything left to do
 */
export function timeLeft(nodes: ReadonlyMap<NodeId, NodeProgress>): Pace | undefined {
  const pace = slowest(Array.from(nodes, ([node, { left, rates }]) => paceOf(node, left, rates)));
  return pace === undefined || pace.seconds === 0 ? undefined : pace;
}

/**
 * A rate as it is shown: what was seen lately counts most.
 *
 * @param previous  bytes per second as shown so far; undefined at the start
 * @param seconds  that the sample took; a sample of one half-life counts half
 */
export function smoothedRate(
  previous: number | undefined,
  sample: { readonly bytes: number; readonly seconds: number },
  halfLifeSeconds: number,
): number {
  if (sample.seconds <= 0) return previous ?? 0;
  const rate = sample.bytes / sample.seconds;
  if (previous === undefined) return rate;
  const kept = 0.5 ** (sample.seconds / halfLifeSeconds);
  return previous * kept + rate * (1 - kept);
}
