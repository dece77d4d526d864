/** The front door for who talks to a cluster from outside: quick to load, for none of the rooms of a node come with it. */
export { type Credentials, credentialsFrom, readSecrets } from './credentials.ts';
export type { ScrubReport } from './scrub-reports.ts';
export type { RescaleSummary, StatusReport, TopologyReport } from './reports.ts';
export { isSettled, lookAtHistory, lookAtTopology, tellTopology, TopologyWatch } from './rescale/remote-rescale.ts';
export { S3Client } from './s3-client.ts';
export { s3Subject } from './s3-subject.ts';
export { upload } from './upload.ts';
export { type VerifyFindings, verifyObjects } from './verify-objects.ts';
