import { fromUtf8, Reader, utf8, WebdfsError, Writer } from '@webdfs/base';
import type { Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import type { MoveStatus } from './move-meter.ts';
import { Attachment, putSection, takeSection } from './attachment.ts';
import { REQUEST_FORMAT, takeFormat } from './request-codec.ts';

const MAX_STATUS_BYTES = 262_144;

/** How far this node has come with what it must catch up on. */
export interface CatchUpStatus {
  /** Groups that this node brings up to date, as their primary, or still to be begun. */
  readonly groups: number;
  /** Entries and bytes that are known to be missing and not yet there. */
  readonly bytes: number;
  /** Bytes moved per second, lately. */
  readonly bytesPerSecond: number;
  /** Since the last quiet: what was compared, what had to travel. */
  readonly compared: number;
  readonly fetchedEntries: number;
  readonly fetchedBytes: number;
}

/** What a node says of itself; told as JSON, for `webdfs status` and the console. */
export interface NodeStatus {
  readonly node: number;
  readonly revision: number;
  readonly pid: number;
  /** Bytes: of live entries, of the volumes, free and in all on the file system. */
  readonly liveBytes: number;
  readonly volumeBytes: number;
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly objects: number;
  readonly blocks: number;
  readonly full: boolean;
  readonly damaged: number;
  /** Groups of which this node is primary and serves, is primary and does not serve yet, is another member. */
  readonly serving: number;
  readonly takingOver: number;
  readonly member: number;
  readonly catchUp: CatchUpStatus;
  /** Missing from nodes of an earlier version. */
  readonly moves?: MoveStatus;
  /** Whatever else is counted, by name. */
  readonly counters: Readonly<Record<string, number>>;
}

export function encodeStatusAnswer(status: NodeStatus): Message {
  const text = utf8(JSON.stringify(status));
  const head = new Writer(16).u8(REQUEST_FORMAT);
  putSection(head, text);
  return { head: head.take(), attached: [text] };
}

export function encodeStatusRequest(): Message {
  return { head: new Writer(1).u8(REQUEST_FORMAT).take(), attached: NO_ATTACHMENT };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function decodeStatusAnswer(message: Message): NodeStatus {
  const reader = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(reader);
  const bytes = takeSection(reader, attachment, MAX_STATUS_BYTES);
  reader.end();
  attachment.end();
  try {
    const value: unknown = JSON.parse(fromUtf8(bytes));
    if (isStatus(value)) return value;
  } catch (error) {
    throw new WebdfsError('CORRUPT', 'status is not JSON', { cause: error });
  }
  throw new WebdfsError('CORRUPT', 'status lacks its fields');
}

const NUMBERS = ['node', 'revision', 'liveBytes', 'objects', 'blocks', 'serving', 'takingOver', 'member'] as const;

function isStatus(value: unknown): value is NodeStatus {
  if (typeof value !== 'object' || value === null) return false;
  const fields = value as Record<string, unknown>;
  if (!NUMBERS.every((name) => typeof fields[name] === 'number')) return false;
  return typeof fields['catchUp'] === 'object' && fields['catchUp'] !== null;
}
