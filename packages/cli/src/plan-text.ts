import {
  type DomainLabel,
  type Flow,
  type NodePlan,
  type PlacementPlan,
  type Standing,
  UNIT_WEIGHT,
} from '@webdfs/placement';
import { formatBytes, formatTable } from './terminal.ts';

/** A plan, and what it is of. */
export interface ShownPlan extends Omit<PlacementPlan, 'warnings'> {
  /** What the plan is of, for its heading. */
  readonly of: string;
  /** What keeps copies apart after the change. */
  readonly domain: DomainLabel | undefined;
  /** Undefined: bytes are not known, the figures of groups are all there is to say. */
  readonly storedBytes: number | undefined;
  readonly warnings: readonly { readonly message: string }[];
}

/** A matrix is shown while it has so many rows and columns at most, else one of racks or sub-clusters, else the largest flows. */
const MAX_NODE_ROWS = 16;
const MAX_ROWS = 64;
const MAX_COLUMNS = 10;
const MAX_FLOWS = 12;
const MAX_NODES = 24;

const count = (value: number): string => Math.round(value).toLocaleString('en-US');
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const plural = (number: number, thing: string): string => `${count(number)} ${thing}${number === 1 ? '' : 's'}`;

/** One way to put nodes together in rows and columns. */
interface Grouping {
  readonly title: string;
  readonly maxRows: number;
  readonly nameOf: (node: NodePlan) => string;
}

function groupingsOf({ nodes, domain }: ShownPlan): Grouping[] {
  const several = new Set(nodes.map((node) => node.domain)).size < nodes.length;
  return [
    { title: 'node', maxRows: MAX_NODE_ROWS, nameOf: ({ node }) => String(node) },
    ...(domain !== undefined && several
      ? [{ title: domain, maxRows: MAX_ROWS, nameOf: (node: NodePlan) => node.domain }]
      : []),
    { title: 'sub-cluster', maxRows: MAX_ROWS, nameOf: ({ subcluster }) => String(subcluster) },
  ];
}

/** A row or column for copies that no node gives up, or none takes. */
const FURTHER = '(further copy)';
const DROPPED = '(given up)';

interface Matrix {
  readonly title: string;
  readonly maxRows: number;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly cells: ReadonlyMap<string, { groups: number; bytes: number }>;
}

function matrixOf(plan: ShownPlan, { title, maxRows, nameOf }: Grouping): Matrix {
  const names = new Map(plan.nodes.map((node) => [node.node, nameOf(node)]));
  const nameOfEnd = (node: Flow['from'], nobody: string): string => (node === undefined ? nobody : names.get(node)!);
  const cells = new Map<string, { groups: number; bytes: number }>();
  const [from, to] = [new Set<string>(), new Set<string>()];
  for (const flow of plan.movement.flows) {
    const [source, target] = [nameOfEnd(flow.from, FURTHER), nameOfEnd(flow.to, DROPPED)];
    from.add(source);
    to.add(target);
    const key = JSON.stringify([source, target]);
    const cell = cells.get(key) ?? { groups: 0, bytes: 0 };
    cells.set(key, { groups: cell.groups + flow.groups, bytes: cell.bytes + flow.bytes });
  }
  const sorted = (set: Set<string>): string[] => [...set].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  return { title, maxRows, from: sorted(from), to: sorted(to), cells };
}

function matrixText({ title, from, to, cells }: Matrix, withBytes: boolean): string {
  const cell = (source: string, target: string): { groups: number; bytes: number } =>
    cells.get(JSON.stringify([source, target])) ?? { groups: 0, bytes: 0 };
  const sum = (pairs: readonly (readonly [string, string])[]): string[] => {
    const moved = pairs.filter(([, target]) => target !== DROPPED);
    const found = moved.map(([source, target]) => cell(source, target));
    const bytes = found.reduce((all, { bytes }) => all + bytes, 0);
    return [count(found.reduce((all, { groups }) => all + groups, 0)), ...(withBytes ? [formatBytes(bytes)] : [])];
  };
  const shown = (groups: number): string => (groups === 0 ? '' : count(groups));
  const rows = from.map((source) => [
    source,
    ...to.map((target) => shown(cell(source, target).groups)),
    ...sum(to.map((target) => [source, target] as const)),
  ]);
  const all = from.flatMap((source) => to.map((target) => [source, target] as const));
  const last = [
    'all',
    ...to.map((target) => count(from.reduce((all, source) => all + cell(source, target).groups, 0))),
    ...sum(all),
  ];
  const head = [`from ${title} \\ to`, ...to, 'moved', ...(withBytes ? ['bytes'] : [])];
  return `Copies, from the ${title} that gives one up to the ${title} that takes one:\n\n${formatTable(head, [...rows, last])}`;
}

function flowsText(plan: ShownPlan, withBytes: boolean): string {
  const { flows } = plan.movement;
  const rows = flows
    .slice(0, MAX_FLOWS)
    .map((flow) => [
      flow.from === undefined ? FURTHER : `node ${flow.from}`,
      flow.to === undefined ? DROPPED : `node ${flow.to}`,
      count(flow.groups),
      ...(withBytes ? [formatBytes(flow.bytes)] : []),
    ]);
  const more =
    flows.length > MAX_FLOWS ? `\n… and ${plural(flows.length - MAX_FLOWS, 'pair')} more; --json has all` : '';
  return `The largest flows:\n\n${formatTable(['from', 'to', 'copies', ...(withBytes ? ['bytes'] : [])], rows)}${more}`;
}

