import { cpus } from 'node:os';
import type { Clock } from '@webdfs/base';
import { BENCH_EXIT, type Check } from './check.ts';

/**
 * What every benchmark ends with: one value of plain data. `reportText`, `tableCsv` and `reportHtml` show it, `writeReport`
 * writes all of them; as JSON it is itself.
 */
export interface Report {
  readonly format: 'webdfs-report';
  readonly version: 1;
  readonly title: string;
  /** One sentence or two on top: what the run found. */
  readonly summary: readonly string[];
  readonly environment: Environment;
  readonly sections: readonly ReportSection[];
  /** What the run promises; empty if it only looks. */
  readonly checks: readonly Check[];
  /** Why the run proves nothing, such as errors on the way. */
  readonly invalid?: string;
}

/** Where and how a run was made: what someone needs who wants the same figures again. */
export interface Environment {
  /** The words that repeat the run, such as `webdfs bench placement --seed 1`. */
  readonly command: string;
  /** Undefined where chance plays no part. */
  readonly seed?: number;
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
}

export interface ReportSection {
  /** A kebab-case word, unique in the report: the anchor in HTML, the beginning of file names. */
  readonly id: string;
  readonly title: string;
  /** Paragraphs of plain text. */
  readonly prose: readonly string[];
  readonly charts: readonly ReportChart[];
  readonly tables: readonly ReportTable[];
}

/** A number is shown with its column's digits; null is an empty cell. */
export type Cell = string | number | null;

export interface Column {
  /** With the unit where there is one: `p99, ms`. */
  readonly title: string;
  /** `verdict`: text that begins with the name of a verdict and is coloured by it. */
  readonly kind: 'text' | 'number' | 'verdict';
  /** Digits behind the point, of columns of numbers; 0 if left out. */
  readonly digits?: number;
}

export interface ReportTable {
  /** A kebab-case word, unique in its section. */
  readonly id: string;
  readonly title: string;
  readonly columns: readonly Column[];
  /** One cell per column. */
  readonly rows: readonly (readonly Cell[])[];
}

export interface Axis {
  readonly title: string;
  /** `names`: one place per text or number, in the order in which the first series has them. */
  readonly scale: 'linear' | 'log' | 'names';
}

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: string | number, y: number])[];
  /** Drawn as a dashed line in the colour of text, among bars too: an optimum, a target. */
  readonly reference?: true;
}

export interface ReportChart {
  /** A kebab-case word, unique in its section. */
  readonly id: string;
  readonly title: string;
  readonly kind: 'line' | 'bar';
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
}

export function textColumn(title: string): Column {
  return { title, kind: 'text' };
}

export function numberColumn(title: string, digits = 0): Column {
  return { title, kind: 'number', digits };
}

/** The environment of a run on this machine that starts now. */
export function environmentOf(run: { command: string; seed?: number; clock: Clock }): Environment {
  return {
    command: run.command,
    ...(run.seed === undefined ? {} : { seed: run.seed }),
    node: process.versions.node,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    startedAt: new Date(run.clock.now()).toISOString(),
  };
}

/** A cell as a reader sees it. @param group  what stands between thousands */
export function cellText(cell: Cell, column: Column, group = ','): string {
  if (cell === null) return '';
  if (typeof cell === 'string') return cell;
  const [whole, fraction] = cell.toFixed(column.digits ?? 0).split('.');
  const grouped = whole!.replaceAll(/\B(?=(\d{3})+$)/g, group);
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** The checks as a table, for those who show a report. */
export function checkTable(checks: readonly Check[]): ReportTable {
  const digits = (value: number): string => (Number.isInteger(value) ? String(value) : value.toPrecision(4));
  return {
    id: 'checks',
    title: 'Checks',
    columns: [
      { title: 'verdict', kind: 'verdict' },
      textColumn('check'),
      textColumn('value'),
      textColumn('limit'),
      textColumn('unit'),
    ],
    rows: checks.map((check) => [
      check.pass ? 'pass' : 'FAIL',
      check.name,
      digits(check.value),
      digits(check.limit),
      check.unit,
    ]),
  };
}

/** What a program ends with: 1 if a check fails, 2 if the run proves nothing. */
export function exitCodeOfReport(report: Report): number {
  if (report.invalid !== undefined) return BENCH_EXIT.INVALID;
  return report.checks.every((check) => check.pass) ? BENCH_EXIT.PASS : BENCH_EXIT.FAIL;
}
