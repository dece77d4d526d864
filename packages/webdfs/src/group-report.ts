import { asGroupId, asNodeId, asPolicyId, type GroupKey, messageOf, type NodeId, WebdfsError } from '@webdfs/base';
import { allGroups, type MapView, propose, type Proposal, together } from '@webdfs/cluster';
import { decodeEnds, encodeEndsRequest, GROUP_ENDS, type GroupEnd, MAX_ENDS } from '@webdfs/server';
import type { ClusterAccess } from './cluster-access.ts';

/** Groups that nobody may serve, the copies there are, and what an operator may do about them (protocol, T8). */

type Parameter = (name: string) => string | undefined;

export interface CandidateReport extends Omit<GroupEnd, 'policy' | 'group'> {
  readonly node: number;
}

export interface StuckGroup {
  readonly policy: number;
  readonly group: number;
  /** waiting: there are nodes that hold everything acknowledged, and none of them is up; lost: there are none. */
  readonly health: 'waiting' | 'lost';
  /** Nodes that would bring everything back. */
  readonly awaited: readonly number[];
  /** Copies on nodes that are up, the furthest first. */
  readonly candidates: readonly CandidateReport[];
}

export interface GroupsReport {
  /** Groups that cannot be served, and as many of them as are named. */
  readonly stuck: number;
  readonly groups: readonly StuckGroup[];
  /** Nodes that did not say what they have. */
  readonly silent: readonly { readonly node: number; readonly why: string }[];
  /** Of a request to force: groups that are served again from what that node has. */
  readonly forced?: number;
}

const ASK_MS = 5_000;
const MAX_NAMED = 1_024;
/** What was forced, for those who ask later. */
const FORCED_PREFIX = 'forced/';
const MAX_REASON = 200;

function stuckIn(view: MapView): GroupKey[] {
  return [...allGroups(view.map)].filter((group) => /^(waiting|lost)$/.test(view.group(group).health));
}

type Ends = Map<string, CandidateReport[]>;

const nameOf = ({ policy, group }: GroupKey): string => `${policy}/${group}`;

async function askNode(access: ClusterAccess, node: NodeId, groups: readonly GroupKey[], ends: Ends): Promise<void> {
  for (let i = 0; i < groups.length; i += MAX_ENDS) {
    const request = encodeEndsRequest(groups.slice(i, i + MAX_ENDS));
    const answer = await access.link(node).call(GROUP_ENDS, request, { deadlineMs: ASK_MS });
    for (const { policy, group, ...end } of decodeEnds(answer)) {
      if (end.role === 'none') continue;
      const name = nameOf({ policy, group });
      ends.set(name, [...(ends.get(name) ?? []), { node, ...end }]);
    }
  }
}

/** The copies of groups, on all nodes that are up. */
async function endsOf(
  access: ClusterAccess,
  groups: readonly GroupKey[],
): Promise<{ ends: Ends; silent: GroupsReport['silent'] }> {
  const { view } = access.map;
  const ends: Ends = new Map();
  const silent: { node: number; why: string }[] = [];
  await Promise.all(
    view.nodes().map(async (node) => {
      try {
        await askNode(access, node, groups, ends);
      } catch (error) {
        silent.push({ node, why: messageOf(error) });
      }
    }),
  );
  for (const candidates of ends.values()) {
    candidates.sort((a, b) => b.lastBallot - a.lastBallot || b.last - a.last || a.node - b.node);
  }
  return { ends, silent };
}

/** Groups that cannot be served, and who has what of them. */
export async function groupsReport(access: ClusterAccess): Promise<GroupsReport> {
  const view = await freshView(access);
  const stuck = stuckIn(view);
  const named = stuck.slice(0, MAX_NAMED);
  const { ends, silent } = named.length === 0 ? { ends: new Map() as Ends, silent: [] } : await endsOf(access, named);
  return {
    stuck: stuck.length,
    groups: named.map((key) => {
      const { health, eligible } = view.group(key);
      return {
        ...key,
        health: health === 'waiting' ? 'waiting' : 'lost',
        awaited: eligible,
        candidates: ends.get(nameOf(key)) ?? [],
      };
    }),
    silent,
  };
}

