import { codeOf, messageOf, WebdfsError } from '@webdfs/base';
import { type NodeId, planChange, type PlanWarning, type Topology, type TopologyChange } from '@webdfs/placement';
import { changeEvenly } from '@webdfs/rescale';
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
  /** Of one copy of each group: one figure for all, or one for each. */
  readonly groupBytes: number | readonly number[] | undefined;
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

export function graveOf({ warnings }: FoundPlan): string[] {
  return warnings.filter(({ code }) => GRAVE.includes(code)).map(({ message }) => message);
}

export function isGrave({ warnings }: FoundPlan): boolean {
  return warnings.some(({ code }) => GRAVE.includes(code));
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

async function ask<Report>(client: S3Client, key: string, query: Record<string, string> = {}): Promise<Report> {
  return JSON.parse((await client.call({ method: 'GET', bucket: '-', key, query })).body) as Report;
}

/** The cluster that runs, as it stands, or as the change under way will leave it. */
export async function runningCluster(client: S3Client): Promise<Present & { readonly report: TopologyReport }> {
  const report = await ask<TopologyReport>(client, 'topology', { sizes: 'yes' });
  const status = await ask<StatusReport>(client, 'status');
  const rooms = status.nodes.flatMap(({ id, bytes, freeBytes }): [NodeId, number][] =>
    bytes === undefined || freeBytes === undefined ? [] : [[id as NodeId, bytes + freeBytes]],
  );
  return {
    report,
    name: `cluster ${report.name}, epoch ${report.epoch}`,
    topology: { ...(report.target ?? report.settled), copies: (report.next ?? report).copies },
    groupBits: report.groupBits,
    groupBytes: report.groupBytes,
    capacities: new Map(rooms),
    remarks: remarksOf(report),
  };
}

/** The cluster that `--topology` describes, else the running one. */
export async function presentOf(args: Arguments, terminal: Terminal): Promise<Present> {
  const path = args.text('topology');
  if (path !== undefined) {
    const { storedBytes, ...file } = await readTopologyFile(path);
    const groupBytes = storedBytes === undefined ? undefined : storedBytes / 2 ** file.groupBits;
    return { name: path, remarks: [], ...file, groupBytes };
  }
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
    return { after: changed ? changeEvenly(topology, changes, options) : topology, capacities };
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

/** Of everything, counted once. */
function storedBytesOf(groupBytes: Present['groupBytes'], groupBits: number): number | undefined {
  if (typeof groupBytes === 'number') return Math.round(groupBytes * 2 ** groupBits);
  return groupBytes?.reduce((sum, bytes) => sum + bytes, 0);
}

async function found(wanted: WantedChange, present: Present): Promise<FoundPlan> {
  const { name, topology: before, groupBits, groupBytes } = present;
  const { after, capacities } = await targetOf(wanted, present);
  const known = groupBytes === undefined ? {} : { groupBytes, capacities };
  const { warnings, ...plan } = planChange({ before, after, groupBits, ...known });
  return {
    of: name,
    domain: after.domain,
    storedBytes: storedBytesOf(groupBytes, groupBits),
    ...plan,
    warnings: [...present.remarks, ...warnings],
  };
}
