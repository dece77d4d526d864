import type { Clock } from '@webdfs/base';
import type { Check } from '../report/check.ts';
import { environmentOf, type Report, type ReportSection } from '../report/report.ts';
import { controlSection } from './control-section.ts';
import { gridSection } from './grid-section.ts';
import { partsSection } from './parts-section.ts';
import { placedSection } from './placed-section.ts';
import { planningSection } from './planning-section.ts';
import type { Runner } from './runner.ts';
import { DRIVE_CASES, PROCESS_CASES, processSection, SLIDE_CASES } from './processes/process-section.ts';
import { sweepSection } from './sweep-section.ts';

/** What can be run, in the order of the report. */
export const RESCALE_EXPERIMENTS = [
  'grid',
  'controls',
  'sweeps',
  'placed',
  'planning',
  'processes',
  'processes-drive',
  'processes-slides',
] as const;
export type RescaleExperiment = (typeof RESCALE_EXPERIMENTS)[number];
/** What needs no machine to itself. */
export const SIMULATED_EXPERIMENTS: readonly RescaleExperiment[] = ['grid', 'controls', 'sweeps', 'placed', 'planning'];

/** `webdfs bench rescale`: how long growing and shrinking must take, and how long it takes. */
export interface RescaleBenchOptions {
  readonly experiments: readonly RescaleExperiment[];
  readonly seed: number;
  /** Repetitions, each with a seed of its own. */
  readonly seeds: number;
  /** Fewer points. */
  readonly quick: boolean;
  readonly clock: Clock;
  /** The words that repeat the run. */
  readonly command: string;
  readonly signal: AbortSignal;
  readonly onProgress: (what: string) => void;
}

type Found = { section: ReportSection; checks: Check[]; invalid?: string[] };

const RUNS: Readonly<Record<RescaleExperiment, (runner: Runner) => Promise<Found>>> = {
  grid: gridSection,
  controls: controlSection,
  sweeps: sweepSection,
  placed: placedSection,
  planning: planningSection,
  processes: async (runner) => await processSection('processes', PROCESS_CASES, runner),
  'processes-drive': async (runner) => await processSection('processes-drive', DRIVE_CASES, runner),
  'processes-slides': async (runner) => await processSection('processes-slides', SLIDE_CASES, runner),
};

/** @throws the signal's reason if it is aborted on the way */
export async function benchRescale(options: RescaleBenchOptions): Promise<Report> {
  const { experiments, seed, seeds, quick, clock, signal, onProgress } = options;
  const environment = environmentOf(options);
  const runner: Runner = {
    quick,
    seeds: Array.from({ length: seeds }, (_, i) => seed + i),
    signal,
    async step(what) {
      onProgress(what);
      await new Promise<void>((resolve) => clock.soon(resolve));
      signal.throwIfAborted();
    },
  };
  const found: Found[] = [];
  for (const name of RESCALE_EXPERIMENTS) if (experiments.includes(name)) found.push(await RUNS[name](runner));
  const checks = found.flatMap((part) => part.checks);
  const invalid = found.flatMap((part) => part.invalid ?? []);
  return {
    format: 'webdfs-report',
    version: 1,
    title: 'Rescaling: Pufferbench reborn',
    summary: summaryOf(checks),
    environment,
    sections: [...found.map(({ section }) => section), partsSection()],
    checks,
    // what fails has been proved
    ...(invalid.length === 0 || !checks.every(({ pass }) => pass) ? {} : { invalid: invalid.join('; ') }),
  };
}

function summaryOf(checks: readonly Check[]): string[] {
  const mean = checks.find(({ name }) => name === 'mean of all by the bound');
  const passed = checks.filter(({ pass }) => pass).length;
  return [
    ...(mean === undefined
      ? []
      : [
          `Plans of WebDFS, carried out in simulated time, take ${((mean.value - 1) * 100).toFixed(1)} % longer than the bound on average; ` +
            'Pufferbench came within 16 % of it.',
        ]),
    `${passed} of ${checks.length} checks pass.`,
  ];
}
