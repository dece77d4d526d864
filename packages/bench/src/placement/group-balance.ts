import { numberColumn, type ReportSection, textColumn } from '../report/report.ts';
import type { Contestant } from './contestant.ts';
import { subclustersOf } from './layout.ts';
import { balanceOf, type Placed } from './placed.ts';

/** Balance of nodes of one weight under a number of groups. */
export interface GroupBalance {
  readonly name: string;
  readonly nodes: number;
  readonly groups: number;
  /** Fullest node / mean. */
  readonly fullest: number;
  /** Standard deviation / mean. */
  readonly variation: number;
}

export interface GroupBalanceOptions {
  readonly contestants: readonly Contestant[];
  readonly nodes: readonly number[];
  readonly groups: readonly number[];
  readonly seed: number;
  readonly onProgress: (what: string) => void;
}

const COPIES = 3;

/** Copies of groups that a node has on average. */
export function copiesPerNode(groups: number, nodes: number): number {
  return (groups * COPIES) / nodes;
}

/** What chance alone makes of fullest / mean; a little more than is measured. */
export function fullestByChance(groups: number, nodes: number): number {
  return 1 + Math.sqrt((2 * Math.log(nodes) * (1 - COPIES / nodes)) / copiesPerNode(groups, nodes));
}

function firstGroups(placed: Placed, groupCount: number): Placed {
  return { ...placed, groupCount, rows: placed.rows.subarray(0, groupCount * placed.copies) };
}

export function measureGroupBalance(options: GroupBalanceOptions): GroupBalance[] {
  const found: GroupBalance[] = [];
  const most = Math.max(...options.groups);
  for (const nodes of options.nodes) {
    const subclusters = subclustersOf([1], nodes);
    for (const contestant of options.contestants) {
      const task = { subclusters, copies: COPIES, groupCount: most, seed: options.seed };
      if (contestant.refusal(task) !== undefined) continue;
      options.onProgress(`Groups: ${contestant.name}, ${nodes} nodes`);
      // a table that remembers is balanced as a whole, not in its beginning
      const whole = contestant.prefixes ? contestant.place(task) : undefined;
      for (const groups of options.groups) {
        const placed =
          whole === undefined ? contestant.place({ ...task, groupCount: groups }) : firstGroups(whole, groups);
        const { largest, deviation } = balanceOf(placed);
        found.push({ name: contestant.name, nodes, groups, fullest: largest, variation: deviation });
      }
    }
  }
  return found;
}

export function groupSection(found: readonly GroupBalance[]): ReportSection {
  const names = [...new Set(found.map((balance) => balance.name))];
  const nodes = [...new Set(found.map((balance) => balance.nodes))];
  const groups = [...new Set(found.map((balance) => balance.groups))];
  const shown = names[0]!;
  const of = (name: string, nodeCount: number, groupCount: number): GroupBalance | undefined =>
    found.find((one) => one.name === name && one.nodes === nodeCount && one.groups === groupCount);
  const most = Math.max(...groups);
  return {
    id: 'groups',
    title: 'How many groups',
    prose: [
      'Nodes of equal weight. Only groups are placed, so a node holds a whole number of them and chance decides how many: with q copies of groups per node, ' +
        'fullest / mean is about 1 + √(2 ln N · (1 − R/N) / q). Pins take away what is left.',
    ],
    charts: [
      {
        id: 'fullest',
        title: `Fullest node by copies of groups per node, ${shown}`,
        kind: 'line',
        x: { title: 'copies of groups per node', scale: 'log' },
        y: { title: 'fullest / mean', scale: 'log' },
        series: [
          ...nodes.map((count) => ({
            name: `${count} nodes`,
            points: groups.map((g) => [copiesPerNode(g, count), of(shown, count, g)?.fullest ?? 1] as const),
          })),
          {
            name: `formula, ${nodes.at(-1)} nodes`,
            reference: true as const,
            points: groups.map((g) => [copiesPerNode(g, nodes.at(-1)!), fullestByChance(g, nodes.at(-1)!)] as const),
          },
        ],
      },
    ],
    tables: [
      {
        id: 'fullest',
        title: `Fullest / mean, ${shown}; in brackets by the formula`,
        columns: [textColumn('nodes'), ...groups.map((count) => textColumn(`${count} groups`))],
        rows: nodes.map((count) => [
          String(count),
          ...groups.map((g) => `${of(shown, count, g)?.fullest.toFixed(3)} (${fullestByChance(g, count).toFixed(3)})`),
        ]),
      },
      {
        id: 'placements',
        title: `Fullest / mean and standard deviation in % with ${most} groups`,
        columns: [
          textColumn('placement'),
          ...nodes.flatMap((count) => [numberColumn(`${count} nodes`, 3), numberColumn('deviation, %', 2)]),
        ],
        rows: names.map((name) => [
          name,
          ...nodes.flatMap((count) => {
            const one = of(name, count, most);
            return one === undefined ? [null, null] : [one.fullest, one.variation * 100];
          }),
        ]),
      },
    ],
  };
}
