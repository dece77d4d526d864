import { asGroupId, asPolicyId, type GroupKey, Reader, type Revision, WebdfsError, Writer } from '@webdfs/base';
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
  'full',
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

function takeRuns(packed: Reader): Run[] {
  const count = packed.u16();
  if (count > MAX_RUNS) throw new WebdfsError('TOO_LARGE', `tail of ${count} runs, limit ${MAX_RUNS}`);
  const runs: Run[] = [];
  for (let i = 0; i < count; i++) runs.push({ ballot: packed.u53(), last: packed.u53() });
  return runs;
}

/** How a message's own fields are written and read. */
interface Layout<Message extends ProtocolMessage> {
  put(packed: Writer, message: Message, attached: Uint8Array[]): void;
  take(packed: Reader, to: Addressed, attachment: Attachment): Message;
}

const NOTHING = (): void => undefined;

const LAYOUTS: { readonly [Type in ProtocolMessage['type']]: Layout<Extract<ProtocolMessage, { type: Type }>> } = {
  query: {
    put: (packed, { round }) => void packed.u32(round),
    take: (packed, to) => ({ type: 'query', ...to, round: packed.u32() }),
  },
  tail: {
    put(packed, { round, commit, last, lastBallot, runs }) {
      packed.u32(round).u53(commit).u53(last).u53(lastBallot).u16(runs.length);
      for (const run of runs) packed.u53(run.ballot).u53(run.last);
    },
    take(packed, to) {
      const ends = { round: packed.u32(), commit: packed.u53(), last: packed.u53(), lastBallot: packed.u53() };
      return { type: 'tail', ...to, ...ends, runs: takeRuns(packed) };
    },
  },
  sync: {
    put: (packed, { receiver, after, commit }) => void packed.u53(receiver).u53(after).u53(commit),
    take: (packed, to) => ({ type: 'sync', ...to, receiver: packed.u53(), after: packed.u53(), commit: packed.u53() }),
  },
  append: {
    put(packed, { commit, entry }, attached) {
      packed.u53(commit);
      putEntry(packed, entry, attached);
    },
    take: (packed, to, attachment) => ({
      type: 'append',
      ...to,
      commit: packed.u53(),
      entry: takeEntry(packed, attachment, to),
    }),
  },
  ack: {
    put: (packed, { last, expects }) => void packed.u53(last).u53(expects ?? 0),
    take(packed, to) {
      const last = packed.u53();
      const expects = packed.u53();
      return expects === 0 ? { type: 'ack', ...to, last } : { type: 'ack', ...to, last, expects };
    },
  },
  commit: {
    put: (packed, { commit }) => void packed.u53(commit),
    take: (packed, to) => ({ type: 'commit', ...to, commit: packed.u53() }),
  },
  lost: {
    put: (packed, { commit }) => void packed.u53(commit),
    take: (packed, to) => ({ type: 'lost', ...to, commit: packed.u53() }),
  },
  stale: {
    put: (packed, { revision }) => void packed.u53(revision),
    take: (packed, to) => ({ type: 'stale', ...to, revision: packed.u53() }),
  },
  'not-synced': { put: NOTHING, take: (_, to) => ({ type: 'not-synced', ...to }) },
  release: { put: NOTHING, take: (_, to) => ({ type: 'release', ...to }) },
  full: { put: NOTHING, take: (_, to) => ({ type: 'full', ...to }) },
  released: { put: NOTHING, take: (_, to) => ({ type: 'released', ...to }) },
};

/** The table has a layout for each type; that it is this message's own the compiler cannot see. */
function layoutOf(type: ProtocolMessage['type']): Layout<ProtocolMessage> {
  return LAYOUTS[type] as unknown as Layout<ProtocolMessage>;
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
    layoutOf(message.type).put(this.#packed, message, this.#bodies);
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
    messages.push(layoutOf(type).take(packed, to, attachment));
  }
  packed.end();
  attachment.end();
  return { session, messages };
}
