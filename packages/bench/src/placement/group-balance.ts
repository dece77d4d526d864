import { balancePins, publishTopology } from '@webdfs/placement';
import { numberColumn, type ReportChart, type ReportSection, type ReportTable, textColumn } from '../report/report.ts';
import type { Contestant, Task } from './contestant.ts';
import { nodesOf } from './layout.ts';
import { balanceOf, type Placed } from './placed.ts';

/** A cluster whose balance is measured. */
export interface Cluster extends Omit<Task, 'groupCount' | 'seed'> {
  readonly name: string;
}

/** Balance of a cluster under a number of groups. */
export interface GroupBalance {
  readonly name: string;
  readonly cluster: string;
  readonly nodes: number;
  readonly copies: number;
  readonly groups: number;
  /** Fullest node / its target. */
  readonly fullest: number;
  /** Standard deviation of load / target. */
  readonly variation: number;
}

/** Copies of groups that a node has on average. */
export function copiesPerNode(groups: number, nodes: number, copies: number): number {
  return (groups * copies) / nodes;
}

/** What chance alone makes of fullest / mean, of nodes of one weight; a little more than is measured. */
export function fullestByChance(groups: number, nodes: number, copies: number): number {
  return 1 + Math.sqrt((2 * Math.log(nodes) * (1 - copies / nodes)) / copiesPerNode(groups, nodes, copies));
}

function firstGroups(placed: Placed, groupCount: number): Placed {
  return { ...placed, groupCount, rows: placed.rows.subarray(0, groupCount * placed.copies) };
}

/** One contestant, one cluster, several numbers of groups; nothing if it cannot place the cluster. */
export function measureGroupBalance(
  contestant: Contestant,
  cluster: Cluster,
  options: { groups: readonly number[]; seed: number },
): GroupBalance[] {
  const { name, ...rest } = cluster;
  const task = { ...rest, groupCount: Math.max(...options.groups), seed: options.seed };
  if (contestant.refusal(task) !== undefined) return [];
  // a table that remembers is balanced as a whole, not in its beginning
  const whole = contestant.prefixes ? contestant.place(task) : undefined;
  const nodes = nodesOf(cluster.subclusters).filter((node) => node.weight > 0).length;
  return options.groups.map((groups) => {
    const placed = whole === undefined ? contestant.place({ ...task, groupCount: groups }) : firstGroups(whole, groups);
    const { largest, deviation } = balanceOf(placed);
    const { copies } = cluster;
    return { name: contestant.name, cluster: name, nodes, copies, groups, fullest: largest, variation: deviation };
  });
}

/** What pins make of a cluster placed by WRD. */
export interface PinnedBalance {
  readonly cluster: string;
  readonly groups: number;
  readonly before: number;
  readonly pins: number;
  /** Of all copies. */
  readonly pinnedShare: number;
  readonly after: number;
}

/** @param groupBits  log2 of the number of groups */
export function measurePins(cluster: Cluster, groupBits: number, seed: number): PinnedBalance {
  const { name, ...rest } = cluster;
  const topology = publishTopology({ algorithm: 'wrd', version: 1, seed, ...rest }, { groupBits });
  const { pins, before, after } = balancePins(topology, { groupBits });
  const groups = 2 ** groupBits;
  const pinnedShare = pins.length / (groups * cluster.copies);
  return { cluster: name, groups, before, pins: pins.length, pinnedShare, after };
}

function pinTable(pinned: readonly PinnedBalance[]): ReportTable {
  return {
    id: 'pins',
    title: 'Pins until the fullest node is within 2 % of its share, as far as whole groups allow, wrd',
    columns: [
      textColumn('cluster'),
      numberColumn('groups'),
      numberColumn('fullest / target before', 3),
      numberColumn('pins'),
      numberColumn('of all copies, %', 2),
      numberColumn('after', 3),
    ],
    rows: pinned.map((one) => [one.cluster, one.groups, one.before, one.pins, one.pinnedShare * 100, one.after]),
  };
}

/** @param found  of one contestant */
function fullestChart(found: readonly GroupBalance[]): ReportChart {
  const clusters = Map.groupBy(found, (balance) => balance.cluster);
  const last = [...clusters.values()].at(-1)!;
  return {
    id: 'fullest',
    title: `Fullest node by copies of groups per node, ${found[0]!.name}`,
    kind: 'line',
    x: { title: 'copies of groups per node', scale: 'log' },
    y: { title: 'fullest / target', scale: 'log' },
    series: [
      ...[...clusters].map(([name, balances]) => ({
        name,
        points: balances.map((one) => [copiesPerNode(one.groups, one.nodes, one.copies), one.fullest] as const),
      })),
      {
        name: `formula, ${last[0]!.nodes} nodes of one weight`,
        reference: true as const,
        points: last.map(
          ({ groups, nodes, copies }) =>
            [copiesPerNode(groups, nodes, copies), fullestByChance(groups, nodes, copies)] as const,
        ),
      },
    ],
  };
}

/** @param found  of one contestant */
function fullestTable(found: readonly GroupBalance[]): ReportTable {
  const groups = [...new Set(found.map((balance) => balance.groups))];
  const cell = ({ fullest, groups, nodes, copies }: GroupBalance): string =>
    `${fullest.toFixed(3)} (${fullestByChance(groups, nodes, copies).toFixed(3)})`;
  return {
    id: 'fullest',
    title: `Fullest / target, ${found[0]!.name}; in brackets by the formula`,
    columns: [textColumn('cluster'), ...groups.map((count) => textColumn(`${count} groups`))],
    rows: [...Map.groupBy(found, (balance) => balance.cluster)].map(([name, balances]) => [
      name,
      ...balances.map(cell),
    ]),
  };
}

function contestantTable(found: readonly GroupBalance[]): ReportTable {
  const clusters = [...new Set(found.map((balance) => balance.cluster))];
  const most = Math.max(...found.map((balance) => balance.groups));
  const largest = found.filter((balance) => balance.groups === most);
  return {
    id: 'placements',
    title: `Fullest / target and standard deviation with ${most} groups`,
    columns: [
      textColumn('placement'),
      ...clusters.flatMap((cluster) => [numberColumn(cluster, 3), numberColumn('deviation, %', 2)]),
    ],
    rows: [...Map.groupBy(largest, (balance) => balance.name)].map(([name, balances]) => [
      name,
      ...clusters.flatMap((cluster) => {
        const one = balances.find((balance) => balance.cluster === cluster);
        return one === undefined ? [null, null] : [one.fullest, one.variation * 100];
      }),
    ]),
  };
}

/** @param found  of at least one contestant; the first is shown in full */
export function groupSection(found: readonly GroupBalance[], pinned: readonly PinnedBalance[]): ReportSection {
  const first = found.filter((balance) => balance.name === found[0]!.name);
  return {
    id: 'groups',
    title: 'How many groups',
    prose: [
      'Only groups are placed, so a node holds a whole number of them and chance decides how many: with q copies of groups per node, ' +
        'fullest / mean is about 1 + √(2 ln N · (1 − R/N) / q) for N nodes of one weight. Pins take away what is left.',
    ],
    charts: [fullestChart(first)],
    tables: [fullestTable(first), contestantTable(found), pinTable(pinned)],
  };
}
