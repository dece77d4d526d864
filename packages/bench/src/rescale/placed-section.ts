import { rescaleRatios } from '@webdfs/rescale';
import type { AlgorithmName } from '@webdfs/placement';
import { atMost, type Check } from '../report/check.ts';
import { numberColumn, type ReportSection, textColumn } from '../report/report.ts';
import { webdfs } from './contestants.ts';
import { placedChange } from './distribution/placed.ts';
import { filesOfOneSize } from './file-sizes.ts';
import { PIECES_PER_NODE, type Runner } from './runner.ts';
import { DEVICE, MEMORY, type Resources } from './resources.ts';
import { boundFor, membershipOf, nameOf, platformScenario, type Scenario } from './scenario.ts';
import { simulateRun } from './simulated/simulated-run.ts';

/** The default number of groups. */
const GROUP_BITS = 14;
const GATE = { move: 1.08, place: 1.1, total: 1.16 } as const;
/** With pins no node is more than 2 % above its share; one group may not be divisible. */
const FULLEST = 1.025;
const LATENCY = 100e-6;

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
  [20, -1],
];
const ALGORITHMS: readonly AlgorithmName[] = ['wrd', 'rush-r'];

interface PlacedRow {
  readonly algorithm: AlgorithmName;
  readonly scenario: Scenario;
  readonly pace: string;
  readonly pins: string;
  readonly ratios: ReturnType<typeof rescaleRatios>;
  readonly fullest: number;
  readonly faults: number;
}

function runPlaced(
  scenario: Scenario,
  algorithm: AlgorithmName,
  resources: readonly Resources[],
  seed: number,
): PlacedRow[] {
  const change = placedChange(scenario, { algorithm, groupBits: GROUP_BITS, seed, pinned: true });
  const groupBytes = (scenario.bytesPerNode * scenario.nodes) / scenario.copies / 2 ** GROUP_BITS;
  const parts = {
    ...webdfs(PIECES_PER_NODE).partsFor(scenario),
    metadata: filesOfOneSize(groupBytes),
    distribution: change.distribution,
  };
  return resources.map(({ name, rates }) => {
    const figures = simulateRun(parts, {
      membership: membershipOf(scenario),
      bytesPerNode: scenario.bytesPerNode,
      ratesOf: () => rates,
      latency: LATENCY,
      fullest: FULLEST,
      seed,
    });
    const ratios = rescaleRatios({
      movedBytes: figures.movedBytes,
      leastBytes: change.leastCopies * groupBytes,
      planSeconds: figures.planSeconds,
      boundSeconds: boundFor(scenario, rates).seconds,
      seconds: figures.seconds,
    });
    const faults = figures.before.faults.length + figures.after.faults.length;
    const { fullest } = figures.after;
    return { algorithm, scenario, pace: name, pins: change.pins.join(' → '), ratios, fullest, faults };
  });
}

/** The grid with real placements: groups are hashed, so balance is no longer given, and pins have to make it. */
export async function placedSection(runner: Runner): Promise<{ section: ReportSection; checks: Check[] }> {
  const rows: PlacedRow[] = [];
  for (const [nodes, change] of runner.quick ? QUICK_CHANGES : CHANGES) {
    for (const algorithm of ALGORITHMS) {
      const scenario = platformScenario(nodes, change);
      await runner.step(`${algorithm}, ${nameOf(scenario)}`);
      rows.push(...runPlaced(scenario, algorithm, [MEMORY, DEVICE], runner.seeds[0]!));
    }
  }
  const most = (algorithm: AlgorithmName, of: (row: PlacedRow) => number): number =>
    Math.max(...rows.filter((row) => row.algorithm === algorithm).map(of));
  const checks = ALGORITHMS.flatMap((name) => [
    ...(name === 'wrd'
      ? [
          atMost(
            `${name}: most moved by the least`,
            most(name, ({ ratios }) => ratios.move),
            GATE.move,
            '×',
          ),
        ]
      : []),
    atMost(
      `${name}: longest plan by the bound`,
      most(name, ({ ratios }) => ratios.place),
      GATE.place,
      '×',
    ),
    atMost(
      `${name}: longest run by the bound`,
      most(name, ({ ratios }) => ratios.total),
      GATE.total,
      '×',
    ),
  ]);
  checks.push(
    atMost('placed: faults that the validator found', Math.max(...rows.map(({ faults }) => faults)), 0, 'faults'),
  );
  return { checks, section: sectionOf(rows) };
}

function sectionOf(rows: readonly PlacedRow[]): ReportSection {
  return {
    id: 'placed',
    title: 'With real placements',
    prose: [
      `${2 ** GROUP_BITS} groups placed by hashing; a sub-cluster joins or leaves. Pins keep every node within 2 % of its share, before and after, and ` +
        'even out what each takes in meanwhile: of twenty nodes one that leaves gives each of the others some 130 groups, and the luckless would get a ' +
        'sixth to a quarter more.',
      'Move is what was moved by the least that any placement in proportion to weight must move. It can lie below 1 where the start was uneven.',
    ],
    charts: [],
    tables: [
      {
        id: 'placed',
        title: 'Ratios with real placements',
        columns: [
          textColumn('placement'),
          textColumn('nodes'),
          textColumn('pace'),
          textColumn('pins'),
          numberColumn('move', 3),
          numberColumn('place', 3),
          numberColumn('exec', 3),
          numberColumn('total', 3),
          numberColumn('fullest / mean', 3),
        ],
        rows: rows.map(({ algorithm, scenario, pace, pins, ratios, fullest }) => [
          algorithm,
          nameOf(scenario),
          pace,
          pins,
          ratios.move,
          ratios.place,
          ratios.exec,
          ratios.total,
          fullest,
        ]),
      },
    ],
  };
}
