import type { Check } from '../report/check.ts';
import {
  type Column,
  type Environment,
  numberColumn,
  type Report,
  type ReportChart,
  type ReportTable,
  textColumn,
} from '../report/report.ts';

/** One measurement: an operation of one size on one store. */
export interface ObjectRow {
  readonly target: string;
  readonly operation: 'PUT' | 'GET';
  readonly size: number;
  readonly connections: number;
  readonly operationsPerSecond: number;
  readonly megabytesPerSecond: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  /** Of all server processes, milliseconds per operation; undefined without pids. */
  readonly cpuMs: number | undefined;
  readonly errors: number;
  readonly firstError: string | undefined;
}

export const OBJECT_COLUMNS: readonly Column[] = [
  textColumn('operation'),
  numberColumn('size, bytes'),
  numberColumn('connections'),
  textColumn('store'),
  numberColumn('op/s'),
  numberColumn('MB/s', 1),
  numberColumn('p50, ms', 2),
  numberColumn('p95, ms', 2),
  numberColumn('p99, ms', 2),
  numberColumn('CPU, ms/op', 3),
  numberColumn('errors'),
  textColumn('first error'),
];

/** The cells of `OBJECT_COLUMNS`. */
export function objectCells(row: ObjectRow): ReportTable['rows'][number] {
  return [
    row.operation,
    row.size,
    row.connections,
    row.target,
    row.operationsPerSecond,
    row.megabytesPerSecond,
    row.p50,
    row.p95,
    row.p99,
    row.cpuMs ?? null,
    row.errors,
    row.firstError ?? null,
  ];
}

/** By operation and size, a bar for each store; at the fewest connections, where the checks compare. */
function barsOf(
  rows: readonly ObjectRow[],
  chart: { id: string; title: string; unit: string },
  value: (row: ObjectRow) => number | undefined,
): ReportChart {
  const fewest = Math.min(...rows.map((row) => row.connections));
  const shown = rows.filter((row) => row.connections === fewest);
  return {
    id: chart.id,
    title: `${chart.title} at ${fewest} connections`,
    kind: 'bar',
    x: { title: 'operation and bytes', scale: 'names' },
    y: { title: chart.unit, scale: 'log' },
    series: [...Map.groupBy(shown, (row) => row.target)].map(([name, own]) => ({
      name,
      points: own.flatMap((row) => {
        const y = value(row);
        return y === undefined || y <= 0 ? [] : [[`${row.operation} ${row.size}`, y] as const];
      }),
    })),
  };
}

export function objectReport(rows: readonly ObjectRow[], checks: readonly Check[], environment: Environment): Report {
  const faulty = rows.filter((row) => row.errors > 0).length;
  return {
    format: 'webdfs-report',
    version: 1,
    title: 'Objects over S3',
    ...(faulty === 0 ? {} : { invalid: `there were errors in ${faulty} of ${rows.length} measurements` }),
    summary: checks.length > 0 ? [] : ['No gates were checked: they compare with radosgw in the same run.'],
    environment,
    sections: [
      {
        id: 'objects',
        title: 'PUT and GET',
        prose: [
          'The same client for every store, signatures and synchronous writes on, every byte compared. On a shared machine only the CPU time of the servers, and ' +
            'ratios within one run, hold.',
        ],
        charts: [
          barsOf(rows, { id: 'cpu', title: 'CPU time of all servers', unit: 'ms an operation' }, (row) => row.cpuMs),
          barsOf(rows, { id: 'rate', title: 'Rate', unit: 'operations a second' }, (row) => row.operationsPerSecond),
        ],
        tables: [{ id: 'rows', title: 'Measurements', columns: OBJECT_COLUMNS, rows: rows.map(objectCells) }],
      },
    ],
    checks,
  };
}
