import { type Bound, type Rates, type RescaleRatios, rescaleRatios } from '@webdfs/rescale';
import type { Contestant } from './contestants.ts';
import { boundFor, membershipOf, type Scenario } from './scenario.ts';
import { type RunFigures, simulateRun } from './simulated/simulated-run.ts';
import type { Interleaving } from './simulated/storage.ts';

/** One run and what it is to be compared with. */
export interface Measurement {
  readonly scenario: Scenario;
  readonly contestant: string;
  readonly bound: Bound;
  readonly ratios: RescaleRatios;
  readonly figures: RunFigures;
}

export interface MeasurementSetup {
  readonly rates: Rates;
  readonly seed: number;
  readonly interleaving?: Interleaving;
}

/** Seconds of a message over a switch. */
const LATENCY = 100e-6;
/** Files are dealt out evenly: only what cannot be divided differs. */
const FULLEST = 1.02;

/** Bytes that any scheme has to move between evenly filled sets of nodes. */
function leastBytes({ nodes, change, bytesPerNode }: Scenario): number {
  return change < 0 ? -change * bytesPerNode : (change * nodes * bytesPerNode) / (nodes + change);
}

export function measure(contestant: Contestant, scenario: Scenario, setup: MeasurementSetup): Measurement {
  const { rates, seed, interleaving } = setup;
  const bound = boundFor(scenario, rates);
  const figures = simulateRun(contestant.partsFor(scenario), {
    membership: membershipOf(scenario),
    bytesPerNode: scenario.bytesPerNode,
    ratesOf: () => rates,
    latency: LATENCY,
    fullest: FULLEST,
    seed,
    ...(interleaving === undefined ? {} : { interleaving }),
  });
  const ratios = rescaleRatios({
    movedBytes: figures.movedBytes,
    leastBytes: leastBytes(scenario),
    planSeconds: figures.planSeconds,
    boundSeconds: bound.seconds,
    seconds: figures.seconds,
  });
  return { scenario, contestant: contestant.name, bound, ratios, figures };
}

/** What the validator found, before and after. */
export function faultsOf({ figures }: Measurement): string[] {
  return [
    ...figures.before.faults.map((fault) => `before: ${fault}`),
    ...figures.after.faults.map((fault) => `after: ${fault}`),
  ];
}
