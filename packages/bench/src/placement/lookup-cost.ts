import type { Clock } from '@webdfs/base';
import { compilePlacement } from '@webdfs/placement';
import { numberColumn, type ReportChart, type ReportSection, type ReportTable, textColumn } from '../report/report.ts';
import type { Contestant, Task } from './contestant.ts';
import { type Subclusters, subclustersOf } from './layout.ts';

export type Weights = 'even' | 'growing';

export interface LookupTime {
  readonly name: string;
  readonly weights: Weights;
  readonly subclusters: number;
  /** All copies of a group, nanoseconds: the best of the runs, which other work on the machine disturbs least. */
  readonly ns: number;
}

export interface LookupOptions {
  readonly contestants: readonly Contestant[];
  /** Numbers of sub-clusters, of five nodes each. */
  readonly sizes: readonly number[];
  readonly runs: number;
  /** Look-ups in a run. */
  readonly lookups: number;
  readonly seed: number;
  readonly clock: Clock;
  readonly onProgress: (what: string) => void;
}

const NODES_PER_SUBCLUSTER = 5;
const COPIES = 3;
/** Groups of the tables that some placements need, and of the compiled one. */
const GROUP_COUNT = 4096;
/** Whole units, since some placements take no others: 5 · 1.1^i is 62 635 for the hundredth. */
const FIRST_WEIGHT = 5;
const GROWTH = 1.1;

/** `growing`: each sub-cluster a tenth heavier than the one before, as a cluster that buys larger disks. */
export function layoutOf(count: number, weights: Weights): Subclusters {
  const weightOf = (i: number): number => (weights === 'even' ? 1 : Math.round(FIRST_WEIGHT * GROWTH ** i));
  return subclustersOf(
    Array.from({ length: count }, (_, i) => weightOf(i)),
    NODES_PER_SUBCLUSTER,
  );
}

/** Nanoseconds a call, the best of the runs. */
function timeCalls(options: LookupOptions, locate: (group: number) => readonly number[]): number {
  const { runs, lookups, clock } = options;
  let best = Infinity;
  let sink = 0;
  for (let run = 0; run <= runs; run++) {
    const begun = clock.monotonic();
    for (let i = 0; i < lookups; i++) sink += locate((i * 2_654_435_761) % GROUP_COUNT)[0] ?? 0;
    const elapsed = clock.monotonic() - begun;
    // the first run is for the compiler
    if (run > 0) best = Math.min(best, elapsed);
  }
  return sink < 0 ? 0 : (best * 1e6) / lookups;
}

/** A node's table, every group of it looked up before: what a cluster pays, whatever the placement. */
function timeTable(options: LookupOptions, subclusters: Subclusters): number {
  const { seed } = options;
  const topology = { algorithm: 'wrd', version: 1, seed, copies: COPIES, subclusters } as const;
  const table = compilePlacement(topology, Math.log2(GROUP_COUNT), COPIES);
  const locate = (group: number): readonly number[] => table.members(group as Parameters<typeof table.members>[0]);
  for (let group = 0; group < GROUP_COUNT; group++) locate(group);
  return timeCalls({ ...options, lookups: Math.max(options.lookups, 100_000) }, locate);
}

export const TABLE = 'compiled table';

export function measureLookups(options: LookupOptions): LookupTime[] {
  const times: LookupTime[] = [];
  for (const weights of ['even', 'growing'] as const) {
    for (const size of options.sizes) {
      options.onProgress(`Look-up cost: ${size} sub-clusters, ${weights}`);
      const subclusters = layoutOf(size, weights);
      const task: Task = { subclusters, copies: COPIES, groupCount: GROUP_COUNT, seed: options.seed };
      for (const contestant of options.contestants) {
        if (contestant.refusal(task) !== undefined) continue;
        const ns = timeCalls(options, contestant.locator(task));
        times.push({ name: contestant.name, weights, subclusters: size, ns });
      }
      times.push({ name: TABLE, weights, subclusters: size, ns: timeTable(options, subclusters) });
    }
  }
  return times;
}

export function timeOf(
  times: readonly LookupTime[],
  name: string,
  weights: Weights,
  subclusters: number,
): number | undefined {
  return times.find((time) => time.name === name && time.weights === weights && time.subclusters === subclusters)?.ns;
}

function timeTableOf(times: readonly LookupTime[], weights: Weights): ReportTable {
  const sizes = [...new Set(times.map((time) => time.subclusters))];
  const names = [...new Set(times.map((time) => time.name))];
  return {
    id: weights,
    title: `Nanoseconds a look-up of ${COPIES} copies, ${weights} weights`,
    columns: [textColumn('placement'), ...sizes.map((size) => numberColumn(`${size} sub-clusters`))],
    rows: names.map((name) => [name, ...sizes.map((size) => timeOf(times, name, weights, size) ?? null)]),
  };
}

function timeChart(times: readonly LookupTime[], weights: Weights): ReportChart {
  const names = [...new Set(times.map((time) => time.name))];
  return {
    id: weights,
    title: `Cost of a look-up, ${weights} weights`,
    kind: 'line',
    x: { title: 'sub-clusters of five nodes', scale: 'log' },
    y: { title: 'nanoseconds', scale: 'log' },
    series: names.map((name) => ({
      name,
      points: times
        .filter((time) => time.name === name && time.weights === weights)
        .map((time) => [time.subclusters, time.ns] as const),
    })),
  };
}

export function lookupSection(times: readonly LookupTime[]): ReportSection {
  return {
    id: 'lookup',
    title: 'Cost of a look-up',
    prose: [
      `Sub-clusters of ${NODES_PER_SUBCLUSTER} nodes, weights even or growing by a tenth from each to the next. Walks from the newest sub-cluster stop early ` +
        'where the newest are the heaviest; a score per node costs the same wherever the weight lies.',
      'A cluster asks its compiled table, which costs the same for every placement; the placement itself is paid once per group and change of the map.',
      'Times are of this machine while it did what else it did: read the shape, not the digit.',
    ],
    charts: [timeChart(times, 'even'), timeChart(times, 'growing')],
    tables: [timeTableOf(times, 'even'), timeTableOf(times, 'growing')],
  };
}
