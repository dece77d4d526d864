import { DEFAULT_PARAMETERS, progressOf, waitingFolders } from '@webdfs/cluster';
import type { ClusterAccess } from './cluster-access.ts';
import { groupSizes } from './group-sizes.ts';
import type { RescaleHistory, TopologyReport } from './reports.ts';
import { rescaleProgress } from './rescale/rescale-progress.ts';
import { sightOf } from './rescale/sight.ts';
import { rescaleHistory } from './rescale/rescale-summary.ts';

/** The topology as the map has it now, what plans are made from, and how far the groups are; with `sizes=yes` what they hold. */
export async function topologyReport(
  access: ClusterAccess,
  parameter?: (name: string) => string | undefined,
): Promise<TopologyReport> {
  const { map, mapStore, folderOf } = access;
  const contents = await mapStore.read();
  const waiting = waitingFolders(contents);
  const view = await map.readThrough(contents.revision);
  const {
    name,
    groupBits,
    settled,
    target,
    out,
    paused = false,
    moveLimits,
    outAfterMs = DEFAULT_PARAMETERS.outAfterMs,
  } = view.map;
  const { copies, minCopies, next } = view.policy(access.policy);
  const progress = progressOf(view);
  const isQuiet = target === undefined && progress.atGoal === progress.groups;
  const moving = isQuiet ? undefined : rescaleProgress(contents, await sightOf(access));
  return {
    name,
    epoch: view.revision,
    groupBits,
    copies,
    minCopies,
    ...(next === undefined ? {} : { next: { copies: next.copies, minCopies: next.minCopies } }),
    settled,
    ...(target === undefined ? {} : { target }),
    out,
    revision: view.mapRevision,
    paused,
    ...(moveLimits === undefined ? {} : { moveLimits }),
    outAfterMs,
    ...progress,
    isSupervised: view.nodes().every((node) => folderOf(node) !== undefined),
    waiting: waiting.map(({ storeId, joining }) => ({ folder: storeId, ...joining })),
    ...(moving === undefined ? {} : { moving }),
    ...(parameter?.('sizes') === 'yes' ? { groupBytes: [...(await groupSizes(access)).ofPolicy(access.policy)] } : {}),
  };
}

/** What was done to the shape of the cluster. */
export async function historyReport({ mapStore, clock }: ClusterAccess): Promise<RescaleHistory> {
  return rescaleHistory(await mapStore.read(), clock.now());
}
