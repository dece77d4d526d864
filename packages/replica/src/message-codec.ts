import { asGroupId, asPolicyId, type GroupKey, Reader, type Revision, unreachable, WebdfsError, Writer } from '@webdfs/base';
import { KIND, type LogEntry, type LogKind } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { Attachment, putBody, putSection, takeBody, takeSection } from './attachment.ts';
import type { ProtocolMessage, Run } from './messages.ts';
import { MAX_RECORD_BODY, takeFormat, REQUEST_FORMAT } from './request-codec.ts';

/*
 * A PROTOCOL post: the messages of one turn of one node for another. docs/formats/protocol.md has the tables.
 *
 *   head      u8 format | u53 session | u16 count | section: length u32, CRC-32C u32
 *   attached  the section: per message u8 type | u16 policy | u32 group | u53 ballot | its fields; then the entries' bodies
 */

const TYPES = [
  'query',
  'tail',
  'sync',
  'append',
  'ack',
  'not-synced',
  'commit',
  'release',
  'released',
  'stale',
  'lost',
] as const satisfies readonly ProtocolMessage['type'][];
const NUMBER = new Map<ProtocolMessage['type'], number>(TYPES.map((type, index) => [type, index + 1]));
const LOG_KINDS: ReadonlySet<number> = new Set([
  KIND.RECORD,
  KIND.TOMBSTONE,
  KIND.BLOCK,
  KIND.BLOCK_GONE,
  KIND.GROUP_ENTRY,
]);
/** Messages in one post. */
export const MAX_MESSAGES = 16_384;
/** Packed bytes of one post, bodies apart. */
const MAX_PACKED_BYTES = 1_048_576;
/** Runs of ballots in a window: each is at least one entry. */
const MAX_RUNS = 1_024;
const MAX_META_BYTES = 65_536;

/** Packs an entry without its group; the body goes by reference into `attached`. */
export function putEntry(packed: Writer, entry: LogEntry, attached: Uint8Array[]): void {
  packed.u8(entry.kind).u16(entry.flags).u53(entry.sequence).u53(entry.ballot).u53(entry.commit);
  packed.u53(entry.timeMs).u16(entry.timeCount).u32(entry.hashHigh).u32(entry.hashLow);
  packed.short(entry.key).long(entry.meta);
  putBody(packed, entry.body, entry.sums);
  if (entry.body.length > 0) attached.push(entry.body);
}

/** The entry that `putEntry` packed, its body verified: a view of the message. @throws CORRUPT, TOO_LARGE */
export function takeEntry(packed: Reader, attachment: Attachment, group: GroupKey): LogEntry {
  const kind = packed.u8();
  if (!LOG_KINDS.has(kind)) throw new WebdfsError('CORRUPT', `entry of kind ${kind}`);
  const flags = packed.u16();
  const sequence = packed.u53();
  const ballot = packed.u53();
  const commit = packed.u53();
  const timeMs = packed.u53();
  const timeCount = packed.u16();
  const hashHigh = packed.u32();
  const hashLow = packed.u32();
  const key = packed.short();
  const meta = packed.long();
  if (meta.length > MAX_META_BYTES) throw new WebdfsError('TOO_LARGE', `meta of ${meta.length} bytes`);
  const { body, sums } = takeBody(packed, attachment, MAX_RECORD_BODY);
  return {
    policy: group.policy,
    group: group.group,
    kind: kind as LogKind,
    flags,
    sequence,
    ballot,
    commit,
    timeMs,
    timeCount,
    hashHigh,
    hashLow,
    key,
    meta,
    body,
    sums,
  };
}

function putFields(packed: Writer, message: ProtocolMessage, attached: Uint8Array[]): void {
  switch (message.type) {
    case 'query':
      packed.u32(message.round);
      return;
    case 'tail':
      packed.u32(message.round).u53(message.commit).u53(message.last).u53(message.lastBallot).u16(message.runs.length);
      for (const run of message.runs) packed.u53(run.ballot).u53(run.last);
      return;
    case 'sync':
      packed.u53(message.receiver).u53(message.after).u53(message.commit);
      return;
    case 'append':
      packed.u53(message.commit);
      putEntry(packed, message.entry, attached);
      return;
    case 'ack':
      packed.u53(message.last).u53(message.expects ?? 0);
      return;
    case 'commit':
    case 'lost':
      packed.u53(message.commit);
      return;
    case 'stale':
      packed.u53(message.revision);
      return;
    case 'not-synced':
    case 'release':
    case 'released':
      return;
    default:
      unreachable(message);
  }
}

