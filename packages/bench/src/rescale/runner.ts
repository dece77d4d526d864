import type { Contestant } from './contestants.ts';
import { measure, type Measurement } from './measurement.ts';
import type { Resources } from './resources.ts';
import { nameOf, type Scenario } from './scenario.ts';

/** Pieces that each node holds, as others who compare themselves should have them. */
export const PIECES_PER_NODE = 1600;

/** Runs of one scenario with different seeds. */
export interface Point {
  readonly scenario: Scenario;
  readonly resources: Resources;
  readonly runs: readonly Measurement[];
}

export interface Runner {
  readonly quick: boolean;
  readonly seeds: readonly number[];
  readonly signal: AbortSignal;
  /** Tells what is under way, and lets others have a turn. @throws the signal's reason if it is aborted */
  readonly step: (what: string) => Promise<void>;
}

/** Runs a scenario once for each seed. */
export async function pointOf(
  contestant: Contestant,
  point: Omit<Point, 'runs'>,
  { seeds, step }: Runner,
): Promise<Point> {
  const runs: Measurement[] = [];
  for (const seed of seeds) {
    await step(`${contestant.name}, ${nameOf(point.scenario)}, ${point.resources.name}`);
    runs.push(measure(contestant, point.scenario, { rates: point.resources.rates, seed }));
  }
  return { ...point, runs };
}

/** T / T_bound of each run. */
export function totals({ runs }: Point): number[] {
  return runs.map(({ ratios }) => ratios.total);
}
