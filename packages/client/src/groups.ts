import type { GroupKey, PolicyId } from '@webdfs/base';
import type { ListPage, ListRequest, ReadAnswer, ReadRequest, WriteAnswer, WriteRequest } from '@webdfs/replica';
import type { Piece } from '@webdfs/wire';

/** What a block says of itself, so that an orphan's owner can be asked: the key it was written for. */
export interface BlockHeader {
  /** Bucket (u32 big-endian) and key of the record that will name it. */
  readonly key: Uint8Array;
  /** 16 bytes; all zero outside a multipart upload. */
  readonly uploadId: Uint8Array;
}

/** A block on its way to all members of its group. */
export interface BlockUpload {
  /** Takes the bytes: they are the upload's until `finish` or `abort`. Returns a promise when the caller must wait. */
  write(bytes: Uint8Array): Promise<void> | undefined;
  /** Resolves when the block is committed on every in-sync member. */
  finish(): Promise<{ size: number; sums: Uint32Array }>;
  abort(): void;
}

/**
 * Replicated groups as the object layer sees them: records with linearizable reads and exactly-once writes, and immutable
 * blocks. Two houses: `MemoryGroups` (one process, nothing durable) and the router to the primaries. Both pass `testGroups`.
 *
 * Errors beside those of each call: UNAVAILABLE once the retries are used up (for a write: unknown whether it happened).
 */
export interface Groups {
  /** Which group a 64-bit placement hash belongs to. */
  groupOf(policy: PolicyId, hashHigh: number): GroupKey;
  /** @throws PRECONDITION_FAILED, CONFLICT (a requirement does not hold), FENCED, DISK_FULL, NO_QUORUM */
  write(request: WriteRequest): Promise<WriteAnswer>;
  /** Undefined if there is no such key. */
  read(request: ReadRequest): Promise<ReadAnswer | undefined>;
  list(request: ListRequest): Promise<ListPage>;
  putBlock(policy: PolicyId, id: Uint8Array, header: BlockHeader, signal?: AbortSignal): BlockUpload;
  /** The bytes [offset, offset + length) of a block, verified, in pieces of at most 1 MiB that the caller releases. */
  readBlock(
    policy: PolicyId,
    id: Uint8Array,
    range: { offset: number; length: number; signal?: AbortSignal },
  ): AsyncIterable<Piece>;
}