function takeRuns(packed: Reader): Run[] {
  const count = packed.u16();
  if (count > MAX_RUNS) throw new WebdfsError('TOO_LARGE', `tail of ${count} runs, limit ${MAX_RUNS}`);
  const runs: Run[] = [];
  for (let i = 0; i < count; i++) runs.push({ ballot: packed.u53(), last: packed.u53() });
  return runs;
}

function takeFields(packed: Reader, attachment: Attachment, type: ProtocolMessage['type'], to: Addressed): ProtocolMessage {
  switch (type) {
    case 'query':
      return { type, ...to, round: packed.u32() };
    case 'tail': {
      const round = packed.u32();
      const commit = packed.u53();
      const last = packed.u53();
      const lastBallot = packed.u53();
      return { type, ...to, round, commit, last, lastBallot, runs: takeRuns(packed) };
    }
    case 'sync':
      return { type, ...to, receiver: packed.u53(), after: packed.u53(), commit: packed.u53() };
    case 'append':
      return { type, ...to, commit: packed.u53(), entry: takeEntry(packed, attachment, to) };
    case 'ack': {
      const last = packed.u53();
      const expects = packed.u53();
      return expects === 0 ? { type, ...to, last } : { type, ...to, last, expects };
    }
    case 'commit':
    case 'lost':
      return { type, ...to, commit: packed.u53() };
    case 'stale':
      return { type, ...to, revision: packed.u53() };
    case 'not-synced':
    case 'release':
    case 'released':
      return { type, ...to };
    default:
      return unreachable(type);
  }
}

type Addressed = GroupKey & { readonly ballot: number };

/** Gathers messages into one post. */
export class BatchWriter {
  #packed = new Writer(1_024);
  #bodies: Uint8Array[] = [];
  #bodyBytes = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  get bodies(): number {
    return this.#bodies.length;
  }

  /** Of the post so far. */
  get bytes(): number {
    return this.#packed.length + this.#bodyBytes;
  }

  add(message: ProtocolMessage): void {
    this.#packed.u8(NUMBER.get(message.type)!).u16(message.policy).u32(message.group).u53(message.ballot);
    putFields(this.#packed, message, this.#bodies);
    if (message.type === 'append') this.#bodyBytes += message.entry.body.length;
    this.#count++;
  }

  /** The post; the writer is empty afterwards. */
  take(session: Revision): Message {
    const section = this.#packed.take();
    const head = new Writer(24).u8(REQUEST_FORMAT).u53(session).u16(this.#count);
    putSection(head, section);
    const message = { head: head.take(), attached: [section, ...this.#bodies] };
    this.#packed = new Writer(1_024);
    this.#bodies = [];
    this.#bodyBytes = 0;
    this.#count = 0;
    return message;
  }
}

/** What one post holds; bodies are views of it, the rest is copied, for it is kept longer. @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
export function unpackBatch(message: Message): { session: Revision; messages: ProtocolMessage[] } {
  const head = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(head);
  const session = head.u53();
  const count = head.u16();
  if (count > MAX_MESSAGES) throw new WebdfsError('TOO_LARGE', `post of ${count} messages, limit ${MAX_MESSAGES}`);
  const packed = new Reader(takeSection(head, attachment, MAX_PACKED_BYTES).slice());
  head.end();
  const messages: ProtocolMessage[] = [];
  for (let i = 0; i < count; i++) {
    const type = TYPES[packed.u8() - 1];
    if (type === undefined) throw new WebdfsError('CORRUPT', 'message of unknown type');
    const to = { policy: asPolicyId(packed.u16()), group: asGroupId(packed.u32()), ballot: packed.u53() };
    messages.push(takeFields(packed, attachment, type, to));
  }
  packed.end();
  attachment.end();
  return { session, messages };
}
