import { numberColumn, type ReportTable, textColumn } from '../../report/report.ts';
import type { ClusterFigures } from './cluster-run.ts';
import type { ForegroundFigures } from './foreground.ts';

const MB = 1e6;

type Row = readonly [what: string, value: number | null, more: string];

function megabytes(bytes: number | undefined): number | null {
  return bytes === undefined ? null : bytes / MB;
}

/**
 * What was sent twice, by what was planned: bytes that came in vain as nodes count them, or that came beyond the plan though no client
 * wrote them, whichever is more.
 */
export function sentTwice({ summary, busy, before, found }: ClusterFigures): number {
  const { planned, moved } = summary;
  const bytes = planned.bytes ?? 0;
  const foreground = busy.writtenBytes * before.copies;
  // of nodes that have left nobody tells
  const wasted = found.after.wastedBytes - found.before.wastedBytes;
  return bytes === 0 ? 0 : Math.max(0, wasted, moved.bytes - bytes - foreground) / bytes;
}

const RATIOS = [
  ['move', 'moved / least', 'ρ_move'],
  ['place', 'T_plan / T_bound', 'ρ_place'],
  ['exec', 'T / T_plan', 'ρ_exec'],
  ['total', 'T / T_bound', 'ρ'],
] as const;

/** How long it took, and how long it had to. */
function timeRows({ bound, plan, seconds, ratios = {} }: ClusterFigures['summary']): Row[] {
  return [
    bound === undefined ? ['T_bound, s', null, 'not measured'] : ['T_bound, s', bound.seconds, bound.by],
    plan === undefined
      ? ['T_plan, s', null, 'not measured']
      : ['T_plan, s', plan.seconds, `${plan.by} of node ${plan.node}`],
    ['T, s', seconds, ''],
    ...RATIOS.map(([name, what, symbol]): Row => [what, ratios[name] ?? null, symbol]),
  ];
}

function firstByteAfter({ samples }: ClusterFigures): number | null {
  return samples.find(({ bytesPerSecond }) => bytesPerSecond > 0)?.seconds ?? null;
}

/** What moved, and what had to. */
function byteRows(figures: ClusterFigures): Row[] {
  const { load, found, summary } = figures;
  const { planned, moved } = summary;
  const fullest = (side: 'before' | 'after'): string => `fullest ${found[side].fullest.toFixed(3)} of its share`;
  return [
    ['nodes before', found.before.nodes, ''],
    ['nodes after', found.after.nodes, ''],
    ['stored for the run, MB', load.bytes / MB, `${load.objects} objects in ${load.seconds.toFixed(1)} s`],
    ['held by all nodes before, MB', found.before.bytes / MB, fullest('before')],
    ['held by all nodes after, MB', found.after.bytes / MB, fullest('after')],
    ['least that must move, MB', megabytes(planned.leastBytes), ''],
    ['planned, MB', megabytes(planned.bytes), `${planned.copies} copies of groups`],
    ['moved, MB', moved.bytes / MB, `${moved.groups} groups`],
    ['sent twice, %', sentTwice(figures) * 100, 'in vain, or beyond the plan and what clients wrote'],
    ['first byte after, s', firstByteAfter(figures), 'nodes that are new have to start'],
  ];
}

export function changeTable(figures: ClusterFigures): ReportTable {
  const idle: Row = ['idle, %', figures.idleShare * 100, 'of the processors of the machine that this ran on'];
  return {
    id: 'change',
    title: 'The change',
    columns: [textColumn('what'), numberColumn('value', 2), textColumn('')],
    rows: [...byteRows(figures), ...timeRows(figures.summary), idle],
  };
}

export function foregroundTable(figures: ClusterFigures): ReportTable {
  const row = (when: string, each: ForegroundFigures): (string | number | null)[] => [
    when,
    each.seconds,
    each.reads,
    each.writes,
    each.readBytes / MB / Math.max(each.seconds, 1e-9),
    each.writtenBytes / MB / Math.max(each.seconds, 1e-9),
    each.readP50,
    each.readP99,
    each.writeP50,
    each.writeP99,
    each.errors,
    each.firstError ?? null,
  ];
  return {
    id: 'foreground',
    title: 'Clients',
    columns: [
      textColumn('when'),
      numberColumn('s', 1),
      numberColumn('reads'),
      numberColumn('writes'),
      numberColumn('read, MB/s', 2),
      numberColumn('written, MB/s', 2),
      numberColumn('read p50, ms', 1),
      numberColumn('read p99, ms', 1),
      numberColumn('write p50, ms', 1),
      numberColumn('write p99, ms', 1),
      numberColumn('errors'),
      textColumn('first error'),
    ],
    rows: [row('alone', figures.quiet), row('while groups moved', figures.busy)],
  };
}

export function progressTable({ samples }: ClusterFigures): ReportTable {
  return {
    id: 'progress',
    title: 'As it went',
    columns: [
      numberColumn('s', 1),
      numberColumn('MB left', 1),
      numberColumn('groups left'),
      numberColumn('MB/s', 2),
      numberColumn('s left, as told', 1),
      textColumn('pace'),
    ],
    rows: samples.map((sample) => [
      sample.seconds,
      sample.bytesLeft / MB,
      sample.groupsLeft,
      sample.bytesPerSecond / MB,
      sample.secondsLeft ?? null,
      sample.pace,
    ]),
  };
}
