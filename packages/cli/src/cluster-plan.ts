import { codeOf, messageOf, WebdfsError } from '@webdfs/base';
import {
  changeTopology,
  compilePlacement,
  type NodeId,
  planChange,
  type PlanWarning,
  type Topology,
  type TopologyChange,
} from '@webdfs/placement';
import { parseChange, type S3Client, type StatusReport, type TopologyReport } from '@webdfs/webdfs';
import { type Arguments, UsageError } from './command.ts';
import type { ShownPlan } from './plan-text.ts';
import { connect } from './remote.ts';
import type { Terminal } from './terminal.ts';
import { readTopologyFile } from './topology-file.ts';

/** What there is before a change. */
export interface Present {
  readonly name: string;
  readonly topology: Topology;
  readonly groupBits: number;
  /** Of everything, counted once. */
  readonly storedBytes: number | undefined;
  readonly capacities: ReadonlyMap<NodeId, number>;
  readonly remarks: readonly PlanRemark[];
}

export interface PlanRemark {
  readonly code: PlanWarning['code'] | 'change-under-way' | 'nodes-out';
  readonly message: string;
}

export interface FoundPlan extends ShownPlan {
  readonly warnings: readonly PlanRemark[];
}

/** Warnings of a change that will not work out. */
const GRAVE: readonly PlanRemark['code'][] = ['shortfall', 'no-room'];

export function isGrave({ warnings }: FoundPlan): boolean {
  return warnings.some(({ code }) => GRAVE.includes(code));
}

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
            message: 'a change is under way already: this plan starts from where it leads',
          },
        ]),
    ...(out.length === 0
      ? []
      : [
          { code: 'nodes-out' as const, message: `nodes ${out.join(', ')} are written off: their groups move already` },
        ]),
  ];
}

async function ask<Report>(client: S3Client, key: string): Promise<Report> {
  return JSON.parse((await client.call({ method: 'GET', bucket: '-', key })).body) as Report;
}

/** The cluster that runs, as it stands, or as the change under way will leave it. */
export async function runningCluster(client: S3Client): Promise<Present & { readonly report: TopologyReport }> {
  const report = await ask<TopologyReport>(client, 'topology');
  const status = await ask<StatusReport>(client, 'status');
  const rooms = status.nodes.flatMap(({ id, bytes, freeBytes }): [NodeId, number][] =>
    bytes === undefined || freeBytes === undefined ? [] : [[id as NodeId, bytes + freeBytes]],
  );
  return {
    report,
    name: `cluster ${report.name}, epoch ${report.epoch}`,
    topology: { ...(report.target ?? report.settled), copies: (report.next ?? report).copies },
    groupBits: report.groupBits,
    storedBytes: storedBytesOf(report, status),
    capacities: new Map(rooms),
    remarks: remarksOf(report),
  };
}

/** The cluster that `--topology` describes, else the running one. */
export async function presentOf(args: Arguments, terminal: Terminal): Promise<Present> {
  const path = args.text('topology');
  if (path !== undefined) return { name: path, remarks: [], ...(await readTopologyFile(path)) };
  using client = await connect(args, terminal);
  return await runningCluster(client);
}

/** What is to be planned. */
export interface WantedChange {
  /** Changes, as `parseChange` reads them. */
  readonly words: readonly string[];
  /** A topology file instead. */
  readonly to: string | undefined;
  readonly keepFactors: boolean;
  readonly balance: boolean;
}

function changesOf(words: readonly string[]): TopologyChange[] {
  try {
    return words.map(parseChange);
  } catch (error) {
    if (codeOf(error) === 'INVALID') throw new UsageError(messageOf(error));
    throw error;
  }
}

/** The topology after the changes, or that of `--to`; the same one for neither. */
async function targetOf(
  wanted: WantedChange,
  present: Present,
): Promise<{ after: Topology; capacities: Present['capacities'] }> {
  const changes = changesOf(wanted.words);
  const { to: path, balance } = wanted;
  const { topology, groupBits, capacities } = present;
  if (path === undefined) {
    const options = { groupBits, keepFactors: wanted.keepFactors || changes.length === 0, balance };
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

/** @throws UsageError, INVALID, and what reading a topology file throws */
export async function planOf(wanted: WantedChange, present: Present): Promise<FoundPlan> {
  return await refusing(async () => await found(wanted, present));
}

async function found(wanted: WantedChange, present: Present): Promise<FoundPlan> {
  const { name, topology: before, groupBits, storedBytes } = present;
  const { after, capacities } = await targetOf(wanted, present);
  const known = storedBytes === undefined ? {} : { groupBytes: storedBytes / 2 ** groupBits, capacities };
  const { warnings, ...plan } = planChange({ before, after, groupBits, ...known });
  return { of: name, domain: after.domain, storedBytes, ...plan, warnings: [...present.remarks, ...warnings] };
}
