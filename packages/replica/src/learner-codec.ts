import { type Ballot, type GroupKey, Reader, type Revision, type Sequence, WebdfsError, Writer } from '@webdfs/base';
import { BLOCK_ID_BYTES, REQUEST_ID_BYTES, type WalkRow } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from './attachment.ts';
import { sharedBytes, unpackKey } from './key-run.ts';
import type { LogBase } from './replica-host.ts';
import { MAX_KEY_BYTES, putGroup, REQUEST_FORMAT, takeFormat, takeGroup, takeText } from './request-codec.ts';
import type { KnownWrite } from './request-table.ts';

/*
 * What a primary and its learners say to each other; docs/internals/catching-up.md tells the story. Foreign bytes end in
 * WebdfsError CORRUPT, TOO_LARGE or NEWER_FORMAT.
 */

/** Groups in one LEARN or LEARNED. */
export const MAX_LEARN_GROUPS = 512;
/** Rows in one page. */
export const MAX_PAGE_ROWS = 256;
/** Packed bytes of a page's rows, of a batch of groups. */
const MAX_SECTION_BYTES = 786_432;

/** What a group holds at a commit point, short enough to compare: equal contents have equal sums. */
export interface GroupSum {
  readonly commit: Sequence;
  readonly objects: number;
  readonly blocks: number;
  /** Over (key, sequence) of records and blocks. */
  readonly digest: number;
  /** CRC-32C over the notes. */
  readonly notes: number;
}

/** One group that a node shall learn. */
export interface LearnOrder extends GroupKey {
  readonly ballot: Ballot;
  readonly base: LogBase;
  readonly sum: GroupSum;
}

/** equal: nothing is to be transferred, it follows already · accepted: pages will be asked for · refused: not now. */
export const LEARN_ANSWERS = ['equal', 'accepted', 'refused'] as const;
export type LearnAnswer = (typeof LEARN_ANSWERS)[number];

/** The end of one group's lesson. */
export interface LearnReport extends GroupKey {
  readonly ballot: Ballot;
  readonly outcome: 'ready' | 'failed';
}

const PAGE_KINDS = ['sum', 'records', 'blocks', 'notes', 'requests'] as const;
export type PageKind = (typeof PAGE_KINDS)[number];

export interface PageRequest extends GroupKey {
  readonly ballot: Ballot;
  readonly kind: PageKind;
  /** Only rows with sequences above it. */
  readonly above: Sequence;
  /** Where the page before ended, '' at the start. */
  readonly after: string;
}

export interface BlockPageRow {
  readonly id: Uint8Array;
  readonly sequence: Sequence;
  readonly size: number;
}

export interface NoteRow {
  readonly name: Uint8Array;
  readonly value: Uint8Array;
}

export type RequestRow = KnownWrite & { readonly requestId: Uint8Array };

/** Rows of one kind; `asOf` was the commit point before they were read; `next` is the `after` of the page that follows. */
export type Page =
  | { readonly kind: 'sum'; readonly sum: GroupSum }
  | (PageEnds & { readonly kind: 'records'; readonly rows: readonly WalkRow[] })
  | (PageEnds & { readonly kind: 'blocks'; readonly rows: readonly BlockPageRow[] })
  | (PageEnds & { readonly kind: 'notes'; readonly rows: readonly NoteRow[] })
  | (PageEnds & { readonly kind: 'requests'; readonly rows: readonly RequestRow[] });

interface PageEnds {
  readonly asOf: Sequence;
  readonly next: string | undefined;
}

function putSum(writer: Writer, sum: GroupSum): void {
  writer.u53(sum.commit).u53(sum.objects).u53(sum.blocks).u53(sum.digest).u32(sum.notes);
}

function takeSum(reader: Reader): GroupSum {
  const commit = reader.u53();
  const objects = reader.u53();
  const blocks = reader.u53();
  return { commit, objects, blocks, digest: reader.u53(), notes: reader.u32() };
}

