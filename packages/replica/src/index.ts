export {
  type BlockOwner,
  decodePutBlock,
  decodePutBlockAnswer,
  decodeReadBlock,
  encodePutBlock,
  encodePutBlockAnswer,
  encodeReadBlock,
  MAX_BLOCK_BYTES,
  packBlockOwner,
  type PutBlockAnswer,
  type PutBlockHead,
  type ReadBlockHead,
  unpackBlockOwner,
} from './block-codec.ts';
export { type EngineOptions, ReplicaEngine } from './engine.ts';
export type { GarbageLimits } from './garbage.ts';
export { blockId } from './garbage-hints.ts';
export type { EngineHooks } from './hooks.ts';
export type { LearnerLimits } from './learner.ts';
export type { SourceLimits } from './learner-source.ts';
export type { LeftoverLimits } from './leftovers.ts';
export {
  decodeListAnswer,
  decodeListRequest,
  encodeListAnswer,
  encodeListRequest,
  GroupSet,
  MAX_LIST_ROWS,
  type NodeListAnswer,
  type NodeListRequest,
} from './list-codec.ts';
export { behindPrefix, listPage, type ListSource } from './list-page.ts';
export { BLOCK_BYTES, INLINE_BYTES, REPLICA_DEFAULTS, type ReplicaParameters } from './parameters.ts';
export {
  ATTEMPT_BYTES,
  etagOf,
  type Layout,
  MAX_PARTS,
  packOwner,
  packSummary,
  type Part,
  type Summary,
  unpackOwner,
  unpackSummary,
} from './record.ts';
export {
  type Arrived,
  type ArrivedWrite,
  decodeReadAnswer,
  decodeReadRequest,
  decodeWriteAnswer,
  decodeWriteRequest,
  encodeReadAnswer,
  encodeReadRequest,
  encodeWriteAnswer,
  encodeWriteRequest,
} from './request-codec.ts';
export type {
  Conditions,
  ListPage,
  ListRequest,
  ListRow,
  ReadAnswer,
  ReadRequest,
  Requirement,
  WriteAnswer,
  WriteRequest,
} from './requests.ts';
export type { RepairLimits } from './repair.ts';
export type { Fault } from './scrub/judgement.ts';
export { LEAST_PACE, MOST_PACE, type Completion, type Pass } from './scrub/pass.ts';
export type { ScrubLimits } from './scrub/scrubber.ts';
export { type Survey, survey } from './scrub/survey.ts';
export type { Problem, Tally } from './scrub/tally.ts';
export {
  decodeGroupSizes,
  encodeGroupSizesRequest,
  type GroupRange,
  MAX_SIZED_GROUPS,
  serveGroupSizes,
} from './group-sizes.ts';
export type { MoveStatus } from './move-meter.ts';
export { ReplicaNode, type ReplicaNodeOptions } from './replica-node.ts';
export {
  type CatchUpStatus,
  decodeStatusAnswer,
  encodeStatusAnswer,
  encodeStatusRequest,
  type NodeStatus,
} from './status-codec.ts';
export { FIRST_FREE_VERB, VERB } from './verbs.ts';
export {
  decodeVerifyAnswer,
  decodeVerifyRequest,
  encodeVerifyAnswer,
  encodeVerifyRequest,
  MAX_VERIFY_ITEMS,
  type VerifyItem,
  type VerifyResult,
} from './verify-codec.ts';