function movesText(plan: ShownPlan, withBytes: boolean): string[] {
  if (plan.movement.flows.length === 0) return [];
  const matrices = groupingsOf(plan).map((grouping) => matrixOf(plan, grouping));
  const fitting = matrices.find(({ maxRows, from, to }) => from.length <= maxRows && to.length <= MAX_COLUMNS);
  return [
    ...(fitting === undefined ? [] : [matrixText(fitting, withBytes)]),
    ...(fitting?.title === 'node' ? [] : [flowsText(plan, withBytes)]),
  ];
}

function summary(plan: ShownPlan, withBytes: boolean): string {
  const { movement, groups, least, ofLeast, before } = plan;
  const bytes = withBytes ? `, ${formatBytes(movement.bytes)}` : '';
  if (movement.copies === 0) {
    const dropped =
      movement.dropped > 0 ? `; ${plural(movement.dropped, 'copy').replace('copys', 'copies')} are given up` : '';
    return `Nothing has to be copied${dropped}.`;
  }
  const made = `${count(movement.copies)} of ${count(groups * before.copies)} copies move (${percent(movement.copies / (groups * before.copies))})`;
  const touched = `in ${count(movement.groups)} of ${count(groups)} groups${bytes}`;
  const against =
    ofLeast === undefined
      ? 'By weight none of them need move.'
      : `That is ${ofLeast.toFixed(2)} times the least that any placement must move, ${count(least)} copies.`;
  return `${made} ${touched}.\n${against}`;
}

const ofShare = (share: number): string => `${share >= 1 ? '+' : '−'}${percent(Math.abs(share - 1))}`;

function standingText(plan: ShownPlan): string {
  const sides: readonly Standing[] = [plan.before, plan.after];
  const row = (what: string, value: (side: Standing) => string): string[] => [what, ...sides.map(value)];
  const balance = (value: (balance: NonNullable<Standing['balance']>) => string) => (side: Standing) =>
    side.balance === undefined ? '-' : value(side.balance);
  const rows = [
    row('algorithm', ({ algorithm }) => algorithm),
    row('copies', ({ copies }) => String(copies)),
    row('nodes with weight', ({ nodes }) => count(nodes)),
    row(
      'fullest for its weight',
      balance(({ fullest }) => `${ofShare(fullest.ofShare)} (node ${fullest.node})`),
    ),
    row(
      'emptiest for its weight',
      balance(({ emptiest }) => `${ofShare(emptiest.ofShare)} (node ${emptiest.node})`),
    ),
    row(
      'deviation',
      balance(({ deviation }) => percent(deviation)),
    ),
    ...plan.before.spread.flatMap(({ label }, i) => [
      row(`${label}s`, ({ spread }) => count(spread[i]!.domains)),
      row(`groups with two copies in one ${label}`, ({ spread }) => count(spread[i]!.shared)),
      row(`copies of a group in one ${label}, at most`, ({ spread }) => String(spread[i]!.most)),
    ]),
  ];
  return formatTable(['', 'before', 'after'], rows);
}

function change(before: string, after: string): string {
  return before === after ? before : `${before} → ${after}`;
}

/** Those that change most; all, while they are few. */
function nodesText(plan: ShownPlan, withBytes: boolean): string {
  const difference = ({ before, after }: NodePlan): number => Math.abs((after?.copies ?? 0) - (before?.copies ?? 0));
  const chosen = plan.nodes
    .toSorted((a, b) => difference(b) - difference(a) || a.node - b.node)
    .slice(0, MAX_NODES)
    .toSorted((a, b) => a.node - b.node);
  const weight = (value: number | undefined): string =>
    value === undefined ? '-' : String(+(value / UNIT_WEIGHT).toFixed(4));
  const share = (load: NodePlan['after']): string =>
    load === undefined || load.share === 0 ? '-' : ofShare(load.bytes / load.share);
  const rows = chosen.map(({ node, subcluster, domain, weight: weights, before, after }) => [
    String(node),
    String(subcluster),
    domain.startsWith('#') ? '' : domain,
    change(weight(weights.before), weight(weights.after)),
    change(before === undefined ? '-' : count(before.copies), after === undefined ? '-' : count(after.copies)),
    ...(withBytes ? [change(before ? formatBytes(before.bytes) : '-', after ? formatBytes(after.bytes) : '-')] : []),
    share(after),
  ]);
  const head = ['node', 'sub-cluster', 'domain', 'weight', 'copies', ...(withBytes ? ['bytes'] : []), 'for its weight'];
  const more =
    plan.nodes.length > chosen.length
      ? `\n… and ${plural(plan.nodes.length - chosen.length, 'node')} more that change less; --json has all`
      : '';
  return formatTable(head, rows) + more;
}

/** A plan as an operator reads it: what moves, where to, how things stand before and after, and what to beware of. */
export function planText(plan: ShownPlan): string {
  const { of, domain, storedBytes } = plan;
  const withBytes = storedBytes !== undefined;
  const apart = domain === undefined ? '' : `, apart by ${domain}`;
  const stored = withBytes ? `, ${formatBytes(storedBytes)} stored` : '';
  const warnings = plan.warnings.map(({ message }) => `  ! ${message}`);
  return [
    `${of}: ${count(plan.groups)} groups${apart}${stored}`,
    summary(plan, withBytes),
    ...(warnings.length > 0 ? [['Warnings:', ...warnings].join('\n')] : []),
    ...movesText(plan, withBytes),
    standingText(plan),
    nodesText(plan, withBytes),
  ].join('\n\n');
}
