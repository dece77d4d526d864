import type { Clock, Random } from '@webdfs/base';
import { atMost, type Check } from '../report/check.ts';
import { environmentOf, type Report } from '../report/report.ts';
import { type ObjectRow, objectReport } from './object-report.ts';
import { usageOf } from './process-usage.ts';
import { type Body, bodyOf, S3Load, type S3Target } from './s3-load.ts';

/**
 * `webdfs bench object`: PUT and GET of four sizes at two numbers of connections, against one or several S3 endpoints
 * with the same client, one after another within each cell of the table. The figure that holds on a shared machine is the
 * servers' CPU time per operation; rates and latencies are what was left of the machine.
 */

export interface MeasuredTarget extends S3Target {
  /** All processes of the server, or none if it runs elsewhere: no CPU figures then. Asked before each measurement. */
  readonly pids: () => Promise<readonly number[]>;
}

export interface ObjectBenchOptions {
  readonly targets: readonly MeasuredTarget[];
  readonly sizes: readonly number[];
  readonly connections: readonly number[];
  /** Time of each measurement; a third of it goes before as warm-up. */
  readonly seconds: number;
  /** Before anything is measured every target gets PUTs and GETs for so long: compilers and caches settle. */
  readonly warmUpSeconds: number;
  /** Times each measurement is taken; the one with the median CPU counts. */
  readonly rounds: number;
  readonly clock: Clock;
  readonly random: Random;
  /** The words that repeat the run, for the report. */
  readonly command: string;
  readonly onRow: (row: ObjectRow) => void;
}

/** CPU per operation against radosgw in the same run, by operation and size. */
export const GATES: readonly { operation: 'PUT' | 'GET'; size: number; ratio: number }[] = [
  { operation: 'PUT', size: 4096, ratio: 1 / 12 },
  { operation: 'GET', size: 4096, ratio: 1 / 6 },
  { operation: 'PUT', size: 131_072, ratio: 1 / 6 },
  { operation: 'GET', size: 131_072, ratio: 1 / 4 },
  { operation: 'PUT', size: 10_485_760, ratio: 0.55 },
  { operation: 'GET', size: 10_485_760, ratio: 0.4 },
];

const BUCKET = 'webdfs-bench';

async function measure(
  options: ObjectBenchOptions,
  cell: {
    target: MeasuredTarget;
    load: S3Load;
    operation: 'PUT' | 'GET';
    body: Body;
    connections: number;
  },
): Promise<ObjectRow> {
  const { target, load, operation, body, connections } = cell;
  await load.run({ operation, body, connections, seconds: options.seconds / 3 });
  const pids = await target.pids();
  const before = pids.length === 0 ? 0 : usageOf(pids).cpuMs;
  const result = await load.run({ operation, body, connections, seconds: options.seconds });
  const cpuMs = pids.length === 0 ? undefined : (usageOf(pids).cpuMs - before) / result.operations;
  return {
    target: target.name,
    operation,
    size: body.bytes.length,
    connections,
    operationsPerSecond: result.operations / result.seconds,
    megabytesPerSecond: (result.operations * body.bytes.length) / result.seconds / 1e6,
    p50: result.p50,
    p95: result.p95,
    p99: result.p99,
    cpuMs,
    errors: result.errors,
    firstError: result.firstError,
  };
}

function median(rows: readonly ObjectRow[]): ObjectRow {
  const sorted = rows.toSorted((a, b) => (a.cpuMs ?? a.p50) - (b.cpuMs ?? b.p50));
  return sorted[Math.floor((sorted.length - 1) / 2)]!;
}

/** The gates, for the first target against `radosgw`, at the smallest number of connections both were measured with. */
export function checksOf(rows: readonly ObjectRow[], subject: string, rival: string): Check[] {
  const checks: Check[] = [];
  for (const gate of GATES) {
    const find = (name: string): ObjectRow | undefined =>
      rows
        .filter((row) => row.target === name && row.operation === gate.operation && row.size === gate.size)
        .toSorted((a, b) => a.connections - b.connections)[0];
    const ours = find(subject)?.cpuMs;
    const theirs = find(rival)?.cpuMs;
    if (ours === undefined || theirs === undefined) continue;
    checks.push(
      atMost(
        `${gate.operation} ${gate.size} B: CPU per operation, ${subject} / ${rival}`,
        ours / theirs,
        gate.ratio,
        'ratio',
      ),
    );
  }
  return checks;
}

async function warmUp(options: ObjectBenchOptions): Promise<void> {
  const body = bodyOf(Math.min(...options.sizes), options.random);
  const connections = Math.max(...options.connections);
  for (const target of options.targets) {
    using load = new S3Load({ target, bucket: BUCKET, connections, clock: options.clock, random: options.random });
    await load.makeBucket();
    await load.fill(body, connections);
    await load.run({ operation: 'PUT', body, connections, seconds: options.warmUpSeconds * 0.7 });
    await load.run({ operation: 'GET', body, connections, seconds: options.warmUpSeconds * 0.3 });
  }
}

export async function benchObjects(options: ObjectBenchOptions): Promise<Report> {
  const environment = environmentOf(options);
  const rows: ObjectRow[] = [];
  await warmUp(options);
  for (const size of options.sizes) {
    const body = bodyOf(size, options.random);
    for (const connections of options.connections) {
      for (const operation of ['PUT', 'GET'] as const) {
        for (const target of options.targets) {
          using load = new S3Load({
            target,
            bucket: BUCKET,
            connections,
            clock: options.clock,
            random: options.random,
          });
          await load.makeBucket();
          if (operation === 'GET') await load.fill(body, connections);
          const rounds: ObjectRow[] = [];
          for (let round = 0; round < options.rounds; round++) {
            rounds.push(await measure(options, { target, load, operation, body, connections }));
          }
          const row = median(rounds);
          rows.push(row);
          options.onRow(row);
        }
      }
    }
  }
  return objectReport(rows, checksOf(rows, options.targets[0]!.name, 'radosgw'), environment);
}
