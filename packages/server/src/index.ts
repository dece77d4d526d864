export { announceBucket, BUCKET_CHANGED, decodeBucketChanged } from './announced-changes.ts';
export { answerEnds, decodeEnds, encodeEndsRequest, GROUP_ENDS, type GroupEnd, MAX_ENDS } from './group-ends.ts';
export { StorageNode, type StorageNodeOptions } from './storage-node.ts';
