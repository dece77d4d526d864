import { asGroupId, type NodeId } from '@webdfs/base';
import type { MapView } from '@webdfs/cluster';
import type { NodeStatus } from '@webdfs/replica';
import type { ClusterAccess } from './cluster-access.ts';
import { nodeStatuses } from './node-statuses.ts';
import type { NodeReport, StatusReport } from './reports.ts';
import { lastScrub } from './scrub-report.ts';

/** Groups by node that lack it although it should hold them. */
function missingByNode(view: MapView, access: ClusterAccess): Map<NodeId, number> {
  const missing = new Map<NodeId, number>();
  for (let number = 0; number < 2 ** view.map.groupBits; number++) {
    const { goal, inSync } = view.group({ policy: access.policy, group: asGroupId(number) });
    if (inSync.length === goal.length && inSync.every((node) => goal.includes(node))) continue;
    for (const node of goal) if (!inSync.includes(node)) missing.set(node, (missing.get(node) ?? 0) + 1);
  }
  return missing;
}

function countGroups(
  view: MapView,
  access: ClusterAccess,
  statuses: readonly (NodeStatus | undefined)[],
): StatusReport['groups'] {
  const total = 2 ** view.map.groupBits;
  const counts = { whole: 0, degraded: 0, 'reads-only': 0, waiting: 0, lost: 0 };
  for (let number = 0; number < total; number++) {
    counts[view.group({ policy: access.policy, group: asGroupId(number) }).health]++;
  }
  const served = statuses.reduce((sum, status) => sum + (status?.serving ?? 0), 0);
  return {
    total,
    whole: counts.whole,
    degraded: counts.degraded,
    readsOnly: counts['reads-only'],
    waiting: counts.waiting,
    lost: counts.lost,
    withoutPrimary: Math.max(0, total - served),
  };
}

function nodeReport(
  access: ClusterAccess,
  options: { node: NodeId; status: NodeStatus | undefined; missing: number; rate: CatchUpRate },
): NodeReport {
  const { node, status, missing, rate } = options;
  const { view } = access.map;
  const down = view.down(node);
  const info = view.node(node);
  const live = view.live(node);
  const data = access.folderOf(node);
  const place = {
    id: node,
    ...(data === undefined ? {} : { data }),
    ...(info === undefined ? {} : { address: info.address }),
  };
  if (status === undefined || live === undefined) {
    return { ...place, state: 'down', ...(down === undefined ? {} : { reason: down.info.reason }) };
  }
  return {
    ...place,
    state: 'up',
    pid: status.pid,
    objects: status.objects,
    blocks: status.blocks,
    bytes: status.liveBytes,
    volumeBytes: status.volumeBytes,
    freeBytes: status.freeBytes,
    totalBytes: status.totalBytes,
    full: status.full,
    damaged: status.damaged,
    moved: movedOf(status),
    ...(missing === 0 ? {} : { catchingUp: { groupsLeft: missing, ...rate } }),
  };
}

function movedOf({ counters }: NodeStatus): NonNullable<NodeReport['moved']> {
  const of = (name: string): number => counters[name] ?? 0;
  return {
    inBytes: of('movedInBytes'),
    outBytes: of('movedOutBytes'),
    learnedBytes: of('learnedBytes'),
    wastedBytes: of('wastedBytes'),
    limit: of('moveRate'),
    slowdowns: of('moveSlowdowns'),
  };
}

interface CatchUpRate {
  readonly bytesLeft: number;
  readonly bytesPerSecond: number;
  readonly secondsLeft: number;
}

/** The primaries bring learners up to date, so the rate is the sum of what they move. */
function rateOf(statuses: readonly (NodeStatus | undefined)[]): CatchUpRate {
  let bytesLeft = 0;
  let bytesPerSecond = 0;
  for (const status of statuses) {
    bytesLeft += status?.catchUp.bytes ?? 0;
    bytesPerSecond += status?.catchUp.bytesPerSecond ?? 0;
  }
  return { bytesLeft, bytesPerSecond, secondsLeft: bytesPerSecond > 0 ? bytesLeft / bytesPerSecond : 0 };
}

/** The cluster as this node sees it now. */
export async function statusReport(access: ClusterAccess): Promise<StatusReport> {
  const { view } = access.map;
  const nodes = view.nodes();
  const [{ running, last }, known] = await Promise.all([lastScrub(access), nodeStatuses(access)]);
  const statuses = nodes.map((node) => known.get(node));
  const missing = missingByNode(view, access);
  const rate = rateOf(statuses);
  const policy = view.policy(access.policy);
  return {
    cluster: view.map.cluster,
    name: view.map.name,
    epoch: view.revision,
    placement: view.map.settled.algorithm,
    copies: policy.copies,
    minCopies: policy.minCopies,
    nodes: nodes.map((node, index) =>
      nodeReport(access, { node, status: statuses[index], missing: missing.get(node) ?? 0, rate }),
    ),
    groups: countGroups(view, access, statuses),
    scrub: { running, ...(last === undefined ? {} : { lastComplete: last }) },
  };
}
