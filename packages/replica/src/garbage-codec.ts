import { type GroupKey, Reader, type Revision, WebdfsError, Writer } from '@webdfs/base';
import { BLOCK_ID_BYTES } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from './attachment.ts';
import { UPLOAD_ID_BYTES } from './block-codec.ts';
import { ATTEMPT_BYTES } from './record.ts';
import { putGroup, REQUEST_FORMAT, takeFormat, takeGroup, takeKey } from './request-codec.ts';

/** Questions in one NAMED, blocks in one EXAMINE. */
export const MAX_QUESTIONS = 128;
const MAX_SECTION_BYTES = 524_288;
const VERDICTS = ['unknown', 'named', 'gone'] as const;

/** Does anything name this attempt? Asked at the group of the key that it was made for. */
export interface NamedQuestion extends GroupKey {
  readonly key: Uint8Array;
  readonly attempt: Uint8Array;
  /** All zero outside a multipart upload. */
  readonly uploadId: Uint8Array;
}

/** gone: nothing names it and nothing ever will, a fence is committed · unknown: nobody can say here and now. */
export type NamedVerdict = (typeof VERDICTS)[number];

/** Blocks that may be garbage; the primary of their groups shall look at them now. */
export interface ExamineRequest extends GroupKey {
  readonly ids: readonly Uint8Array[];
}

function withSection(head: Writer, section: Uint8Array): Message {
  putSection(head, section);
  return { head: head.take(), attached: section.length === 0 ? NO_ATTACHMENT : [section] };
}

function open(message: Message, head: Reader): Reader {
  const attachment = new Attachment(message.attached);
  const list = new Reader(takeSection(head, attachment, MAX_SECTION_BYTES));
  head.end();
  attachment.end();
  return list;
}

function takeCount(head: Reader): number {
  const count = head.u16();
  if (count > MAX_QUESTIONS) throw new WebdfsError('TOO_LARGE', `${count} in one message, limit ${MAX_QUESTIONS}`);
  return count;
}

export function encodeNamed(questions: readonly NamedQuestion[], revision: Revision): Message {
  const list = new Writer(questions.length * 96);
  for (const { key, attempt, uploadId, ...group } of questions) {
    putGroup(list, group).raw(attempt).raw(uploadId).short(key);
  }
  return withSection(new Writer(24).u8(REQUEST_FORMAT).u53(revision).u16(questions.length), list.take());
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeNamed(message: Message): { revision: Revision; questions: NamedQuestion[] } {
  const head = new Reader(message.head);
  takeFormat(head);
  const revision = head.u53();
  const count = takeCount(head);
  const list = open(message, head);
  const questions: NamedQuestion[] = [];
  for (let i = 0; i < count; i++) {
    const group = takeGroup(list);
    const attempt = list.raw(ATTEMPT_BYTES).slice();
    const uploadId = list.raw(UPLOAD_ID_BYTES).slice();
    questions.push({ ...group, attempt, uploadId, key: takeKey(list).slice() });
  }
  list.end();
  return { revision, questions };
}

export function encodeVerdicts(verdicts: readonly NamedVerdict[]): Message {
  const head = new Writer(8 + verdicts.length).u8(REQUEST_FORMAT).u16(verdicts.length);
  for (const verdict of verdicts) head.u8(VERDICTS.indexOf(verdict));
  return { head: head.take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeVerdicts(message: Message): NamedVerdict[] {
  const head = new Reader(message.head);
  takeFormat(head);
  const count = takeCount(head);
  const verdicts: NamedVerdict[] = [];
  for (let i = 0; i < count; i++) {
    const verdict = VERDICTS[head.u8()];
    if (verdict === undefined) throw new WebdfsError('CORRUPT', 'verdict is unknown');
    verdicts.push(verdict);
  }
  head.end();
  return verdicts;
}

export function encodeExamine(request: ExamineRequest, revision: Revision): Message {
  const list = new Writer(request.ids.length * BLOCK_ID_BYTES);
  for (const id of request.ids) list.raw(id);
  const head = putGroup(new Writer(32).u8(REQUEST_FORMAT), request).u53(revision).u16(request.ids.length);
  return withSection(head, list.take());
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeExamine(message: Message): { revision: Revision; request: ExamineRequest } {
  const head = new Reader(message.head);
  takeFormat(head);
  const group = takeGroup(head);
  const revision = head.u53();
  const count = takeCount(head);
  const list = open(message, head);
  const ids: Uint8Array[] = [];
  for (let i = 0; i < count; i++) ids.push(list.raw(BLOCK_ID_BYTES).slice());
  list.end();
  return { revision, request: { ...group, ids } };
}
