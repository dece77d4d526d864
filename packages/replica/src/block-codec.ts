import { CHUNK_BYTES, type GroupKey, Reader, type Revision, WebdfsError, Writer } from '@webdfs/base';
import { BLOCK_ID_BYTES } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { takeSums } from './attachment.ts';
import { type Arrived, putGroup, REQUEST_FORMAT, takeFormat, takeGroup, takeKey } from './request-codec.ts';

/** Bytes of a block at most. */
export const MAX_BLOCK_BYTES = 67_108_864;
/** Bytes of the id of a multipart upload. */
export const UPLOAD_ID_BYTES = 16;

/** The head of a block on its way in; its bytes follow as the body. */
export interface PutBlockHead extends GroupKey {
  /** `BLOCK_ID_BYTES`. */
  readonly id: Uint8Array;
  /** Bucket (u32 big-endian) and key of the record that will name it. */
  readonly key: Uint8Array;
  /** All zero outside a multipart upload. */
  readonly uploadId: Uint8Array;
}

/** What a block turned out to be once it was committed: to compare with what was sent. */
export interface PutBlockAnswer {
  readonly size: number;
  /** CRC-32C of each 64 KiB. */
  readonly sums: Uint32Array;
}

/** Bytes [offset, offset + length) of a block. */
export interface ReadBlockHead extends GroupKey {
  readonly id: Uint8Array;
  readonly offset: number;
  readonly length: number;
}

/** What the owner keeps in a BLOCK entry's meta, after the request id: so that an orphan's key can be asked. */
export interface BlockOwner {
  readonly key: Uint8Array;
  readonly uploadId: Uint8Array;
}

export function packBlockOwner(owner: BlockOwner): Uint8Array {
  return new Writer(2 + owner.key.length + UPLOAD_ID_BYTES).short(owner.key).raw(owner.uploadId).take();
}

/** @throws CORRUPT, TOO_LARGE */
export function unpackBlockOwner(bytes: Uint8Array): BlockOwner {
  const reader = new Reader(bytes);
  const key = takeKey(reader);
  const uploadId = reader.raw(UPLOAD_ID_BYTES);
  reader.end();
  return { key, uploadId };
}

export function encodePutBlock(request: PutBlockHead, revision: Revision): Message {
  const head = putGroup(new Writer(64 + request.key.length).u8(REQUEST_FORMAT), request);
  head.u53(revision).raw(request.id).raw(request.uploadId).short(request.key);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodePutBlock(message: Message): Arrived<PutBlockHead> {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const { policy, group } = takeGroup(reader);
  const revision = reader.u53();
  const id = reader.raw(BLOCK_ID_BYTES);
  const uploadId = reader.raw(UPLOAD_ID_BYTES);
  const key = takeKey(reader);
  reader.end();
  return { request: { policy, group, id, uploadId, key }, revision };
}

export function encodePutBlockAnswer(answer: PutBlockAnswer): Message {
  const head = new Writer(8 + answer.sums.length * 4).u8(REQUEST_FORMAT).u32(answer.size);
  for (const sum of answer.sums) head.u32(sum);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodePutBlockAnswer(message: Message): PutBlockAnswer {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const size = reader.u32();
  if (size > MAX_BLOCK_BYTES) throw new WebdfsError('TOO_LARGE', `block of ${size} bytes, limit ${MAX_BLOCK_BYTES}`);
  const sums = takeSums(reader, Math.ceil(size / CHUNK_BYTES));
  reader.end();
  return { size, sums };
}

export function encodeReadBlock(request: ReadBlockHead, revision: Revision): Message {
  const head = putGroup(new Writer(48).u8(REQUEST_FORMAT), request);
  head.u53(revision).raw(request.id).u32(request.offset).u32(request.length);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeReadBlock(message: Message): Arrived<ReadBlockHead> {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const { policy, group } = takeGroup(reader);
  const revision = reader.u53();
  const id = reader.raw(BLOCK_ID_BYTES);
  const offset = reader.u32();
  const length = reader.u32();
  reader.end();
  if (offset + length > MAX_BLOCK_BYTES) throw new WebdfsError('TOO_LARGE', `range ends at ${offset + length}`);
  return { request: { policy, group, id, offset, length }, revision };
}