async function freshView({ map, mapStore }: ClusterAccess): Promise<MapView> {
  return await map.readThrough(await mapStore.fresh(map.view.revision));
}

interface Force {
  readonly node: NodeId;
  /** Undefined: every group of which this node has the furthest copy. */
  readonly group: GroupKey | undefined;
  readonly reason: string;
}

/** @throws INVALID */
function forceOf(parameter: Parameter): Force {
  const number = (name: string, least: number): number => {
    const value = Number(parameter(name));
    if (!Number.isSafeInteger(value) || value < least) throw new WebdfsError('INVALID', `${name} is no number`);
    return value;
  };
  if (parameter('accept-loss') !== 'yes') {
    throw new WebdfsError('INVALID', 'forcing a group gives up what only other copies have: that must be accepted');
  }
  const group =
    parameter('group') === 'all'
      ? undefined
      : { policy: asPolicyId(number('policy', 1)), group: asGroupId(number('group', 0)) };
  return { node: asNodeId(number('from', 1)), group, reason: (parameter('reason') ?? '').slice(0, MAX_REASON) };
}

function proposalOf(view: MapView, key: GroupKey, force: Force, end: CandidateReport, at: string): Proposal {
  const proposal = propose(view, key, { type: 'force', node: force.node });
  const { node, role, last, lastBallot } = end;
  const value = JSON.stringify({ node, at, role, last, lastBallot, reason: force.reason });
  const record = { type: 'put', key: `${FORCED_PREFIX}${nameOf(key)}`, value } as const;
  const { transaction } = proposal;
  return { ...proposal, transaction: { ...transaction, write: [...transaction.write, record] } };
}

/**
 * Has groups that cannot be served go on from what one node has (`from`): a group (`policy`, `group`), or all of which
 * it has the furthest copy (`group=all`). Whatever other copies have beyond it is given up, which `accept-loss=yes` says.
 *
 * @throws INVALID, NOT_FOUND if the node has no copy, CONFLICT if the group can be served, or the map changes meanwhile
 */
export async function forceGroups(access: ClusterAccess, parameter: Parameter): Promise<GroupsReport> {
  const force = forceOf(parameter);
  const view = await freshView(access);
  const wanted = force.group === undefined ? stuckIn(view) : [force.group];
  if (force.group !== undefined) requireStuck(view, force.group);
  const { ends } = await endsOf(access, wanted);
  const at = new Date(access.clock.now()).toISOString();
  const proposals = wanted.flatMap((key) => {
    const candidates = ends.get(nameOf(key)) ?? [];
    const end = candidates.find(({ node }) => node === force.node);
    const isFirst = candidates[0]?.node === force.node;
    return end === undefined || (force.group === undefined && !isFirst) ? [] : [proposalOf(view, key, force, end, at)];
  });
  if (proposals.length === 0) {
    throw new WebdfsError('NOT_FOUND', `node ${force.node} has no copy to go on with: see "webdfs group candidates"`);
  }
  let forced = 0;
  let { revision } = view;
  // each proposal writes two keys: half as many as usual fit into a transaction
  for (const batch of halves(proposals).flatMap(together)) {
    const answer = await access.map.transact(batch.transaction);
    if (!answer.done)
      throw new WebdfsError('CONFLICT', `the map changed after ${forced} groups were forced: ask again`);
    forced += batch.proposals.length;
    revision = answer.revision;
  }
  await access.map.readThrough(revision);
  return { ...(await groupsReport(access)), forced };
}

const TOGETHER = 30;

function halves(proposals: readonly Proposal[]): (readonly Proposal[])[] {
  const parts: (readonly Proposal[])[] = [];
  for (let i = 0; i < proposals.length; i += TOGETHER) parts.push(proposals.slice(i, i + TOGETHER));
  return parts;
}

function requireStuck(view: MapView, key: GroupKey): void {
  const isThere = view.map.policies.some(({ id }) => id === key.policy) && key.group < 2 ** view.map.groupBits;
  if (!isThere) throw new WebdfsError('NOT_FOUND', `there is no group ${key.group} of policy ${key.policy}`);
  const { health } = view.group(key);
  if (health === 'waiting' || health === 'lost') return;
  throw new WebdfsError('CONFLICT', `group ${key.group} is ${health}: it needs no force`);
}
