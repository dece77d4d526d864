import { atLeast, atMost, type Check } from '../report/check.ts';
import { numberColumn, type ReportSection, textColumn } from '../report/report.ts';
import { type Contestant, leavingOnly, randomHolder, webdfs } from './contestants.ts';
import { faultsOf, measure, type Measurement } from './measurement.ts';
import { BOTH, DEVICE, MEMORY, type Resources } from './resources.ts';
import { nameOf, platformScenario, type Scenario } from './scenario.ts';
import { meanOf, spreadOf } from './spread.ts';

/** What WebDFS promises of its own plans, in simulated time. */
const GATE = { each: 1.1, mean: 1.05, foretold: 0.1 } as const;
/** Runs as others are to compare with: pieces each node holds. */
export const PIECES_PER_NODE = 1600;

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

interface Point {
  readonly scenario: Scenario;
  readonly resources: Resources;
  readonly runs: readonly Measurement[];
}

export interface Runner {
  readonly quick: boolean;
  readonly seeds: readonly number[];
  /** Tells what is under way, and lets others have a turn. @throws the signal's reason if it is aborted */
  readonly step: (what: string) => Promise<void>;
}

async function pointOf(contestant: Contestant, point: Omit<Point, 'runs'>, { seeds, step }: Runner): Promise<Point> {
  const runs: Measurement[] = [];
  for (const seed of seeds) {
    await step(`${contestant.name}, ${nameOf(point.scenario)}, ${point.resources.name}`);
    runs.push(measure(contestant, point.scenario, { rates: point.resources.rates, seed }));
  }
  return { ...point, runs };
}

function totals({ runs }: Point): number[] {
  return runs.map(({ ratios }) => ratios.total);
}

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
      charts: [
        {
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
              points: [...new Set(points.map(({ scenario }) => nameOf(scenario)))].map((x): [string, number] => [
                x,
                1.16,
              ]),
            },
          ],
        },
      ],
      tables: [
        {
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
        },
      ],
    },
  };
}

interface Control {
  readonly contestant: Contestant;
  readonly nodes: number;
  readonly change: number;
  readonly resources: Resources;
  /** By how much it has to miss the bound at least; undefined: only shown. */
  readonly least?: number;
}

const RANDOM = randomHolder(PIECES_PER_NODE);
const LEAVING = leavingOnly(PIECES_PER_NODE);
const CONTROLS: readonly Control[] = [
  { contestant: RANDOM, nodes: 20, change: -1, resources: MEMORY, least: 4 },
  { contestant: RANDOM, nodes: 20, change: -7, resources: MEMORY },
  { contestant: RANDOM, nodes: 10, change: 10, resources: MEMORY },
  { contestant: RANDOM, nodes: 10, change: 30, resources: MEMORY, least: 1.5 },
  { contestant: RANDOM, nodes: 20, change: -1, resources: DEVICE, least: 2 },
  { contestant: RANDOM, nodes: 10, change: 30, resources: DEVICE, least: 1.3 },
  { contestant: LEAVING, nodes: 20, change: -1, resources: MEMORY, least: 12 },
  { contestant: LEAVING, nodes: 20, change: -7, resources: MEMORY, least: 1.16 },
  { contestant: LEAVING, nodes: 20, change: -1, resources: DEVICE, least: 6 },
];

/** Bad schedulers in the same model: where they must miss the bound, they do, or the grid proves nothing. */
export async function controlSection(runner: Runner): Promise<{ section: ReportSection; checks: Check[] }> {
  const checks: Check[] = [];
  const rows: (string | number)[][] = [];
  for (const { contestant, nodes, change, resources, least } of CONTROLS) {
    if (runner.quick && least === undefined) continue;
    const point = await pointOf(contestant, { scenario: platformScenario(nodes, change), resources }, runner);
    const { median } = spreadOf(totals(point));
    const name = nameOf(point.scenario);
    rows.push([contestant.name, name, resources.name, median, least === undefined ? '' : least.toFixed(2)]);
    if (least !== undefined) {
      checks.push(
        atLeast(`control, ${contestant.name}, ${name}, ${resources.name}: misses the bound`, median, least, '×'),
      );
    }
  }
  return {
    checks,
    section: {
      id: 'controls',
      title: 'Bad schedulers, to see that the measure measures',
      prose: [
        'Any holder at random is the obvious cure for draining only the node that leaves, and none: of three holders of every parcel one is still the ' +
          'node that leaves. Where receivers set the pace it nearly passes, as it should.',
      ],
      charts: [],
      tables: [
        {
          id: 'controls',
          title: 'Time by the bound, medians',
          columns: [
            textColumn('scheduler'),
            textColumn('nodes'),
            textColumn('pace'),
            numberColumn('T / T_bound', 2),
            textColumn('must miss by'),
          ],
          rows,
        },
      ],
    },
  };
}
