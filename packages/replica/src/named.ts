import { codeOf, equalBytes, type GroupKey, WebdfsError } from '@webdfs/base';
import { hashKey } from '@webdfs/placement';
import { FLAG, type LogEntry, type Store } from '@webdfs/store';
import { fenceNote, ownerOf } from './conditions.ts';
import type { NamedQuestion, NamedVerdict } from './garbage-codec.ts';
import { type Layout, unpackOwner } from './record.ts';
import type { ReplicaHost } from './replica-host.ts';

const NO_UPLOAD = new Uint8Array(16);
const WALK_ROWS = 256;

/** The blocks that a record names. @throws CORRUPT, NEWER_FORMAT */
export function layoutOf(entry: LogEntry): Layout {
  const isClosing = (entry.flags & FLAG.CLOSES) !== 0;
  return unpackOwner(ownerOf(entry.meta, isClosing), entry.body).layout;
}

function names(entry: LogEntry, attempt: Uint8Array): boolean {
  const layout = layoutOf(entry);
  if (layout.type === 'inline') return false;
  if (layout.type === 'blocks') return equalBytes(layout.attempt, attempt);
  return layout.parts.some((part) => equalBytes(part.attempt, attempt));
}

/**
 * Whether an applied record of the group names the attempt: the key's own, or a row beside it (a part of an open upload
 * has the same placement hash).
 *
 * @throws CORRUPT where a record that may name it cannot be read: nobody can say then
 */
async function isNamed(store: Store, question: NamedQuestion): Promise<boolean> {
  const own = store.find(question.key);
  if (own !== undefined && names(await store.read(own), question.attempt)) return true;
  if (equalBytes(question.uploadId, NO_UPLOAD)) return false;
  for await (const key of keysBeside(store, question)) {
    const row = store.find(key);
    if (row !== undefined && names(await store.read(row), question.attempt)) return true;
  }
  return false;
}

/** Keys of the group with the placement hash of `question.key`. */
async function* keysBeside(store: Store, question: NamedQuestion): AsyncGenerator<Uint8Array> {
  const { high, low } = hashKey(question.key);
  let after: string | undefined;
  do {
    const { rows, next } = await store.walkRecords(question, after, WALK_ROWS);
    for (const row of rows) {
      if (row.hashHigh > high || (row.hashHigh === high && row.hashLow > low)) return;
      const isBeside = row.hashHigh === high && row.hashLow === low && !row.tombstone;
      if (isBeside && !equalBytes(row.key, question.key)) yield row.key;
    }
    after = next;
  } while (after !== undefined);
}

/**
 * B2, at the primary of the key's group: `gone` only with a fence committed, so that no record that names the attempt can
 * follow. `unknown` where this node does not serve the group, or cannot read what may name it.
 */
export async function answerNamed(host: ReplicaHost, question: NamedQuestion): Promise<NamedVerdict> {
  const group: GroupKey = { policy: question.policy, group: question.group };
  try {
    const ballot = host.serving(group);
    if (ballot === 0) return 'unknown';
    if (await isNamed(host.store, question)) return 'named';
    if (host.serving(group) !== ballot) return 'unknown';
    const fence = fenceNote(question.attempt);
    if (!isFence(host.store.note(group, fence))) await host.proposeNote(group, fence, fenceValue(host.clock.now()));
    // what was on its way when it was looked for is committed now, as it comes before the fence
    if (!(await isNamed(host.store, question))) return host.serving(group) === ballot ? 'gone' : 'unknown';
    await host.proposeNote(group, fence, new Uint8Array(0));
    return 'named';
  } catch (error) {
    if (!(error instanceof WebdfsError)) throw error;
    host.log.debug('nobody can say whether blocks are named', {
      policy: group.policy,
      group: group.group,
      code: codeOf(error),
    });
    return 'unknown';
  }
}

/** A fence keeps the time it was made: seconds since 1970, u32 little-endian. */
export function fenceValue(nowMs: number): Uint8Array {
  const value = new Uint8Array(4);
  new DataView(value.buffer).setUint32(0, Math.floor(nowMs / 1_000), true);
  return value;
}

function isFence(value: Uint8Array | undefined): value is Uint8Array {
  return value !== undefined && value.length === 4;
}

/** When a fence was made, milliseconds since 1970; undefined if the note is none. */
export function fenceMadeMs(value: Uint8Array): number | undefined {
  if (!isFence(value)) return undefined;
  return new DataView(value.buffer, value.byteOffset).getUint32(0, true) * 1_000;
}