function takeCount(reader: Reader, limit: number): number {
  const count = reader.u16();
  if (count > limit) throw new WebdfsError('TOO_LARGE', `${count} in one message, limit ${limit}`);
  return count;
}

/** A message whose list travels attached. */
function withSection(head: Writer, section: Uint8Array): Message {
  putSection(head, section);
  return { head: head.take(), attached: section.length === 0 ? NO_ATTACHMENT : [section] };
}

/** Reads what `withSection` made: the head's own fields, then the list. */
function open<T>(message: Message, fields: (head: Reader) => T): { fields: T; list: Reader } {
  const head = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(head);
  const taken = fields(head);
  const list = new Reader(takeSection(head, attachment, MAX_SECTION_BYTES));
  head.end();
  attachment.end();
  return { fields: taken, list };
}

/** @param receiver  the session of the learner that the orders are for */
export function encodeLearn(receiver: Revision, orders: readonly LearnOrder[]): Message {
  const list = new Writer(orders.length * 64);
  for (const { ballot, base, sum, ...group } of orders) {
    putGroup(list, group).u53(ballot).u53(base.sequence).u53(base.ballot);
    putSum(list, sum);
  }
  return withSection(new Writer(24).u8(REQUEST_FORMAT).u53(receiver).u16(orders.length), list.take());
}

export function decodeLearn(message: Message): { receiver: Revision; orders: LearnOrder[] } {
  const { fields, list } = open(message, (head) => ({
    receiver: head.u53(),
    count: takeCount(head, MAX_LEARN_GROUPS),
  }));
  const orders: LearnOrder[] = [];
  for (let i = 0; i < fields.count; i++) {
    const group = takeGroup(list);
    const ballot = list.u53();
    const base = { sequence: list.u53(), ballot: list.u53() };
    orders.push({ ...group, ballot, base, sum: takeSum(list) });
  }
  list.end();
  return { receiver: fields.receiver, orders };
}

export function encodeLearnAnswer(answers: readonly LearnAnswer[]): Message {
  const head = new Writer(8 + answers.length).u8(REQUEST_FORMAT).u16(answers.length);
  for (const answer of answers) head.u8(LEARN_ANSWERS.indexOf(answer));
  return { head: head.take(), attached: NO_ATTACHMENT };
}

export function decodeLearnAnswer(message: Message): LearnAnswer[] {
  const head = new Reader(message.head);
  takeFormat(head);
  const count = takeCount(head, MAX_LEARN_GROUPS);
  const answers: LearnAnswer[] = [];
  for (let i = 0; i < count; i++) {
    const answer = LEARN_ANSWERS[head.u8()];
    if (answer === undefined) throw new WebdfsError('CORRUPT', 'answer to an order is unknown');
    answers.push(answer);
  }
  head.end();
  return answers;
}

export function encodeLearned(sender: Revision, reports: readonly LearnReport[]): Message {
  const list = new Writer(reports.length * 16);
  for (const report of reports)
    putGroup(list, report)
      .u53(report.ballot)
      .u8(report.outcome === 'ready' ? 1 : 0);
  return withSection(new Writer(24).u8(REQUEST_FORMAT).u53(sender).u16(reports.length), list.take());
}

export function decodeLearned(message: Message): { sender: Revision; reports: LearnReport[] } {
  const { fields, list } = open(message, (head) => ({ sender: head.u53(), count: takeCount(head, MAX_LEARN_GROUPS) }));
  const reports: LearnReport[] = [];
  for (let i = 0; i < fields.count; i++) {
    reports.push({ ...takeGroup(list), ballot: list.u53(), outcome: list.u8() === 1 ? 'ready' : 'failed' });
  }
  list.end();
  return { sender: fields.sender, reports };
}

export function encodePageRequest(request: PageRequest): Message {
  const head = putGroup(new Writer(64).u8(REQUEST_FORMAT), request).u53(request.ballot);
  head.u8(PAGE_KINDS.indexOf(request.kind)).u53(request.above).text(request.after);
  return { head: head.take(), attached: NO_ATTACHMENT };
}

