import { atMost, type Check } from '../../report/check.ts';
import { type LookupTime, TABLE, timeOf } from '../lookup-cost.ts';

const WALK = 'rush-r-shuffle';

/** P18: what a look-up costs has the known shape. These are times, so they are for a command, never for a test. */
export function lookupClaims(times: readonly LookupTime[]): Check[] {
  const ns = (name: string, weights: string, size: number): number | undefined => timeOf(times, name, weights, size);
  const few = ns(WALK, 'even', 10);
  const even = ns(WALK, 'even', 100);
  const growing = ns(WALK, 'growing', 100);
  const table = ns(TABLE, 'even', 100);
  if (few === undefined || even === undefined || growing === undefined || table === undefined) return [];
  return [
    atMost(`P18 ${WALK}: 10 sub-clusters of even weight against 100`, few / even, 1 / 2, 'ratio'),
    atMost(`P18 ${WALK}: 100 sub-clusters of even weight against 10`, even / few, 15, 'ratio'),
    atMost(`P18 ${WALK}: 100 sub-clusters of growing weight against even`, growing / even, 1 / 2, 'ratio'),
    atMost('P18 compiled table: a look-up', table, 1000, 'ns'),
  ];
}
