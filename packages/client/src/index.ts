export { INLINE_BYTES } from '@webdfs/replica';
export type { BucketAnnouncer } from './buckets.ts';
export type { BlockHeader, BlockUpload, Groups } from './groups.ts';
export { behind, bucketOf, isObjectKey, keyOf, objectKey, partRow, readHiddenRow, uploadRow } from './keyspace.ts';
export { MAX_KEY_BYTES, MAX_OBJECT_BYTES, MAX_PAGE, MAX_PART_NUMBER, MAX_PUT_BYTES, MIN_PART_BYTES } from './limits.ts';
export { MemoryGroups, type MemoryGroupsOptions } from './memory-groups.ts';
export { ObjectLayer, type ObjectLayerOptions, type ObjectSizes } from './object-layer.ts';
export type {
  Bucket,
  ByteSource,
  CopyOptions,
  GetOptions,
  GetResult,
  ListedObject,
  Listing,
  ListOptions,
  ObjectFacts,
  ObjectInfo,
  ObjectStore,
  PartInfo,
  PutConditions,
  PutOptions,
  PutResult,
  Range,
  UploadInfo,
} from './object-store.ts';
export { GroupRouter } from './router.ts';
export type { RouterLimits, RouterSeams } from './router-seams.ts';
export type { SweepResult } from './sweep.ts';
