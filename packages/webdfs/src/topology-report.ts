import { DEFAULT_PARAMETERS, progressOf, waitingFolders } from '@webdfs/cluster';
import type { ClusterAccess } from './cluster-access.ts';
import type { TopologyReport } from './reports.ts';

/** The topology as the map has it now, what plans are made from, and how far the groups are. */
export async function topologyReport({ map, mapStore, policy, folderOf }: ClusterAccess): Promise<TopologyReport> {
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
  return {
    name,
    epoch: view.revision,
    groupBits,
    copies: view.policy(policy).copies,
    settled,
    ...(target === undefined ? {} : { target }),
    out,
    revision: view.mapRevision,
    paused,
    ...(moveLimits === undefined ? {} : { moveLimits }),
    outAfterMs,
    ...progressOf(view),
    isSupervised: view.nodes().every((node) => folderOf(node) !== undefined),
    waiting: waiting.map(({ storeId, joining }) => ({ folder: storeId, ...joining })),
  };
}
