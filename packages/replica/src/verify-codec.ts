import { type GroupKey, Reader, type Sequence, WebdfsError, Writer } from '@webdfs/base';
import { BLOCK_ID_BYTES } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from './attachment.ts';
import { putGroup, REQUEST_FORMAT, takeFormat, takeGroup, takeKey } from './request-codec.ts';

/** Things looked at in one call; a longer list is asked in parts. */
export const MAX_VERIFY_ITEMS = 256;
const MAX_VERIFY_BYTES = 786_432;
const STATES = ['absent', 'intact', 'damaged'] as const;

/** One stored thing to look at: a record by its key, or a block by its id. */
export interface VerifyItem extends GroupKey {
  readonly type: 'record' | 'block';
  readonly id: Uint8Array;
}

/** What this node has of it; `intact`: every checksum was verified for this answer. */
export interface VerifyResult {
  readonly state: (typeof STATES)[number];
  /** 0 where it is absent. */
  readonly sequence: Sequence;
  /** Bytes of the object as its record says, or of the block. */
  readonly size: number;
}

export function encodeVerifyRequest(items: readonly VerifyItem[]): Message {
  if (items.length > MAX_VERIFY_ITEMS) {
    throw new WebdfsError('TOO_LARGE', `${items.length} items to verify, limit ${MAX_VERIFY_ITEMS}`);
  }
  const list = new Writer(64 * items.length);
  for (const item of items) putGroup(list.u8(item.type === 'record' ? 0 : 1), item).short(item.id);
  const packed = list.take();
  const head = new Writer(16).u8(REQUEST_FORMAT).u16(items.length);
  putSection(head, packed);
  return { head: head.take(), attached: [packed] };
}

/** @throws CORRUPT, INVALID, TOO_LARGE, NEWER_FORMAT */
export function decodeVerifyRequest(message: Message): VerifyItem[] {
  const reader = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(reader);
  const count = reader.u16();
  if (count > MAX_VERIFY_ITEMS) throw new WebdfsError('TOO_LARGE', `${count} items to verify`);
  const list = new Reader(takeSection(reader, attachment, MAX_VERIFY_BYTES));
  reader.end();
  attachment.end();
  const items: VerifyItem[] = [];
  for (let i = 0; i < count; i++) {
    const type = list.u8() === 0 ? 'record' : 'block';
    const group = takeGroup(list);
    const id = takeKey(list);
    if (type === 'block' && id.length !== BLOCK_ID_BYTES) {
      throw new WebdfsError('INVALID', `block id has ${id.length} bytes`);
    }
    items.push({ type, ...group, id });
  }
  list.end();
  return items;
}

export function encodeVerifyAnswer(results: readonly VerifyResult[]): Message {
  const head = new Writer(8 + results.length * 17).u8(REQUEST_FORMAT).u16(results.length);
  for (const { state, sequence, size } of results) head.u8(STATES.indexOf(state)).u53(sequence).u53(size);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeVerifyAnswer(message: Message): VerifyResult[] {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const count = reader.u16();
  if (count > MAX_VERIFY_ITEMS) throw new WebdfsError('TOO_LARGE', `${count} results`);
  const results: VerifyResult[] = [];
  for (let i = 0; i < count; i++) {
    const state = STATES[reader.u8()];
    if (state === undefined) throw new WebdfsError('CORRUPT', 'result has an unknown state');
    results.push({ state, sequence: reader.u53(), size: reader.u53() });
  }
  reader.end();
  return results;
}
