export { announceBucket, BUCKET_CHANGED, decodeBucketChanged } from './announced-changes.ts';
export { StorageNode, type StorageNodeOptions } from './storage-node.ts';
