export { BLOCK_ID_BYTES, FLAG, KIND, type LogEntry, type LogKind, REQUEST_ID_BYTES, SUMMARY_BYTES } from './entry.ts';
export { closesOf } from './closes.ts';
export { digestOf } from './digest.ts';
export { readIdentity } from './folder.ts';
export { type FolderLock, MemoryLock, sqliteLock } from './folder-lock.ts';
export { LevelIndexHouse } from './level-index.ts';
export { MAX_BLOCK_BYTES, MAX_INLINE_BYTES, MAX_KEY_BYTES, MAX_META_BYTES } from './limits.ts';
export { openStore, type OpenStoreOptions, type StoreTuning } from './open-store.ts';
export { REQUESTS_KEPT_MS } from './request-rows.ts';
export type { Row, RowChange, RowIndex, RowIndexHouse, RowRange } from './row-index.ts';
export type { Pace } from './scrub.ts';
export { SortedIndexHouse } from './sorted-index.ts';
export { UpkeepLoop } from './upkeep-loop.ts';
export type {
  BlockRow,
  Damage,
  GroupLog,
  GroupMark,
  Identity,
  KnownRequest,
  RecordRow,
  Staging,
  Store,
  StoreFacts,
  WalkRow,
} from './store.ts';
