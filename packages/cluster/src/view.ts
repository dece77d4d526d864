import type { GroupKey, NodeId, PolicyId, Revision } from '@webdfs/base';
import type {
  ClusterMap,
  ControllerInfo,
  DiskInfo,
  DownInfo,
  GroupView,
  LiveInfo,
  NodeInfo,
  Override,
  Policy,
} from './map.ts';
import type { Transaction } from './map-store.ts';

/** The map at one revision, immutable; what a node knows of the cluster. */
export interface MapView {
  readonly revision: Revision;
  readonly map: ClusterMap;
  /** Revision at which the key `map` was last written. */
  readonly mapRevision: Revision;
  /** @throws NOT_FOUND */
  policy(id: PolicyId): Policy;
  /**
   * All nodes, ascending: those of the settled and target topologies, and those that still hold groups, such as of a target
   * that was given up.
   */
  nodes(): readonly NodeId[];
  node(node: NodeId): (NodeInfo & { readonly revision: Revision }) | undefined;
  disk(node: NodeId): (DiskInfo & { readonly revision: Revision }) | undefined;
  live(node: NodeId): { readonly info: LiveInfo; readonly session: Revision } | undefined;
  down(node: NodeId): { readonly info: DownInfo; readonly mark: Revision } | undefined;
  /** All marked nodes, ascending. */
  marked(): readonly NodeId[];
  controller(): { readonly info: ControllerInfo; readonly createRevision: Revision } | undefined;
  override(group: GroupKey): { readonly value: Override; readonly revision: Revision } | undefined;
  /** All groups with an override; of one slice, if given. */
  overridden(policy: PolicyId, slice?: number): readonly GroupKey[];
  sliceRevision(policy: PolicyId, slice: number): Revision;
  /** Placement by the settled topology, the nodes written off included. */
  placed(group: GroupKey): readonly NodeId[];
  /** `goal(g)`: placement by the target, else the settled topology, without the nodes written off. */
  goal(group: GroupKey): readonly NodeId[];
  /** `derive`, remembered for this view. */
  group(group: GroupKey): GroupView;
}

/** A node's own, following copy of the map: a prefix of its history. */
export interface LocalMap {
  readonly view: MapView;
  /** Waits until the view has reached `revision`. @throws UNAVAILABLE when the store does not answer in time */
  readThrough(revision: Revision): Promise<MapView>;
  /** Called after each change, with the groups whose view may differ, or `all`. Returns how to stop. */
  onChange(listener: (view: MapView, groups: readonly GroupKey[] | 'all') => void): () => void;
  transact(transaction: Transaction): Promise<{ readonly done: boolean; readonly revision: Revision }>;
}

/** Whether this node may act as a primary at this instant (protocol, L1–L3). */
export interface NodeLease {
  /** The revision of `live/<n>` of this run; 0 before the first registration. */
  readonly session: Revision;
  /** The lease, less its margin, has not run out by either clock, and the last renewal proved the map complete. */
  holds(): boolean;
}