export function decodePageRequest(message: Message): PageRequest {
  const head = new Reader(message.head);
  takeFormat(head);
  const group = takeGroup(head);
  const ballot = head.u53();
  const kind = takeKind(head);
  const above = head.u53();
  const after = takeText(head);
  head.end();
  return { ...group, ballot, kind, above, after };
}

function takeKind(head: Reader): PageKind {
  const kind = PAGE_KINDS[head.u8()];
  if (kind === undefined) throw new WebdfsError('CORRUPT', 'page of unknown kind');
  return kind;
}

function packRows(page: Exclude<Page, { kind: 'sum' }>): Uint8Array {
  const list = new Writer(64 + page.rows.length * 64);
  switch (page.kind) {
    case 'records': {
      let before: Uint8Array | undefined;
      for (const row of page.rows) {
        const shared = before === undefined ? 0 : sharedBytes(before, row.key);
        list.u32(row.hashHigh).u32(row.hashLow).u16(shared).short(row.key.subarray(shared));
        list.u53(row.sequence).u8(row.tombstone ? 1 : 0);
        before = row.key;
      }
      break;
    }
    case 'blocks':
      for (const row of page.rows) list.raw(row.id).u53(row.sequence).u32(row.size);
      break;
    case 'notes':
      for (const row of page.rows) list.short(row.name).long(row.value);
      break;
    case 'requests':
      for (const row of page.rows) list.raw(row.requestId).u53(row.sequence).u53(row.ballot).u53(row.timeMs);
      break;
  }
  return list.take();
}

export function encodePage(page: Page): Message {
  const head = new Writer(96).u8(REQUEST_FORMAT).u8(PAGE_KINDS.indexOf(page.kind));
  if (page.kind === 'sum') {
    putSum(head, page.sum);
    return withSection(head, new Uint8Array(0));
  }
  head.u53(page.asOf).u16(page.rows.length);
  if (page.next === undefined) head.u8(0);
  else head.u8(1).text(page.next);
  return withSection(head, packRows(page));
}

/** @param kind  what was asked for: a page of another kind is CORRUPT */
export function decodePage<Kind extends PageKind>(message: Message, kind: Kind): Extract<Page, { kind: Kind }> {
  const { fields, list } = open(message, (head) => {
    if (takeKind(head) !== kind) throw new WebdfsError('CORRUPT', `a page of ${kind} was asked for`);
    if (kind === 'sum') return { sum: takeSum(head) };
    const asOf = head.u53();
    const count = takeCount(head, MAX_PAGE_ROWS);
    return { asOf, count, next: head.u8() === 0 ? undefined : takeText(head) };
  });
  const page = fields.count === undefined ? { kind, sum: fields.sum } : { kind, ...rowsOf(list, kind, fields) };
  list.end();
  return page as Extract<Page, { kind: Kind }>;
}

function rowsOf(
  list: Reader,
  kind: PageKind,
  { asOf, count, next }: { asOf: Sequence; count: number; next: string | undefined },
): PageEnds & { rows: unknown[] } {
  const rows: unknown[] = [];
  let before: Uint8Array | undefined;
  for (let i = 0; i < count; i++) {
    if (kind === 'records') {
      const row = takeWalkRow(list, before);
      before = row.key;
      rows.push(row);
    } else if (kind === 'blocks') {
      rows.push({ id: list.raw(BLOCK_ID_BYTES).slice(), sequence: list.u53(), size: list.u32() });
    } else if (kind === 'notes') rows.push({ name: list.short().slice(), value: list.long().slice() });
    else {
      const requestId = list.raw(REQUEST_ID_BYTES).slice();
      rows.push({ requestId, sequence: list.u53(), ballot: list.u53(), timeMs: list.u53() });
    }
  }
  return { asOf, next, rows };
}

function takeWalkRow(list: Reader, before: Uint8Array | undefined): WalkRow {
  const hashHigh = list.u32();
  const hashLow = list.u32();
  const key = unpackKey(list, before, MAX_KEY_BYTES);
  return { hashHigh, hashLow, key, sequence: list.u53(), tombstone: list.u8() === 1 };
}
