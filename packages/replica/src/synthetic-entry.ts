import { type Ballot, chunkSums, EMPTY, type GroupKey, type Sequence } from '@webdfs/base';
import { FLAG, KIND, type LogEntry, type LogKind, REQUEST_ID_BYTES } from '@webdfs/store';

/**
 * Entries that a learner makes itself, from what a page says or does not say: nobody's request caused them, so they carry
 * no request id.
 */
export interface Synthesis {
  readonly group: GroupKey;
  readonly ballot: Ballot;
  readonly sequence: Sequence;
  readonly timeMs: number;
}

const NO_REQUEST: Uint8Array = new Uint8Array(REQUEST_ID_BYTES);

function entryOf(
  { group, ballot, sequence, timeMs }: Synthesis,
  kind: LogKind,
  parts: Pick<LogEntry, 'flags' | 'hashHigh' | 'hashLow' | 'key' | 'body'>,
): LogEntry {
  const place = { policy: group.policy, group: group.group, kind, sequence, ballot, commit: 0, timeMs, timeCount: 0 };
  return { ...place, ...parts, meta: NO_REQUEST, sums: chunkSums(parts.body) };
}

/** The end of a key. */
export function tombstoneOf(
  synthesis: Synthesis,
  row: { readonly key: Uint8Array; readonly hashHigh: number; readonly hashLow: number },
): LogEntry {
  const { key, hashHigh, hashLow } = row;
  return entryOf(synthesis, KIND.TOMBSTONE, { flags: FLAG.LATEST_ONLY, hashHigh, hashLow, key, body: EMPTY });
}

/** The end of a block. */
export function blockGoneOf(synthesis: Synthesis, id: Uint8Array): LogEntry {
  return entryOf(synthesis, KIND.BLOCK_GONE, { flags: 0, hashHigh: 0, hashLow: 0, key: id, body: EMPTY });
}

/** A note; an empty value ends it. */
export function noteOf(synthesis: Synthesis, name: Uint8Array, value: Uint8Array): LogEntry {
  const flags = value.length === 0 ? FLAG.DELETE_MARKER : 0;
  return entryOf(synthesis, KIND.GROUP_ENTRY, { flags, hashHigh: 0, hashLow: 0, key: name, body: value });
}
