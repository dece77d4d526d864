import { asGroupId, asPolicyId, EMPTY, type GroupKey, Reader, type Revision, WebdfsError, Writer } from '@webdfs/base';
import { REQUEST_ID_BYTES, SUMMARY_BYTES } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { Attachment, putBody, putSection, takeBody, takeSection } from './attachment.ts';
import { packKeys, unpackKeys } from './key-run.ts';
import type { ReadAnswer, ReadRequest, Requirement, WriteAnswer, WriteRequest } from './requests.ts';

/*
 * Writes and reads of records between a router and a primary; docs/formats/requests.md has the tables. Heads are packed,
 * bodies are attached by reference. Decoders read foreign bytes: they throw WebdfsError CORRUPT, TOO_LARGE or
 * NEWER_FORMAT, never anything else, and hold every count to a limit before they act on it.
 */

/** First byte of every head in this room's requests. */
export const REQUEST_FORMAT = 1;
/** Bucket and key, and what the object layer puts around them for rows beside an object. */
export const MAX_KEY_BYTES = 2_304;
/** ETags in one condition; longer lists are refused. */
export const MAX_CONDITION_TAGS = 32;
/** UTF-8 bytes of one ETag; ours have at most 38. */
export const MAX_TAG_BYTES = 128;
/** One for each part of the largest multipart upload, its row of the upload, and the key itself. */
export const MAX_REQUIREMENTS = 10_002;
/** What a record keeps beside its bytes. */
export const MAX_OWNER_BYTES = 65_536;
/** Bytes inside a record: an inline object, or the list of 10 000 parts. */
export const MAX_RECORD_BODY = 262_144;
const MAX_REQUIREMENT_BYTES = 524_288;
const DELETE = 1;
const CLOSES = 2;
const MAX_AGE_MS = 0xffff_ffff;

/** A request as it arrives at a primary. */
export interface Arrived<Request> {
  readonly request: Request;
  /** Map revision by which the sender chose this node: a receiver whose map is older reads up to it before it refuses. */
  readonly revision: Revision;
}

/** @throws CORRUPT where a decoder met text that is not UTF-8 */
export function takeText(reader: Reader): string {
  try {
    return reader.text();
  } catch (error) {
    if (error instanceof WebdfsError) throw error;
    throw new WebdfsError('CORRUPT', 'text is not UTF-8', { cause: error });
  }
}

/** @throws NEWER_FORMAT */
export function takeFormat(reader: Reader): void {
  const format = reader.u8();
  if (format !== REQUEST_FORMAT) {
    throw new WebdfsError('NEWER_FORMAT', `request has format ${format}, this program knows ${REQUEST_FORMAT}`);
  }
}

export function putGroup(head: Writer, group: GroupKey): Writer {
  return head.u16(group.policy).u32(group.group);
}

export function takeGroup(reader: Reader): GroupKey {
  return { policy: asPolicyId(reader.u16()), group: asGroupId(reader.u32()) };
}

/** A key of at most `MAX_KEY_BYTES`. @throws TOO_LARGE */
export function takeKey(reader: Reader): Uint8Array {
  const key = reader.short();
  if (key.length > MAX_KEY_BYTES) {
    throw new WebdfsError('TOO_LARGE', `key has ${key.length} bytes, limit ${MAX_KEY_BYTES}`);
  }
  return key;
}

function putTags(head: Writer, tags: readonly string[] | undefined): void {
  if (tags === undefined) {
    head.u8(0);
    return;
  }
  if (tags.length > MAX_CONDITION_TAGS) {
    throw new WebdfsError('TOO_LARGE', `condition names ${tags.length} ETags, limit ${MAX_CONDITION_TAGS}`);
  }
  head.u8(1 + tags.length);
  for (const tag of tags) {
    const start = head.length;
    head.text(tag);
    if (head.length - start > 2 + MAX_TAG_BYTES) {
      throw new WebdfsError('TOO_LARGE', `ETag of ${head.length - start - 2} bytes, limit ${MAX_TAG_BYTES}`);
    }
  }
}

