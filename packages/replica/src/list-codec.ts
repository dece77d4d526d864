import {
  asPolicyId,
  assert,
  EMPTY,
  type GroupId,
  type PolicyId,
  Reader,
  type Revision,
  WebdfsError,
  Writer,
} from '@webdfs/base';
import { SUMMARY_BYTES } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from './attachment.ts';
import { sharedBytes, unpackKey } from './key-run.ts';
import { type Arrived, MAX_KEY_BYTES, REQUEST_FORMAT, takeFormat, takeKey } from './request-codec.ts';
import type { ListRequest, ListRow } from './requests.ts';

/** Rows in one answer of one node. */
export const MAX_LIST_ROWS = 1_000;
/** Packed bytes of the rows of one answer; a page that would be longer ends earlier. */
export const MAX_LIST_BYTES = 786_432;
/** Groups of a policy at most (2^16), hence bytes of a set of them. */
const MAX_SET_BYTES = 8_192;
const SUM_ROW = 16 + 2 + SUMMARY_BYTES;

/** A set of groups of one policy, one bit each. */
export class GroupSet {
  readonly bytes: Uint8Array;

  /** @param size  number of groups of the policy, or the packed bytes */
  constructor(size: number | Uint8Array) {
    this.bytes = typeof size === 'number' ? new Uint8Array(Math.ceil(size / 8)) : size;
  }

  has(group: GroupId | number): boolean {
    return ((this.bytes[group >> 3] ?? 0) & (1 << (group & 7))) !== 0;
  }

  add(group: GroupId | number): void {
    assert(group >> 3 < this.bytes.length, 'the group belongs to the policy');
    this.bytes[group >> 3]! |= 1 << (group & 7);
  }

  /** Adds all of another set of at most the same size. */
  addAll(other: GroupSet): void {
    const count = Math.min(this.bytes.length, other.bytes.length);
    for (let i = 0; i < count; i++) this.bytes[i]! |= other.bytes[i]!;
  }

  /** How many groups of 0..`size`−1 are not in the set, and which, up to `limit` of them. */
  missing(size: number, limit = size): number[] {
    const missing: number[] = [];
    for (let group = 0; group < size && missing.length < limit; group++) {
      if (this.bytes[group >> 3] === 0xff) group |= 7;
      else if (!this.has(group)) missing.push(group);
    }
    return missing;
  }
}

/** What one node is asked for: a page over the groups it is primary of. */
export interface NodeListRequest extends ListRequest {
  /** Only these groups; undefined: all that it is primary of. */
  readonly groups?: GroupSet;
}

/** Rows in the order of keys; they are whole for every group in `covered` up to `next` (undefined: to the end). */
export interface NodeListAnswer {
  readonly rows: readonly ListRow[];
  readonly covered: GroupSet;
  readonly next: Uint8Array | undefined;
  /** The map revision of the node: where a group is missing, its primary may be known there. */
  readonly revision: Revision;
}

export function encodeListRequest(request: NodeListRequest, revision: Revision): Message {
  const head = new Writer(64 + request.from.length + request.before.length).u8(REQUEST_FORMAT).u16(request.policy);
  head.u53(revision).u16(request.take).short(request.from).short(request.before);
  if (request.collapse === undefined) head.u8(0);
  else head.u8(1).u16(request.collapse.prefixLength).short(request.collapse.delimiter);
  const groups = request.groups?.bytes ?? EMPTY;
  putSection(head, groups);
  return { head: head.take(), attached: groups.length === 0 ? NO_ATTACHMENT : [groups] };
}

/** @throws CORRUPT, INVALID, TOO_LARGE, NEWER_FORMAT */
export function decodeListRequest(message: Message): Arrived<NodeListRequest> {
  const reader = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(reader);
  const policy: PolicyId = asPolicyId(reader.u16());
  const revision = reader.u53();
  const take = reader.u16();
  if (take < 1 || take > MAX_LIST_ROWS) throw new WebdfsError('INVALID', `page of ${take} rows, 1..${MAX_LIST_ROWS}`);
  const bare = { policy, take, from: takeKey(reader), before: takeKey(reader) };
  const collapse = reader.u8() === 0 ? undefined : { prefixLength: reader.u16(), delimiter: takeKey(reader) };
  if (collapse !== undefined && collapse.delimiter.length === 0) throw new WebdfsError('INVALID', 'empty delimiter');
  const set = takeSection(reader, attachment, MAX_SET_BYTES);
  reader.end();
  attachment.end();
  const request = {
    ...bare,
    ...(collapse === undefined ? {} : { collapse }),
    ...(set.length === 0 ? {} : { groups: new GroupSet(set) }),
  };
  return { request, revision };
}

/** Bytes that `row` takes in an answer after a row with key `before`, at most. */
export function listRowBytes(row: ListRow): number {
  return 5 + row.key.length + SUM_ROW;
}

export function encodeListAnswer(answer: NodeListAnswer): Message {
  const rows = new Writer(256 + answer.rows.length * 96);
  let before: Uint8Array | undefined;
  for (const row of answer.rows) {
    const shared = before === undefined ? 0 : sharedBytes(before, row.key);
    rows
      .u8(row.prefix ? 1 : 0)
      .u16(shared)
      .short(row.key.subarray(shared));
    if (!row.prefix) rows.u53(row.sequence).u53(row.modifiedMs).u16(row.flags).raw(row.summary);
    before = row.key;
  }
  const packed = rows.take();
  assert(packed.length <= MAX_LIST_BYTES, 'a page was cut before its rows grew beyond the limit');
  const head = new Writer(64).u8(REQUEST_FORMAT).u53(answer.revision).u16(answer.rows.length);
  if (answer.next === undefined) head.u8(0);
  else head.u8(1).short(answer.next);
  putSection(head, answer.covered.bytes);
  putSection(head, packed);
  return { head: head.take(), attached: [answer.covered.bytes, packed] };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeListAnswer(message: Message): NodeListAnswer {
  const reader = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(reader);
  const revision = reader.u53();
  const count = reader.u16();
  if (count > MAX_LIST_ROWS) throw new WebdfsError('TOO_LARGE', `answer of ${count} rows, limit ${MAX_LIST_ROWS}`);
  const next = reader.u8() === 0 ? undefined : takeKey(reader);
  const covered = new GroupSet(takeSection(reader, attachment, MAX_SET_BYTES));
  const packed = new Reader(takeSection(reader, attachment, MAX_LIST_BYTES));
  reader.end();
  attachment.end();
  const rows: ListRow[] = [];
  for (let i = 0; i < count; i++) rows.push(takeRow(packed, rows[i - 1]?.key));
  packed.end();
  return { revision, rows, covered, next };
}

function takeRow(packed: Reader, before: Uint8Array | undefined): ListRow {
  const prefix = packed.u8() !== 0;
  const key = unpackKey(packed, before, MAX_KEY_BYTES);
  if (prefix) return { key, prefix, sequence: 0, modifiedMs: 0, flags: 0, summary: EMPTY };
  const sequence = packed.u53();
  const modifiedMs = packed.u53();
  const flags = packed.u16();
  return { key, prefix, sequence, modifiedMs, flags, summary: packed.raw(SUMMARY_BYTES) };
}
