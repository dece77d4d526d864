import { atMost, type Check } from '../report/check.ts';
import { numberColumn, type ReportChart, type ReportSection, type ReportTable, textColumn } from '../report/report.ts';
import { webdfs } from './contestants.ts';
import { faultsOf, type Measurement } from './measurement.ts';
import { BOTH, DEVICE, MEMORY } from './resources.ts';
import { nodeTable } from './node-table.ts';
import { type Point, PIECES_PER_NODE, pointOf, type Runner, totals } from './runner.ts';
import { nameOf, platformScenario } from './scenario.ts';
import { meanOf, spreadOf } from './spread.ts';

/** What WebDFS promises of its own plans, in simulated time. */
const GATE = { each: 1.1, mean: 1.05, foretold: 0.1 } as const;
const CHANGES: readonly (readonly [nodes: number, change: number])[] = [
  [10, 5],
  [10, 10],
  [10, 20],
  [10, 30],
  [20, -1],
  [20, -3],
  [20, -5],
  [20, -7],
];
const QUICK_CHANGES: typeof CHANGES = [
  [10, 10],
  [10, 30],
  [20, -1],
  [20, -7],
];

/** What the gates say of a grid, and whether every placement was what it should be. */
function gridChecks(points: readonly Point[]): Check[] {
  const faults = points.flatMap(({ runs }) => runs.flatMap(faultsOf));
  const foretold = points.flatMap(({ runs }) => runs.map(({ figures }) => Math.abs(figures.foretold - 1)));
  return [
    ...points.map((point) => {
      const name = `${nameOf(point.scenario)}, ${point.resources.name}: longest of ${point.runs.length} by the bound`;
      return atMost(name, spreadOf(totals(point)).most, GATE.each, '×');
    }),
    atMost('mean of all by the bound', meanOf(points.flatMap(totals)), GATE.mean, '×'),
    atMost('time left, foretold after a fifth: furthest off', Math.max(...foretold), GATE.foretold, 'of it'),
    atMost('faults that the validator found', faults.length, 0, 'faults'),
  ];
}

/** The grid that decides: WebDFS's plan, dispatcher and pipeline, unchanged, with simulated devices, network and time. */
export async function gridSection(runner: Runner): Promise<{ section: ReportSection; checks: Check[] }> {
  const points: Point[] = [];
  for (const [nodes, change] of runner.quick ? QUICK_CHANGES : CHANGES) {
    for (const resources of [MEMORY, DEVICE, BOTH]) {
      const scenario = platformScenario(nodes, change);
      points.push(await pointOf(webdfs(PIECES_PER_NODE), { scenario, resources }, runner));
    }
  }
  const checks = gridChecks(points);
  return {
    checks,
    section: {
      id: 'grid',
      title: 'How close to the bound',
      prose: [
        `50 GB a node, three copies, placed evenly, in ${PIECES_PER_NODE} pieces a node: nodes join (+) or leave (−), and network, devices or both set ` +
          'the pace. Plan, dispatcher and pipeline are those that move data in a cluster; storage, network and time are simulated.',
        'T_bound is what no scheme can beat. Place is T_plan by T_bound: balance; exec is T by T_plan: pipeline and order; total is T by T_bound. ' +
          'Left is the time foretold after a fifth of the bytes by what it turned out to be.',
        `The mean is ${meanOf(points.flatMap(totals)).toFixed(3)}. Pufferbench, on its own platform, came within 16 %.`,
      ],
      charts: [ratioChart(points)],
      tables: [pointTable(points), nodeTable(points.filter(isExtreme))],
    },
  };
}

/** Points that are shown node by node: the most nodes that join and that leave, both resources busy. */
function isExtreme({ scenario, resources }: Point): boolean {
  return resources === BOTH && (scenario.change === 30 || scenario.change === -7);
}

function ratioChart(points: readonly Point[]): ReportChart {
  return {
    id: 'ratios',
    title: 'Time by the bound',
    kind: 'bar',
    x: { title: 'nodes', scale: 'names' },
    y: { title: 'T / T_bound', scale: 'linear' },
    series: [
      ...[MEMORY, DEVICE, BOTH].map(({ name }) => ({
        name,
        points: points
          .filter((point) => point.resources.name === name)
          .map((point): [string, number] => [nameOf(point.scenario), spreadOf(totals(point)).median]),
      })),
      {
        name: 'Pufferbench, 1.16',
        reference: true as const,
        points: [...new Set(points.map(({ scenario }) => nameOf(scenario)))].map((x): [string, number] => [x, 1.16]),
      },
    ],
  };
}

function pointTable(points: readonly Point[]): ReportTable {
  return {
    id: 'points',
    title: 'Every point of the grid: medians over seeds; least and most of the total',
    columns: [
      textColumn('nodes'),
      textColumn('pace'),
      numberColumn('T_bound, s', 2),
      textColumn('set by'),
      numberColumn('T, s', 2),
      numberColumn('place', 3),
      numberColumn('exec', 3),
      numberColumn('total', 3),
      numberColumn('least', 3),
      numberColumn('most', 3),
      numberColumn('left', 3),
    ],
    rows: points.map((point) => {
      const { scenario, resources, runs } = point;
      const median = (of: (run: Measurement) => number): number => spreadOf(runs.map(of)).median;
      const total = spreadOf(totals(point));
      return [
        nameOf(scenario),
        resources.name,
        runs[0]!.bound.seconds,
        runs[0]!.bound.resource,
        median(({ figures }) => figures.seconds),
        median(({ ratios }) => ratios.place),
        median(({ ratios }) => ratios.exec),
        total.median,
        total.least,
        total.most,
        median(({ figures }) => figures.foretold),
      ];
    }),
  };
}
