export {
  type EtcdAddress,
  type EtcdTls,
  etcdVersion,
  type Joining,
  type MapStore,
  type MapUsage,
  type NodeSurvey,
  mayEndLeasesEarly,
  openEtcdMapStore,
  parseEtcdAddress,
  unfreeze,
} from '@webdfs/cluster';
export { CHANGE_HELP, parseChange } from './change-words.ts';
export { type Credentials, credentialsFrom, readSecrets } from './credentials.ts';
export { deriveSigningKey, pathOf, queryOf, signRequest } from '@webdfs/gateway';
export { formatSurvey, parseSurvey, surveyFolder } from './folder-survey.ts';
export type { GroupsReport, StuckGroup } from './group-report.ts';
export { initCluster, type InitOptions } from './init-cluster.ts';
export { type JoinOptions, replaceToken, type RunningMember, startJoined } from './joined.ts';
export { startJoinedNode } from './joined-node.ts';
export { exportMap, type FolderSeams, importMap, mapUsage, openFolderMap, openReadableMap } from './moved-map.ts';
export { RunningNode, type WireOptions } from './node.ts';
export { BEAT_MS, type FromNode, isToNode } from './node-messages.ts';
export { startOwnedNode } from './owned-node.ts';
export type {
  CopyReport,
  NodeReport,
  PlaceReport,
  RescaleHistory,
  RescaleProgress,
  RescaleSummary,
  StatusReport,
  TopologyReport,
  WhereReport,
} from './reports.ts';
export { openRescuedMap, rescueMap, type RescueReport } from './rescue.ts';
export { type ClusterOptions, RunningCluster, startCluster } from './supervisor.ts';
export type { ScrubReport } from './scrub-reports.ts';
export { checkStore, type StoreFindings } from './store-check.ts';
export { S3Client } from './s3-client.ts';
export type { TokenReport } from './token-rotation.ts';
export { tokenOf } from './token.ts';
export { parseIds, parseTopologyFile, type TopologyFile } from './topology-file.ts';
export { upload } from './upload.ts';
