import type { Clock } from '@webdfs/base';
import { compilePlacement } from '@webdfs/placement';
import { numberColumn, type ReportChart, type ReportSection, type ReportTable, textColumn } from '../report/report.ts';
import { verdictOf } from '../report/verdict.ts';
import type { Contestant, Task } from './contestant.ts';
import { subclustersOf } from './layout.ts';
import { PUBLISHED_LOOKUP_US } from './original/published.ts';

/** A cluster in which look-ups are timed. */
export interface LookupLayout extends Omit<Task, 'groupCount' | 'seed'> {
  /** The series it belongs to: `even` or `growing` weights, or the name of a cluster. */
  readonly weights: string;
}

export interface LookupTime {
  readonly name: string;
  readonly weights: string;
  /** How many there are. */
  readonly subclusters: number;
  /** All copies of a group, nanoseconds: the best of the runs, which other work on the machine disturbs least. */
  readonly ns: number;
}

export interface LookupOptions {
  readonly contestants: readonly Contestant[];
  /** Many, so that some are not disturbed by what else the machine does. */
  readonly runs: number;
  /** Look-ups in a run, at most. */
  readonly lookups: number;
  readonly seed: number;
  readonly clock: Clock;
}

const NODES_PER_SUBCLUSTER = 5;
const COPIES = 3;
/** Groups of the tables that some placements need, and of the compiled one. */
const GROUP_COUNT = 4096;
/** The table is so fast that a clock needs more of it. */
const TABLE_LOOKUPS = 10_000;
/** Whole units, since some placements take no others: 5 · 1.1^i is 62 635 for the hundredth. */
const FIRST_WEIGHT = 5;
const GROWTH = 1.1;

/** `growing`: each sub-cluster a tenth heavier than the one before, as a cluster that buys larger disks. */
function growingLayout(weights: 'even' | 'growing', count: number): LookupLayout {
  const weightOf = (i: number): number => (weights === 'even' ? 1 : Math.round(FIRST_WEIGHT * GROWTH ** i));
  const all = Array.from({ length: count }, (_, i) => weightOf(i));
  return { weights, subclusters: subclustersOf(all, NODES_PER_SUBCLUSTER), copies: COPIES };
}

/** Both series, with so many sub-clusters. */
export function growingLayouts(counts: readonly number[]): LookupLayout[] {
  return (['even', 'growing'] as const).flatMap((weights) => counts.map((count) => growingLayout(weights, count)));
}

/** Look-ups before the first run: they are for the compiler. */
const WARM_UP_LOOKUPS = 1000;
/** A run takes no longer, so that most runs fit between two disturbances. */
const MOST_RUN_MS = 2;
const LEAST_LOOKUPS = 4;

/** Nanoseconds a call, the best of the runs. */
function timeCalls(options: LookupOptions, locate: (group: number) => readonly number[]): number {
  let sink = 0;
  const timeMs = (lookups: number): number => {
    const begun = options.clock.monotonic();
    for (let i = 0; i < lookups; i++) sink += locate((i * 2_654_435_761) % GROUP_COUNT)[0] ?? 0;
    return options.clock.monotonic() - begun;
  };
  const warmUpMs = timeMs(WARM_UP_LOOKUPS);
  const fitting = Math.floor((MOST_RUN_MS * WARM_UP_LOOKUPS) / Math.max(warmUpMs, 1e-3));
  const lookups = Math.max(LEAST_LOOKUPS, Math.min(options.lookups, fitting));
  let best = Infinity;
  for (let run = 0; run < options.runs; run++) best = Math.min(best, timeMs(lookups));
  return sink < 0 ? 0 : (best * 1e6) / lookups;
}

/** A node's table, every group of it looked up before: what a cluster pays, whatever the placement. */
function timeTable(options: LookupOptions, { subclusters, copies }: LookupLayout): number {
  const { seed } = options;
  const topology = { algorithm: 'wrd', version: 1, seed, copies, subclusters } as const;
  const table = compilePlacement(topology, Math.log2(GROUP_COUNT), copies);
  const locate = (group: number): readonly number[] => table.members(group as Parameters<typeof table.members>[0]);
  for (let group = 0; group < GROUP_COUNT; group++) locate(group);
  return timeCalls({ ...options, lookups: TABLE_LOOKUPS }, locate);
}

export const TABLE = 'compiled table';

/** Every contestant that can place the layout, and the compiled table. */
export function measureLookups(layout: LookupLayout, options: LookupOptions): LookupTime[] {
  const { weights, ...cluster } = layout;
  const task: Task = { ...cluster, groupCount: GROUP_COUNT, seed: options.seed };
  const times = options.contestants
    .filter((contestant) => contestant.refusal(task) === undefined)
    .map((contestant) => ({ name: contestant.name, ns: timeCalls(options, contestant.locator(task)) }));
  times.push({ name: TABLE, ns: timeTable(options, layout) });
  return times.map(({ name, ns }) => ({ name, weights, subclusters: cluster.subclusters.length, ns }));
}

