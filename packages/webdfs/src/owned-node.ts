import { connectMapStore, SystemProcesses } from '@webdfs/cluster';
import { readSecrets } from './credentials.ts';
import { type NodeOptions, type RunningNode, startNode } from './node.ts';
import { mapSocketOf } from './owned-map.ts';

export interface OwnedNodeOptions extends Omit<
  NodeOptions,
  'mapStore' | 'secrets' | 'wire' | 'folderOf' | 'storeId' | 'labels' | 'doorAdvertise' | 'processes'
> {
  /** The cluster's folder on this machine. */
  readonly cluster: string;
}

/** Nodes of one machine speak over loopback. */
const WIRE = { host: '127.0.0.1', port: 0, tls: false } as const;

/** Starts a node of a cluster whose supervisor runs on this machine. @throws as `startNode`; NOT_FOUND without secrets */
export async function startOwnedNode(options: OwnedNodeOptions): Promise<RunningNode> {
  const { cluster, clock, log, disk } = options;
  const secrets = await readSecrets(disk, cluster);
  const mapStore = connectMapStore(mapSocketOf(cluster), clock, log);
  const folderOf = (peer: number): string => `${cluster}/node-${peer}`;
  const processes = new SystemProcesses(disk);
  return await startNode({ ...options, mapStore, secrets, wire: WIRE, folderOf, processes });
}
