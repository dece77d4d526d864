import { paceOf, type RatesOf, type Transfer, usageOf } from '@webdfs/rescale';

/** How long the busiest node is busy with some transfers. */
export function planSeconds(transfers: readonly Transfer[], ratesOf: RatesOf): number {
  const paces = Array.from(usageOf(transfers), ([node, usage]) => paceOf(node, usage, ratesOf(node)).seconds);
  return Math.max(0, ...paces);
}
