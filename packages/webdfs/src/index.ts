export { type Credentials, credentialsFrom, readSecrets } from './credentials.ts';
export { deriveSigningKey, pathOf, queryOf, signRequest } from '@webdfs/gateway';
export { type NodeOptions, RunningNode, startNode } from './node.ts';
export { BEAT_MS, type FromNode, isToNode } from './node-messages.ts';
export type { CopyReport, NodeReport, PlaceReport, StatusReport, WhereReport } from './reports.ts';
export { type ClusterOptions, RunningCluster, startCluster } from './supervisor.ts';
export { checkStore, type StoreFindings } from './store-check.ts';
export { S3Client } from './s3-client.ts';
export { upload } from './upload.ts';
