import { atLeast, type Check } from '../report/check.ts';
import { numberColumn, type ReportSection, textColumn } from '../report/report.ts';
import { type Contestant, leavingOnly, randomHolder } from './contestants.ts';
import { DEVICE, MEMORY, type Resources } from './resources.ts';
import { PIECES_PER_NODE, pointOf, type Runner, totals } from './runner.ts';
import { nameOf, platformScenario } from './scenario.ts';
import { spreadOf } from './spread.ts';

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