export function timeOf(
  times: readonly LookupTime[],
  name: string,
  weights: string,
  subclusters: number,
): number | undefined {
  return times.find((time) => time.name === name && time.weights === weights && time.subclusters === subclusters)?.ns;
}

function timeTableOf(times: readonly LookupTime[], weights: string): ReportTable {
  const sizes = [...new Set(times.filter((time) => time.weights === weights).map((time) => time.subclusters))];
  const names = [...new Set(times.map((time) => time.name))];
  return {
    id: weights.toLowerCase().replaceAll(/[^a-z\d]+/g, '-'),
    title: `Nanoseconds a look-up of all copies: ${weights}`,
    columns: [textColumn('placement'), ...sizes.map((size) => numberColumn(`${size} sub-clusters`))],
    rows: names.map((name) => [name, ...sizes.map((size) => timeOf(times, name, weights, size) ?? null)]),
  };
}

function timeChart(times: readonly LookupTime[], weights: string): ReportChart {
  const names = [...new Set(times.map((time) => time.name))];
  return {
    id: weights,
    title: `Cost of a look-up: ${weights} weights`,
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

const POWER =
  'weights grow by a factor here; in 2009 by a power, which passed what a number can hold at 74 sub-clusters';

/** Who is compared with which published series, and why it may grow otherwise. */
const SHAPES = [
  ['original-rush-r', 'rush-r even', 'even', 'of something we do not know'],
  [
    'original-rush-p',
    'rush-p even',
    'even',
    'the rebuilt one reads its draws off one sequence; PHP stepped through it anew for every sub-cluster',
  ],
  [
    'rush-r-shuffle',
    'rush-r even',
    'even',
    'a draw is a few instructions here, and what a look-up costs besides weighs more',
  ],
  ['rush-p', 'rush-p even', 'even', 'a draw costs the same for every sub-cluster here'],
  ['original-rush-r', 'rush-r growing', 'growing', POWER],
  ['original-rush-p', 'rush-p growing', 'growing', POWER],
  ['rush-r-shuffle', 'rush-r growing', 'growing', POWER],
  ['rush-p', 'rush-p growing', 'growing', POWER],
] as const;

/** Machines differ by thousands; how the cost grows from 10 to 100 sub-clusters can be compared, to a factor of two. */
function shapeTable(times: readonly LookupTime[]): ReportTable {
  const [, few, , , many] = PUBLISHED_LOOKUP_US.subclusters;
  const rows = SHAPES.flatMap(([name, key, weights, because]) => {
    const [low, high] = [timeOf(times, name, weights, few), timeOf(times, name, weights, many)];
    if (low === undefined || high === undefined) return [];
    const [, microsLow, , , microsHigh] = PUBLISHED_LOOKUP_US[key];
    const published = microsHigh / microsLow;
    const measured = high / low;
    const verdict = verdictOf({ published, measured, noise: published / 2, because });
    return [[name, weights, microsLow, microsHigh, low / 1000, high / 1000, published, measured, verdict]];
  });
  return {
    id: 'shape',
    title: 'Published in 2009 and measured: microseconds, and how they grow from 10 to 100 sub-clusters',
    columns: [
      textColumn('placement'),
      textColumn('weights'),
      numberColumn('published at 10', 1),
      numberColumn('at 100', 1),
      numberColumn('measured at 10', 2),
      numberColumn('at 100', 2),
      numberColumn('published growth', 2),
      numberColumn('measured growth', 2),
      { title: 'verdict', kind: 'verdict' },
    ],
    rows,
  };
}

/** @param prose  what the layouts are */
export function lookupSection(times: readonly LookupTime[], prose: string): ReportSection {
  const series = [...new Set(times.map((time) => time.weights))];
  const shapes = shapeTable(times);
  return {
    id: 'lookup',
    title: 'Cost of a look-up',
    prose: [
      prose,
      'Walks from the newest sub-cluster stop early where the newest are the heaviest; a score per node costs the same wherever the weight lies. A cluster asks ' +
        'its compiled table, which costs the same for every placement; the placement itself is paid once per group and change of the map.',
      'Times are of this machine while it did what else it did: read the shape, not the digit.',
    ],
    charts: series
      .filter((weights) => times.some((time) => time.weights === weights && time.subclusters !== times[0]!.subclusters))
      .map((weights) => timeChart(times, weights)),
    tables: [...series.map((weights) => timeTableOf(times, weights)), ...(shapes.rows.length === 0 ? [] : [shapes])],
  };
}

/** What the two series of `growingLayouts` are. */
export const GROWING_PROSE = `Sub-clusters of ${NODES_PER_SUBCLUSTER} nodes, weights even or growing by a tenth from each to the next.`;
