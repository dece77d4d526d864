import { type GroupKey, Reader, type Sequence, WebdfsError, Writer } from '@webdfs/base';
import type { LogEntry, Store } from '@webdfs/store';
import type { Link, Message } from '@webdfs/wire';
import { NO_ATTACHMENT } from '@webdfs/wire';
import { Attachment, putSection, takeSection } from './attachment.ts';
import { putEntry, takeEntry } from './message-codec.ts';
import { putGroup, REQUEST_FORMAT, takeFormat, takeGroup, takeKey } from './request-codec.ts';
import { VERB } from './verbs.ts';

/*
 * FETCH_ENTRIES: entries of a group's log after the commit point, for a takeover, or the entry of a record or a block, for a
 * copy that is damaged.
 *
 *   question  u8 format | u16 policy | u32 group | u8 kind | kind 1: u53 after, u53 up to · 2, 3: u16 length, key or id
 *   answer    u8 format | u16 count | section; attached: the entries packed, then their bodies
 */
const FETCH = { TAIL: 1, RECORD: 2, BLOCK: 3 } as const;
const ANSWER_BYTES = 512 * 1024;
const ANSWER_ENTRIES = 256;
const MAX_PACKED_BYTES = 1_048_576;
const DEADLINE_MS = 2_000;

/** Entries (after, upTo] of the log of `link.peer`, in as many calls as they need. @throws NOT_FOUND, or the link's errors */
export async function fetchTail(
  link: Link,
  group: GroupKey,
  range: { readonly after: Sequence; readonly upTo: Sequence },
): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  let after = range.after;
  while (after < range.upTo) {
    const head = putGroup(new Writer(32).u8(REQUEST_FORMAT), group).u8(FETCH.TAIL).u53(after).u53(range.upTo).take();
    const part = unpackAnswer(await ask(link, head), group);
    const next = part.at(-1)?.sequence;
    if (next === undefined || next <= after) throw new WebdfsError('NOT_FOUND', `entry ${after + 1} is not there`);
    for (const entry of part) entries.push(entry);
    after = next;
  }
  return entries;
}

/** The entry of a record or block as `link.peer` has it, verified. @throws NOT_FOUND, CORRUPT, or the link's errors */
export async function fetchEntry(
  link: Link,
  group: GroupKey,
  what: { readonly type: 'record' | 'block'; readonly key: Uint8Array },
): Promise<LogEntry> {
  const kind = what.type === 'record' ? FETCH.RECORD : FETCH.BLOCK;
  const head = putGroup(new Writer(64).u8(REQUEST_FORMAT), group).u8(kind).short(what.key).take();
  const [entry] = unpackAnswer(await ask(link, head), group);
  if (entry === undefined) throw new WebdfsError('NOT_FOUND', `node ${link.peer} does not have it`);
  return entry;
}

async function ask(link: Link, head: Uint8Array): Promise<Message> {
  return await link.call(VERB.FETCH_ENTRIES, { head, attached: NO_ATTACHMENT }, { deadlineMs: DEADLINE_MS });
}

/** FETCH_ENTRIES at the node that is asked. @throws NOT_FOUND, CORRUPT */
export async function serveEntries(store: Store, message: Message): Promise<Message> {
  const reader = new Reader(message.head);
  takeFormat(reader);
  const group = takeGroup(reader);
  const kind = reader.u8();
  if (kind === FETCH.TAIL) {
    const after = reader.u53();
    const upTo = reader.u53();
    const pending = await store.pending(group);
    return packAnswer(firstOf(pending.filter(({ sequence }) => sequence > after && sequence <= upTo)));
  }
  const key = takeKey(reader).slice();
  if (kind === FETCH.RECORD) {
    const row = store.find(key);
    return packAnswer(row === undefined ? [] : [await store.read(row)]);
  }
  if (kind !== FETCH.BLOCK) throw new WebdfsError('INVALID', `fetch of kind ${kind}`);
  const row = store.findBlock(group, key);
  return packAnswer(row === undefined ? [] : [await store.readBlockEntry(row)]);
}

/** As many as fit one answer, at least one. */
function firstOf(entries: readonly LogEntry[]): LogEntry[] {
  const taken: LogEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    bytes += 128 + entry.key.length + entry.meta.length + entry.body.length;
    if (taken.length > 0 && (bytes > ANSWER_BYTES || taken.length >= ANSWER_ENTRIES)) break;
    taken.push(entry);
  }
  return taken;
}

function packAnswer(entries: readonly LogEntry[]): Message {
  const packed = new Writer(1_024);
  const bodies: Uint8Array[] = [];
  for (const entry of entries) putEntry(packed, entry, bodies);
  const section = packed.take();
  const head = new Writer(16).u8(REQUEST_FORMAT).u16(entries.length);
  putSection(head, section);
  return { head: head.take(), attached: [section, ...bodies] };
}

/** @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
function unpackAnswer(message: Message, group: GroupKey): LogEntry[] {
  const head = new Reader(message.head);
  const attachment = new Attachment(message.attached);
  takeFormat(head);
  const count = head.u16();
  if (count > ANSWER_ENTRIES) throw new WebdfsError('TOO_LARGE', `answer of ${count} entries`);
  const packed = new Reader(takeSection(head, attachment, MAX_PACKED_BYTES).slice());
  head.end();
  const entries: LogEntry[] = [];
  for (let i = 0; i < count; i++) entries.push(takeEntry(packed, attachment, group));
  packed.end();
  attachment.end();
  return entries;
}
