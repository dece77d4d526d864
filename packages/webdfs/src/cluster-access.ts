import type { Clock, NodeId, PolicyId, Random } from '@webdfs/base';
import type { Groups, ObjectStore } from '@webdfs/client';
import type { LocalMap, MapStore } from '@webdfs/cluster';
import type { Link } from '@webdfs/wire';
import type { SecretKeeper } from './secret-keeper.ts';

/** What the reports of a node need of it. */
export interface ClusterAccess {
  readonly map: LocalMap;
  readonly mapStore: MapStore;
  readonly link: (node: NodeId) => Link;
  readonly groups: Groups;
  readonly objects: ObjectStore;
  /** The policy that objects are kept by. */
  readonly policy: PolicyId;
  readonly clock: Clock;
  readonly random: Random;
  readonly self: NodeId;
  readonly keeper: SecretKeeper;
  /** Where a node keeps its data, for `status`; undefined: not on this machine. */
  readonly folderOf: (node: NodeId) => string | undefined;
}