/** Undefined: no condition. An empty list is one that nothing meets, and stays one. */
function takeTags(reader: Reader): string[] | undefined {
  const count = reader.u8();
  if (count === 0) return undefined;
  if (count > 1 + MAX_CONDITION_TAGS) throw new WebdfsError('TOO_LARGE', `condition names ${count - 1} ETags`);
  const tags: string[] = [];
  for (let i = 1; i < count; i++) tags.push(takeText(reader));
  return tags;
}

function packRequirements(requires: readonly Requirement[]): Uint8Array {
  if (requires.length > MAX_REQUIREMENTS) {
    throw new WebdfsError('TOO_LARGE', `${requires.length} requirements, limit ${MAX_REQUIREMENTS}`);
  }
  const writer = new Writer(64 + requires.length * 32).u32(requires.length);
  // one more than the sequence: −1 means that the key must exist
  for (const { sequence } of requires) writer.u53(sequence + 1);
  packKeys(
    writer,
    requires.map(({ key }) => key),
  );
  if (writer.length > MAX_REQUIREMENT_BYTES) {
    throw new WebdfsError('TOO_LARGE', `requirements take ${writer.length} bytes, limit ${MAX_REQUIREMENT_BYTES}`);
  }
  return writer.take();
}

function unpackRequirements(bytes: Uint8Array): Requirement[] {
  if (bytes.length === 0) return [];
  const reader = new Reader(bytes);
  const count = reader.u32();
  if (count > MAX_REQUIREMENTS) throw new WebdfsError('TOO_LARGE', `${count} requirements, limit ${MAX_REQUIREMENTS}`);
  const sequences: number[] = [];
  for (let i = 0; i < count; i++) sequences.push(reader.u53() - 1);
  const keys = unpackKeys(reader, count, MAX_KEY_BYTES);
  reader.end();
  return sequences.map((sequence, i) => ({ key: keys[i]!, sequence }));
}

/** @throws TOO_LARGE where the request is beyond the limits above */
export function encodeWriteRequest(request: WriteRequest, revision: Revision): Message {
  const requires = request.requires.length === 0 ? EMPTY : packRequirements(request.requires);
  const head = putGroup(new Writer(192 + request.key.length).u8(REQUEST_FORMAT), request);
  const flags = (request.kind === 'delete' ? DELETE : 0) | (request.closes === undefined ? 0 : CLOSES);
  head
    .u53(revision)
    .raw(request.requestId)
    .u32(Math.min(MAX_AGE_MS, Math.max(0, Math.ceil(request.ageMs))))
    .u8(flags);
  head.u32(request.hashHigh).u32(request.hashLow).short(request.key);
  putTags(head, request.conditions.ifMatch);
  putTags(head, request.conditions.ifNoneMatch);
  if (request.closes !== undefined) head.short(request.closes);
  if (request.kind === 'put') head.raw(request.summary);
  putSection(head, requires);
  putSection(head, request.owner);
  putBody(head, request.body);
  const attached = [requires, request.owner, request.body].filter((bytes) => bytes.length > 0);
  return { head: head.take(), attached };
}

/** A write as it arrived, with the CRC-32C of each 64 KiB of its body: what the log entry carries. */
export interface ArrivedWrite extends Arrived<WriteRequest> {
  readonly sums: Uint32Array;
}

