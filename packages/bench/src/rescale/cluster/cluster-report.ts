import type { Clock } from '@webdfs/base';
import { atMost, type Check } from '../../report/check.ts';
import { environmentOf, type Report, type ReportSection } from '../../report/report.ts';
import type { ClusterFigures } from './cluster-run.ts';
import { changeTable, foregroundTable, progressTable, sentTwice } from './cluster-tables.ts';
import { errorOfTimeLeft } from './time-left.ts';

/** What is promised of a run, and what Pufferbench reached. */
const GATE = { total: 1.16, twice: 0.02, timeLeft: 0.1 } as const;
/** A machine that idles less measures itself. */
const LEAST_IDLE = 0.25;
/** Copies that nodes still have of groups that they left make a change quicker than its bound. Some is how objects are stored. */
const MOST_LEFTOVERS = 0.1;
const MB = 1e6;

function checksOf(figures: ClusterFigures): Check[] {
  const { summary, found, proof, busy, quiet, samples } = figures;
  const error = errorOfTimeLeft(samples, summary.seconds);
  return [
    ...(summary.ratios?.total === undefined
      ? []
      : [atMost('cluster: time by the bound, Pufferbench 1.16', summary.ratios.total, GATE.total, '×')]),
    atMost('cluster: bytes sent twice', sentTwice(figures), GATE.twice, 'of those planned'),
    ...(error === undefined
      ? []
      : [atMost('cluster: error of the time left, a fifth done', Math.abs(error), GATE.timeLeft, 'of it')]),
    atMost(
      'cluster: what the validator found wrong',
      found.before.faults.length + found.after.faults.length,
      0,
      'faults',
    ),
    atMost('cluster: objects and copies that are not good', proof.bad, 0, 'objects'),
    atMost('cluster: requests of clients that failed', busy.errors + quiet.errors, 0, 'requests'),
  ];
}

function invalidities({ summary, idleShare, found }: ClusterFigures): string[] {
  const { leftovers } = found.before;
  return [
    ...(summary.outcome === 'settled' ? [] : [`the change was ${summary.outcome}`]),
    ...(summary.bound === undefined
      ? ['no rate was measured: it took less than some seconds, and no limit was set (--limit)']
      : []),
    ...(leftovers > MOST_LEFTOVERS
      ? [
          `nodes held ${(leftovers * 100).toFixed(0)} % more than is theirs, which need not move: wait ten minutes after a change`,
        ]
      : []),
    ...(idleShare < LEAST_IDLE ? [`the machine idled ${(idleShare * 100).toFixed(0)} %`] : []),
  ];
}

function sectionOf(figures: ClusterFigures): ReportSection {
  const { samples, summary, found, proof } = figures;
  const [first] = samples;
  const faults = [...found.before.faults, ...found.after.faults];
  return {
    id: 'cluster',
    title: 'A running cluster',
    prose: [
      `${summary.command}. The cluster plays all seven parts: its objects, its placement, its planner, its mover, its disks and its ` +
        'network; the figures are those of its own history, the validator looks at loads and copies before and after.',
      `Afterwards ${proof.objects} objects were read to their end and ${proof.copies} copies verified by their nodes` +
        `${proof.problem === undefined ? '' : `: ${proof.problem}`}.${faults.length === 0 ? '' : ` The validator found: ${faults.join('; ')}.`}`,
      'Bytes are those of objects. The bound goes by the rates that nodes were seen to move at, or by the limit that was set for the run, whichever is less.',
    ],
    charts:
      first === undefined
        ? []
        : [
            {
              id: 'left',
              title: 'Bytes that were left',
              kind: 'line',
              x: { title: 'seconds', scale: 'linear' },
              y: { title: 'MB', scale: 'linear' },
              series: [
                { name: 'measured', points: samples.map(({ seconds, bytesLeft }) => [seconds, bytesLeft / MB]) },
                ...(summary.bound === undefined
                  ? []
                  : [
                      {
                        name: 'bound',
                        points: [[0, (summary.planned.bytes ?? 0) / MB] as const, [summary.bound.seconds, 0] as const],
                        reference: true as const,
                      },
                    ]),
              ],
            },
          ],
    tables: [changeTable(figures), foregroundTable(figures), progressTable(figures)],
  };
}

/** What a run on a real cluster ends with: the same figures as the other targets of `bench rescale`. */
export function clusterReport(
  figures: ClusterFigures,
  run: { readonly command: string; readonly seed: number; readonly clock: Clock },
): Report {
  const checks = checksOf(figures);
  const invalid = invalidities(figures);
  const { summary } = figures;
  const total = summary.ratios?.total;
  return {
    format: 'webdfs-report',
    version: 1,
    title: 'Rescaling a running cluster',
    summary: [
      total === undefined
        ? `${summary.command} took ${summary.seconds.toFixed(1)} s; nobody measured what it had to take.`
        : `${summary.command} took ${summary.seconds.toFixed(1)} s, ${((total - 1) * 100).toFixed(1)} % longer than the bound; Pufferbench came within 16 % of it.`,
      `${checks.filter(({ pass }) => pass).length} of ${checks.length} checks pass.`,
    ],
    environment: environmentOf(run),
    sections: [sectionOf(figures)],
    checks,
    ...(invalid.length === 0 ? {} : { invalid: invalid.join('; ') }),
  };
}
