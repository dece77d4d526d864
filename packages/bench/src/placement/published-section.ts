import { type Column, numberColumn, type ReportSection, type ReportTable, textColumn } from '../report/report.ts';
import { compareText, type DiskFinding, type Finding, type ServerRow, sumOf } from './published-comparison.ts';
import { PUBLISHED_PARTNERS_RUSH_R } from './original/published.ts';
import type { SetupResults } from './setup-results.ts';
import { compareToday } from './today-comparison.ts';

const VERDICT: Column = { title: 'verdict', kind: 'verdict' };

function findingTable(id: string, title: string, findings: readonly Finding[]): ReportTable {
  return {
    id,
    title,
    columns: [
      textColumn('figure'),
      textColumn('placement'),
      numberColumn('published'),
      numberColumn('measured'),
      numberColumn('noise ±'),
      VERDICT,
    ],
    rows: findings.map((finding) => [
      finding.figure,
      finding.who,
      finding.published,
      finding.measured,
      finding.noise,
      finding.verdict,
    ]),
  };
}

/** Two lines a figure, published and measured, and a column a disk. */
function diskTable(id: string, title: string, findings: readonly DiskFinding[]): ReportTable {
  return {
    id,
    title,
    columns: [
      textColumn('figure'),
      textColumn(''),
      ...findings[0]!.published.map((_, i) => numberColumn(String(i + 1))),
    ],
    rows: findings.flatMap((finding) => [
      [finding.title, 'published', ...finding.published],
      ['', 'measured', ...finding.measured],
    ]),
  };
}

function verdictTable(id: string, title: string, who: string, findings: readonly DiskFinding[]): ReportTable {
  return {
    id,
    title,
    columns: [
      textColumn('figure, disk by disk'),
      textColumn('placement'),
      numberColumn('published sum'),
      numberColumn('measured sum'),
      VERDICT,
    ],
    rows: findings.map((finding) => [
      finding.title,
      who,
      sumOf(finding.published),
      sumOf(finding.measured),
      finding.verdict,
    ]),
  };
}

export interface PublishedFindings {
  readonly rushR: readonly DiskFinding[];
  readonly rushP: { readonly disks: readonly DiskFinding[]; readonly totals: readonly Finding[] };
  /** Sets of fresh names that stood for those RUSH_P was measured with. */
  readonly sets: number;
  readonly servers: readonly ServerRow[];
  /** Today's placements in the founding set-up. */
  readonly founding: SetupResults;
}

/** The figures of 2009, with the original's own locators and with today's. */
export function publishedSection({ rushR, rushP, sets, servers, founding }: PublishedFindings): ReportSection {
  const distribution = rushR[0]!;
  return {
    id: 'original',
    title: 'The original, exactly',
    prose: [
      'WebDFS published its experiments in July 2009. Its two locators are rebuilt here draw for draw: a key of 15 bits of a CRC32, the Mersenne Twister of ' +
        'PHP 5 with its defect, seeds that are positions in a list.',
      'RUSH_R was measured with a list of names that was kept, so its figures come out to the digit. RUSH_P drew fresh names for every run: its published ' +
        `counts must lie within four standard deviations of the mean of ${sets} sets of random names.`,
    ],
    charts: [
      {
        id: 'distribution',
        title: 'Copies held by each disk, RUSH_R of July 2009',
        kind: 'bar',
        x: { title: 'disk', scale: 'names' },
        y: { title: 'copies', scale: 'linear' },
        series: [
          { name: 'published', points: distribution.published.map((count, i) => [i + 1, count] as const) },
          { name: 'measured', points: distribution.measured.map((count, i) => [i + 1, count] as const) },
        ],
      },
      {
        id: 'partners',
        title: 'Copies shared with failed disk 15, RUSH_R of July 2009',
        kind: 'bar',
        x: { title: 'disk', scale: 'names' },
        y: { title: 'copies', scale: 'linear' },
        series: [
          { name: 'published', points: PUBLISHED_PARTNERS_RUSH_R[15].map((count, i) => [i + 1, count] as const) },
          { name: 'measured', points: rushR.at(-1)!.measured.map((count, i) => [i + 1, count] as const) },
        ],
      },
    ],
    tables: [
      verdictTable('rush-r', 'RUSH_R, to the digit', 'original-rush-r', rushR),
      verdictTable('rush-p', 'RUSH_P, within noise', 'original-rush-p', rushP.disks),
      findingTable('totals', 'Totals', [...rushP.totals, ...compareText(rushP.totals)]),
      findingTable('today', 'The same experiments with the algorithms of today', compareToday(founding)),
      {
        id: 'servers',
        title: '15 servers in 5 sub-clusters, 2 copies of 129 278 objects (14 degrees of freedom)',
        columns: [
          textColumn('placement'),
          numberColumn('fullest / mean', 3),
          numberColumn('emptiest / mean', 3),
          numberColumn('std. deviation', 0),
          numberColumn('chi-square', 1),
          VERDICT,
        ],
        rows: servers,
      },
      diskTable('rush-r-disks', 'RUSH_R, disk by disk', rushR),
      diskTable('rush-p-disks', 'RUSH_P, disk by disk (measured: mean of the sets)', rushP.disks),
    ],
  };
}