/** The result's bytes are views of the message. */
export function decodeWriteRequest(message: Message): ArrivedWrite {
  const reader = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(reader);
  const { policy, group } = takeGroup(reader);
  const revision = reader.u53();
  const requestId = reader.raw(REQUEST_ID_BYTES);
  const ageMs = reader.u32();
  const flags = reader.u8();
  if (flags > (DELETE | CLOSES)) throw new WebdfsError('CORRUPT', `write has flags ${flags}`);
  const kind = (flags & DELETE) === 0 ? 'put' : 'delete';
  const hashHigh = reader.u32();
  const hashLow = reader.u32();
  const key = takeKey(reader);
  const ifMatch = takeTags(reader);
  const ifNoneMatch = takeTags(reader);
  const closes = (flags & CLOSES) === 0 ? undefined : takeKey(reader);
  const summary = kind === 'put' ? reader.raw(SUMMARY_BYTES) : EMPTY;
  const requires = unpackRequirements(takeSection(reader, attachment, MAX_REQUIREMENT_BYTES));
  const owner = takeSection(reader, attachment, MAX_OWNER_BYTES);
  const { body, sums } = takeBody(reader, attachment, MAX_RECORD_BODY);
  reader.end();
  attachment.end();
  const conditions = {
    ...(ifMatch === undefined ? {} : { ifMatch }),
    ...(ifNoneMatch === undefined ? {} : { ifNoneMatch }),
  };
  const bare = { policy, group, requestId, ageMs, kind, key, hashHigh, hashLow } as const;
  const rest = { conditions, requires, summary, owner, body } as const;
  const request: WriteRequest = closes === undefined ? { ...bare, ...rest } : { ...bare, ...rest, closes };
  return { request, revision, sums };
}

export function encodeWriteAnswer(answer: WriteAnswer): Message {
  const head = new Writer(76).u8(REQUEST_FORMAT).u53(answer.sequence).u53(answer.ballot).u53(answer.modifiedMs);
  if (answer.replaced === undefined) head.u8(0);
  else head.u8(1).u53(answer.replaced.sequence).short(answer.replaced.summary);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

export function decodeWriteAnswer(message: Message): WriteAnswer {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const sequence = reader.u53();
  const ballot = reader.u53();
  const modifiedMs = reader.u53();
  const replaced = reader.u8() === 0 ? undefined : { sequence: reader.u53(), summary: reader.short() };
  reader.end();
  return { sequence, ballot, modifiedMs, replaced };
}

export function encodeReadRequest(request: ReadRequest, revision: Revision): Message {
  const head = putGroup(new Writer(24 + request.key.length).u8(REQUEST_FORMAT), request);
  head
    .u53(revision)
    .u8(request.entry ? 1 : 0)
    .short(request.key);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

export function decodeReadRequest(message: Message): Arrived<ReadRequest> {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const { policy, group } = takeGroup(reader);
  const revision = reader.u53();
  const entry = reader.u8() !== 0;
  const key = takeKey(reader);
  reader.end();
  return { request: { policy, group, entry, key }, revision };
}

/**
 * Undefined: there is no such key.
 *
 * @param sums  CRC-32C of each 64 KiB of the body, where they are known
 */
export function encodeReadAnswer(answer: ReadAnswer | undefined, sums?: Uint32Array): Message {
  const head = new Writer(96).u8(REQUEST_FORMAT);
  if (answer === undefined) return { head: head.u8(0).take(), attached: NO_ATTACHMENT };
  head.u8(1).u53(answer.sequence).u53(answer.modifiedMs).u16(answer.flags).short(answer.summary);
  putSection(head, answer.owner);
  putBody(head, answer.body, sums);
  const attached = [answer.owner, answer.body].filter((bytes) => bytes.length > 0);
  return { head: head.take(), attached };
}

export function decodeReadAnswer(message: Message): ReadAnswer | undefined {
  const reader = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(reader);
  if (reader.u8() === 0) {
    reader.end();
    return undefined;
  }
  const sequence = reader.u53();
  const modifiedMs = reader.u53();
  const flags = reader.u16();
  const summary = reader.short();
  const owner = takeSection(reader, attachment, MAX_OWNER_BYTES);
  const { body } = takeBody(reader, attachment, MAX_RECORD_BODY);
  reader.end();
  attachment.end();
  return { sequence, modifiedMs, flags, summary, owner, body };
}
