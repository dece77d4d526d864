export { assert, BrokenInvariant, unreachable } from './assert.ts';
export {
  compareBytes,
  concat,
  EMPTY,
  equalBytes,
  fromHex,
  fromUtf8,
  plain,
  Reader,
  toHex,
  utf8,
  Writer,
} from './bytes.ts';
export { CHUNK_BYTES, chunkSums, crc32c } from './checksum.ts';
export { Crc64Nvme } from './crc64.ts';
export { type Clock, keepAlive, ManualClock, sleep, systemClock, type Timer } from './clock.ts';
export {
  type Disk,
  type DiskFile,
  type DiskSpace,
  type OpenMode,
  PAGE_BYTES,
  readWhole,
  replaceWhole,
  writeFully,
} from './disk.ts';
export {
  codeOf,
  ERROR_CODES,
  type ErrorCode,
  messageOf,
  REMEDY,
  type Remedy,
  WebdfsError,
  type WebdfsErrorOptions,
} from './errors.ts';
export {
  asGroupId,
  asNodeId,
  asPolicyId,
  type Ballot,
  type GroupId,
  type GroupKey,
  groupNumber,
  type NodeId,
  type PolicyId,
  type Revision,
  type Sequence,
} from './ids.ts';
export { type Log, type LogFields, type LogLevel, makeLog, silentLog } from './log.ts';
export { makeFolders, NodeDisk } from './node-disk.ts';
export { type Random, SeededRandom, SystemRandom } from './random.ts';
export { TokenBucket } from './token-bucket.ts';
