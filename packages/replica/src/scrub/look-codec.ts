import { type Ballot, Reader, type Sequence, WebdfsError, Writer } from '@webdfs/base';
import { BLOCK_ID_BYTES } from '@webdfs/store';
import { type Message, NO_ATTACHMENT } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from '../attachment.ts';
import { putGroup, REQUEST_FORMAT, takeFormat, takeGroup, takeKey } from '../request-codec.ts';
import type { VerifyItem } from '../verify-codec.ts';

/*
 * What nodes say to each other when copies are counted: LOOK (what do you have of these?), MEND (your copy is not what it
 * should be, others have it), BURY (what you have of it was deleted). docs/formats/requests.md has the tables. Foreign
 * bytes end in WebdfsError CORRUPT, INVALID, TOO_LARGE or NEWER_FORMAT.
 */

/** Things looked at in one call. */
export const MAX_LOOKS = 64;
const MAX_LIST_BYTES = 262_144;
const STATES = ['absent', 'intact', 'damaged', 'unread'] as const;

/** What one node has of one thing. */
export interface Look {
  /** `unread`: it is here, and nobody asked for its bytes. */
  readonly state: (typeof STATES)[number];
  /** 0 where it is absent. */
  readonly sequence: Sequence;
  /** Bytes that were read and verified. */
  readonly bytes: number;
  /** CRC-32C of what the entry says, the sums of its bytes included; 0 unless it is intact. */
  readonly check: number;
  /** The commit point of its group here, before it was looked up. */
  readonly commit: Sequence;
}

/** Looks at the first of the things asked for: as many as may be read in one call, at least one. */
export interface LookAnswer {
  /** Some entry of this disk cannot be read at all: that a thing is absent here proves nothing. */
  readonly suspect: boolean;
  readonly looks: readonly Look[];
}

/** One copy that is to become the version that others have, or to go. */
export interface MendOrder {
  readonly item: VerifyItem;
  /** The version, and its checksum: what else is there is not taken. */
  readonly sequence: Sequence;
  readonly check: number;
  /** Nodes that have it, best first. */
  readonly sources: readonly number[];
}

export interface BuryOrder {
  readonly item: VerifyItem;
  /** Placement hash of a record's key: rows beside an object have the object's. Zero for a block. */
  readonly hashHigh: number;
  readonly hashLow: number;
  /** The primary has no such thing, as of this commit point and in this ballot. */
  readonly asOf: Sequence;
  readonly ballot: Ballot;
}

function putItem(writer: Writer, item: VerifyItem): Writer {
  return putGroup(writer.u8(item.type === 'record' ? 0 : 1), item).short(item.id);
}

function takeItem(reader: Reader): VerifyItem {
  const kind = reader.u8();
  if (kind > 1) throw new WebdfsError('CORRUPT', `thing of kind ${kind}`);
  const group = takeGroup(reader);
  const id = takeKey(reader).slice();
  if (kind === 1 && id.length !== BLOCK_ID_BYTES) throw new WebdfsError('INVALID', `block id has ${id.length} bytes`);
  return { type: kind === 0 ? 'record' : 'block', policy: group.policy, group: group.group, id };
}

/** @param bytesPerSecond  of all that this node reads for counting; 0: nothing is to be read */
export function encodeLooks(items: readonly VerifyItem[], bytesPerSecond: number): Message {
  if (items.length > MAX_LOOKS) throw new WebdfsError('TOO_LARGE', `${items.length} looks, limit ${MAX_LOOKS}`);
  const list = new Writer(64 * items.length);
  for (const item of items) putItem(list, item);
  const packed = list.take();
  const head = new Writer(32).u8(REQUEST_FORMAT).u53(bytesPerSecond).u16(items.length);
  putSection(head, packed);
  return { head: head.take(), attached: [packed] };
}

export function decodeLooks(message: Message): { items: VerifyItem[]; bytesPerSecond: number } {
  const head = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(head);
  const bytesPerSecond = head.u53();
  const count = head.u16();
  if (count > MAX_LOOKS) throw new WebdfsError('TOO_LARGE', `${count} looks, limit ${MAX_LOOKS}`);
  const list = new Reader(takeSection(head, attachment, MAX_LIST_BYTES));
  head.end();
  attachment.end();
  const items = Array.from({ length: count }, () => takeItem(list));
  list.end();
  return { items, bytesPerSecond };
}

export function encodeLookAnswer(answer: LookAnswer): Message {
  const head = new Writer(8 + answer.looks.length * 29).u8(REQUEST_FORMAT).u8(answer.suspect ? 1 : 0);
  head.u16(answer.looks.length);
  for (const look of answer.looks) {
    head.u8(STATES.indexOf(look.state)).u53(look.sequence).u53(look.bytes).u32(look.check).u53(look.commit);
  }
  return { head: head.take(), attached: NO_ATTACHMENT };
}

export function decodeLookAnswer(message: Message): LookAnswer {
  const head = new Reader(message.head);
  takeFormat(head);
  const suspect = head.u8() === 1;
  const count = head.u16();
  if (count > MAX_LOOKS) throw new WebdfsError('TOO_LARGE', `${count} looks, limit ${MAX_LOOKS}`);
  const looks: Look[] = [];
  for (let i = 0; i < count; i++) {
    const state = STATES[head.u8()];
    if (state === undefined) throw new WebdfsError('CORRUPT', 'look has an unknown state');
    looks.push({ state, sequence: head.u53(), bytes: head.u53(), check: head.u32(), commit: head.u53() });
  }
  head.end();
  return { suspect, looks };
}

const MAX_SOURCES = 64;

export function encodeMend(order: MendOrder): Message {
  const head = putItem(new Writer(128).u8(REQUEST_FORMAT), order.item).u53(order.sequence).u32(order.check);
  head.u8(order.sources.length);
  for (const node of order.sources) head.u16(node);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

export function decodeMend(message: Message): MendOrder {
  const head = new Reader(message.head);
  takeFormat(head);
  const item = takeItem(head);
  const sequence = head.u53();
  const check = head.u32();
  const count = head.u8();
  if (count > MAX_SOURCES) throw new WebdfsError('TOO_LARGE', `${count} sources, limit ${MAX_SOURCES}`);
  const sources = Array.from({ length: count }, () => head.u16());
  head.end();
  return { item, sequence, check, sources };
}

export function encodeBury(order: BuryOrder): Message {
  const head = putItem(new Writer(128).u8(REQUEST_FORMAT), order.item);
  head.u32(order.hashHigh).u32(order.hashLow).u53(order.asOf).u53(order.ballot);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

export function decodeBury(message: Message): BuryOrder {
  const head = new Reader(message.head);
  takeFormat(head);
  const item = takeItem(head);
  const order = { item, hashHigh: head.u32(), hashLow: head.u32(), asOf: head.u53(), ballot: head.u53() };
  head.end();
  return order;
}
