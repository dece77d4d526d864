import { codeOf, messageOf, WebdfsError } from '@webdfs/base';
import {
  changeTopology,
  compilePlacement,
  type NodeId,
  planChange,
  type PlanWarning,
  type Topology,
} from '@webdfs/placement';
import type { StatusReport, TopologyReport } from '@webdfs/webdfs';
import { CHANGE_HELP, parseChange } from '../change-words.ts';
import { type Arguments, type Command, EXIT, UsageError } from '../command.ts';
import { planText, type ShownPlan } from '../plan-text.ts';
import { connect, REMOTE_OPTIONS } from '../remote.ts';
import { printJson, printLine, type Terminal } from '../terminal.ts';
import { readTopologyFile } from '../topology-file.ts';

/** What there is before the change. */
interface Present {
  readonly name: string;
  readonly topology: Topology;
  readonly groupBits: number;
  /** Of everything, counted once. */
  readonly storedBytes: number | undefined;
  readonly capacities: ReadonlyMap<NodeId, number>;
  readonly remarks: readonly PlanRemark[];
}

interface PlanRemark {
  readonly code: PlanWarning['code'] | 'change-under-way' | 'nodes-out';
  readonly message: string;
}

interface FoundPlan extends ShownPlan {
  readonly warnings: readonly PlanRemark[];
}

/** Warnings of a change that will not work out. */
const GRAVE: readonly PlanRemark['code'][] = ['shortfall', 'no-room'];

/** Bytes of everything, once: what the nodes that answered hold, scaled by the share of copies that is theirs. */
function storedBytesOf(report: TopologyReport, status: StatusReport): number | undefined {
  const up = status.nodes.filter(({ bytes }) => bytes !== undefined);
  const ids = new Set(up.map(({ id }) => id));
  const table = compilePlacement(report.settled, report.groupBits, report.copies, { shortfall: 'fewer' });
  const held = table.rows().reduce((sum, node) => sum + (ids.has(node) ? 1 : 0), 0);
  const bytes = up.reduce((sum, node) => sum + node.bytes!, 0);
  return held === 0 ? undefined : Math.round((bytes / held) * table.groupCount);
}

function remarksOf({ target, out }: TopologyReport): PlanRemark[] {
  return [
    ...(target === undefined
      ? []
      : [
          {
            code: 'change-under-way' as const,
            message: 'a change is under way already: this plan starts from before it',
          },
        ]),
    ...(out.length === 0
      ? []
      : [
          { code: 'nodes-out' as const, message: `nodes ${out.join(', ')} are written off: their groups move already` },
        ]),
  ];
}

async function runningCluster(args: Arguments, terminal: Terminal): Promise<Present> {
  using client = await connect(args, terminal);
  const ask = async <Report>(key: string): Promise<Report> =>
    JSON.parse((await client.call({ method: 'GET', bucket: '-', key })).body) as Report;
  const report = await ask<TopologyReport>('topology');
  const status = await ask<StatusReport>('status');
  const rooms = status.nodes.flatMap(({ id, bytes, freeBytes }): [NodeId, number][] =>
    bytes === undefined || freeBytes === undefined ? [] : [[id as NodeId, bytes + freeBytes]],
  );
  return {
    name: `cluster ${report.name}, epoch ${report.epoch}`,
    topology: { ...report.settled, copies: report.copies },
    groupBits: report.groupBits,
    storedBytes: storedBytesOf(report, status),
    capacities: new Map(rooms),
    remarks: remarksOf(report),
  };
}

async function presentOf(args: Arguments, terminal: Terminal): Promise<Present> {
  const path = args.text('topology');
  if (path === undefined) return await runningCluster(args, terminal);
  return { name: path, remarks: [], ...(await readTopologyFile(path)) };
}

/** The topology after the changes, or that of `--to`; the same one for neither. */
async function targetOf(
  args: Arguments,
  present: Present,
): Promise<{ after: Topology; capacities: Present['capacities'] }> {
  const changes = args.positionals.map(parseChange);
  const path = args.text('to');
  const { topology, groupBits, capacities } = present;
  if (path === undefined) {
    const balance = args.flag('balance');
    const options = { groupBits, keepFactors: args.flag('keep-factors') || changes.length === 0, balance };
    const changed = changes.length > 0 || balance;
    return { after: changed ? changeTopology(topology, changes, options) : topology, capacities };
  }
  if (changes.length > 0) throw new UsageError('name changes, or the whole with --to, not both');
  const target = await readTopologyFile(path);
  if (target.groupBits !== groupBits) {
    const message = `${path} has ${2 ** target.groupBits} groups, ${present.name} has ${2 ** groupBits}: the number is fixed when a cluster is made`;
    throw new WebdfsError('INVALID', message);
  }
  return { after: target.topology, capacities: new Map([...capacities, ...target.capacities]) };
}

/** What the placement room refuses, as the rest of the program speaks of it. */
async function refusing<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) !== undefined || error instanceof UsageError || !(error instanceof Error && 'code' in error))
      throw error;
    throw new WebdfsError('INVALID', messageOf(error));
  }
}

async function planOf(args: Arguments, present: Present): Promise<FoundPlan> {
  const { name, topology: before, groupBits, storedBytes } = present;
  const { after, capacities } = await targetOf(args, present);
  const known = storedBytes === undefined ? {} : { groupBytes: storedBytes / 2 ** groupBits, capacities };
  const { warnings, ...plan } = planChange({ before, after, groupBits, ...known });
  return { of: name, domain: after.domain, storedBytes, ...plan, warnings: [...present.remarks, ...warnings] };
}

export const plan: Command = {
  name: 'plan',
  usage: 'plan [CHANGE…]',
  summary: 'Shows what a change would move, and how things stand after it. Moves nothing.',
  details: `Of a running cluster, or of a topology file (docs/guide/planning.md); without a change, how things stand.

${CHANGE_HELP}

Ends with 1 if there would be too few nodes or too little room, else with 0.`,
  options: {
    topology: { type: 'string', value: 'FILE', about: 'the cluster as a file describes it (default: a running one)' },
    to: { type: 'string', value: 'FILE', about: 'what it is to become, instead of changes' },
    'keep-factors': { type: 'boolean', about: 'leave calibration as it is: less moves, loads are less true to weight' },
    balance: { type: 'boolean', about: 'with pins that bring the fullest node within 2 % of its share' },
    ...REMOTE_OPTIONS,
  },
  async run(args, terminal) {
    const found = await refusing(async () => await planOf(args, await presentOf(args, terminal)));
    if (terminal.json) printJson(terminal, found);
    else printLine(terminal, planText(found));
    return found.warnings.some(({ code }) => GRAVE.includes(code)) ? EXIT.FAILED : EXIT.OK;
  },
};
