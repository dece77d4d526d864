export { ballotOf, derive, type MapFacts, revisionOf } from './derive.ts';
export { type ControllerOptions, runController, type RunningController } from './controller-loop.ts';
export { createCluster, FIRST_POLICY, type NewCluster, type NewNode } from './create-cluster.ts';
export { EmbeddedMapOwner, type EmbeddedMapOptions } from './embedded-map-owner.ts';
export { formatDocument } from './documents.ts';
export { type EtcdAddress, parseEtcdAddress } from './etcd/address.ts';
export type { EtcdTls } from './etcd/client.ts';
export { type EtcdMapOptions, openEtcdMapStore } from './etcd/map-store.ts';
export { etcdVersion, mayEndLeasesEarly } from './etcd/version.ts';
export {
  CONTROLLER_KEY,
  diskKey,
  downKey,
  groupKey,
  liveKey,
  MAP_KEY,
  nodeKey,
  type ParsedKey,
  parseKey,
  SLICE_GROUPS,
  sliceCount,
  sliceKey,
  sliceOf,
} from './keys.ts';
export { announceFounding, type Domain, type Founding, type Joining } from './founding.ts';
export { type Complaint } from './judgement.ts';
export { type FollowedMap, followMap, type FollowOptions } from './local-map.ts';
export { MapCopy, type MapCopyOptions, unpackMapCopy } from './map-copy.ts';
export { exportFrom, formatExport, type MapExport, parseExport, takeOut, unfreeze } from './map-export.ts';
export { putIn } from './map-import.ts';
export { connectMapStore, type MapClientOptions } from './map-client.ts';
export { serveMapStore } from './map-server.ts';
export type { Change, Compare, Lease, MapContents, MapEntry, MapStore, Transaction, Write } from './map-store.ts';
export { type KindUsage, type MapUsage, usageOf } from './map-usage.ts';
export { type Affected, allGroups, MapSnapshot } from './map-view.ts';
export type {
  ClusterMap,
  ControllerInfo,
  DiskInfo,
  DownInfo,
  FencedNode,
  GroupHealth,
  GroupView,
  LiveInfo,
  MoveLimits,
  NodeInfo,
  Override,
  Policy,
  ProcessMark,
} from './map.ts';
export { MemoryMapStore } from './memory-map-store.ts';
export { type MemoryFile, type NodeMemory, unpackMemory } from './node-memory.ts';
export { NodeSession, type NodeSessionOptions } from './node-session.ts';
export { type ClusterParameters, DEFAULT_PARAMETERS, parametersWith } from './parameters.ts';
export { type ProcessTable, SystemProcesses } from './process-table.ts';
export {
  atGoal,
  type CaughtUp,
  joinChanges,
  MAX_TOGETHER,
  type MembershipChange,
  type Proposal,
  propose,
  together,
} from './propose.ts';
export { type PolicyNumbers, usualMinCopies, wantedCopies } from './policy-change.ts';
export {
  type KeptRescale,
  type MeasuredTimes,
  type NewRescale,
  type NodeMeter,
  endedRescale,
  openRescale,
  type PlannedMoves,
  type PlannedNode,
  proposeAccount,
  type RescaleEnd,
  type RescaleRecord,
  rescalesIn,
  withRescale,
} from './rescale-record.ts';
export {
  newNodesOf,
  progressOf,
  proposeAbort,
  proposeMoveLimits,
  proposeOutAfter,
  proposePause,
  proposeTarget,
  type RescaleProgress,
  type WaitingFolder,
  waitingFolders,
} from './retarget.ts';
export { type NodeSurvey, planRescue, type RescuePlan, type SurveyedGroup } from './rescue.ts';
export { without } from './placements.ts';
export { type PlaceOptions, takePlace } from './take-place.ts';
export type { LocalMap, MapView, NodeLease } from './view.ts';
