import { type Ballot, fromUtf8, type GroupId, type GroupKey, type PolicyId, type Sequence, utf8 } from '@webdfs/base';
import { REQUEST_ID_BYTES } from './entry.ts';
import {
  checkRow,
  type EntryPlace,
  GROUP_KEY_BYTES,
  readGroupKey,
  readPlace,
  readU53LE,
  ROW,
  rowBuffer,
  viewOf,
  writeGroupKey,
  writePlace,
  writeU53LE,
} from './index-rows.ts';
import type { LaneNumber } from './volume-format.ts';
import { copyOf, viewPart } from './plain-bytes.ts';

/** Rows of the index that hold state: groups, pending entries, notes, volumes, requests, meta. Same rules as index-rows.ts. */

// ---- g: a group ----

export interface GroupValue {
  readonly last: Sequence;
  readonly lastBallot: Ballot;
  readonly commit: Sequence;
  readonly commitBallot: Ballot;
  /** The highest commit point that a durable head in a volume tells of. */
  readonly proven: Sequence;
  readonly objects: number;
  readonly blocks: number;
  readonly bytes: number;
  readonly digest: number;
  readonly tenure: number;
  /** Rows of an earlier tenure are being deleted. */
  readonly dropping: boolean;
  /** The newest GROUP_MARK, and where it lies; `number` 0 if there is none. */
  readonly markPlace: EntryPlace;
  /** The mark's meta: UTF-8 JSON. */
  readonly markText: Uint8Array;
}

const GROUP_HEAD_BYTES = 92;

export function groupRowKey(group: GroupKey): Buffer {
  const row = rowBuffer(1 + GROUP_KEY_BYTES);
  writeGroupKey(row, ROW.GROUP, group);
  return row;
}

export function packGroup(value: GroupValue): Buffer {
  const bytes = rowBuffer(GROUP_HEAD_BYTES + value.markText.length);
  writeU53LE(bytes, value.last, 0);
  writeU53LE(bytes, value.lastBallot, 8);
  writeU53LE(bytes, value.commit, 16);
  writeU53LE(bytes, value.commitBallot, 24);
  writeU53LE(bytes, value.objects, 32);
  writeU53LE(bytes, value.blocks, 40);
  writeU53LE(bytes, value.bytes, 48);
  writeU53LE(bytes, value.digest, 56);
  bytes.writeUInt32LE(value.tenure, 64);
  bytes.writeUInt32LE(value.dropping ? 1 : 0, 68);
  writePlace(bytes, value.markPlace, 72);
  writeU53LE(bytes, value.proven, 84);
  bytes.set(value.markText, GROUP_HEAD_BYTES);
  return bytes;
}

export function unpackGroup(source: Uint8Array): GroupValue {
  checkRow(source.length >= GROUP_HEAD_BYTES, `group row has ${source.length} bytes`);
  const bytes = viewOf(source);
  return {
    last: readU53LE(bytes, 0),
    lastBallot: readU53LE(bytes, 8),
    commit: readU53LE(bytes, 16),
    commitBallot: readU53LE(bytes, 24),
    objects: readU53LE(bytes, 32),
    blocks: readU53LE(bytes, 40),
    bytes: readU53LE(bytes, 48),
    digest: readU53LE(bytes, 56),
    tenure: bytes.readUInt32LE(64),
    dropping: bytes.readUInt32LE(68) === 1,
    markPlace: readPlace(bytes, 72),
    proven: readU53LE(bytes, 84),
    markText: copyOf(source, GROUP_HEAD_BYTES),
  };
}

export function unpackGroupKey(source: Uint8Array): GroupKey {
  checkRow(source.length >= 1 + GROUP_KEY_BYTES, 'group row key is short');
  return readGroupKey(viewOf(source));
}

// ---- q: durable here, not known to be committed ----

export interface PendingKey extends GroupKey {
  readonly sequence: Sequence;
  readonly ballot: Ballot;
}

/** `q ‖ group ‖ sequence u64 BE ‖ ballot u64 BE`; value: place. */
export function pendingRowKey(key: PendingKey): Buffer {
  const row = rowBuffer(23);
  writeGroupKey(row, ROW.PENDING, key);
  row.writeBigUInt64BE(BigInt(key.sequence), 7);
  row.writeBigUInt64BE(BigInt(key.ballot), 15);
  return row;
}

export function unpackPendingKey(source: Uint8Array): PendingKey {
  checkRow(source.length === 23, 'pending row key has a wrong length');
  const row = viewOf(source);
  return {
    ...readGroupKey(row),
    sequence: Number(row.readBigUInt64BE(7)),
    ballot: Number(row.readBigUInt64BE(15)),
  };
}

export function packPlace(place: EntryPlace): Buffer {
  const bytes = rowBuffer(12);
  writePlace(bytes, place, 0);
  return bytes;
}

export function unpackPlace(source: Uint8Array): EntryPlace {
  checkRow(source.length === 12, 'place has a wrong length');
  return readPlace(viewOf(source), 0);
}

// ---- n: a note of a group ----

export interface NoteValue extends EntryPlace {
  readonly sequence: Sequence;
  /** Removed by an entry with flag DELETE_MARKER: kept as a tombstone for a while. */
  readonly removed: boolean;
  readonly value: Uint8Array;
}

const NOTE_HEAD_BYTES = 20;

export function noteRowKey(group: GroupKey, name: Uint8Array): Buffer {
  const row = rowBuffer(1 + GROUP_KEY_BYTES + name.length);
  writeGroupKey(row, ROW.NOTE, group);
  row.set(name, 1 + GROUP_KEY_BYTES);
  return row;
}

/** The note's name, a view. */
export function nameOfNoteRow(row: Uint8Array): Uint8Array {
  return viewPart(row, 1 + GROUP_KEY_BYTES, row.length);
}

export function packNote(note: NoteValue): Buffer {
  const bytes = rowBuffer(NOTE_HEAD_BYTES + note.value.length);
  writePlace(bytes, note, 0);
  bytes.writeUIntLE(note.sequence, 12, 6);
  bytes.writeUInt16LE(note.removed ? 1 : 0, 18);
  bytes.set(note.value, NOTE_HEAD_BYTES);
  return bytes;
}

export function unpackNote(source: Uint8Array): NoteValue {
  checkRow(source.length >= NOTE_HEAD_BYTES, 'note row is short');
  const bytes = viewOf(source);
  return {
    ...readPlace(bytes, 0),
    sequence: bytes.readUIntLE(12, 6),
    removed: bytes.readUInt16LE(18) === 1,
    value: viewPart(source, NOTE_HEAD_BYTES, source.length),
  };
}

// ---- v: a volume ----

export interface VolumeValue {
  /** Everything below is in the index: scan from here. */
  readonly applied: number;
  readonly state: VolumeState;
  readonly lane: LaneNumber;
  /** Entries are valid below; of a sealed volume only. */
  readonly end: number;
  readonly size: number;
  /** Bytes of entries that a row points to. */
  readonly live: number;
  /** Bytes of entries that act as tombstones. */
  readonly tombstones: number;
  readonly entries: number;
  /** Highest volume id given out when the last tombstone in here was applied. */
  readonly horizon: number;
}

export type VolumeState = 'open' | 'sealed' | 'gone';
const STATES: readonly VolumeState[] = ['open', 'sealed', 'gone'];
const VOLUME_VALUE_BYTES = 52;

export function volumeRowKey(volume: number): Buffer {
  const row = rowBuffer(5);
  row[0] = ROW.VOLUME;
  row.writeUInt32BE(volume, 1);
  return row;
}

export function unpackVolumeKey(source: Uint8Array): number {
  checkRow(source.length === 5, 'volume row key has a wrong length');
  return viewOf(source).readUInt32BE(1);
}

export function packVolume(value: VolumeValue): Buffer {
  const bytes = rowBuffer(VOLUME_VALUE_BYTES);
  writeU53LE(bytes, value.applied, 0);
  writeU53LE(bytes, value.end, 8);
  writeU53LE(bytes, value.size, 16);
  writeU53LE(bytes, value.live, 24);
  writeU53LE(bytes, value.tombstones, 32);
  bytes.writeUInt32LE(value.entries, 40);
  bytes.writeUInt32LE(value.horizon, 44);
  bytes[48] = STATES.indexOf(value.state);
  bytes[49] = value.lane;
  return bytes;
}

export function unpackVolume(source: Uint8Array): VolumeValue {
  checkRow(source.length === VOLUME_VALUE_BYTES, `volume row has ${source.length} bytes`);
  const bytes = viewOf(source);
  const state = STATES[bytes[48]!];
  checkRow(state !== undefined, 'volume row has an unknown state');
  return {
    applied: readU53LE(bytes, 0),
    end: readU53LE(bytes, 8),
    size: readU53LE(bytes, 16),
    live: readU53LE(bytes, 24),
    tombstones: readU53LE(bytes, 32),
    entries: bytes.readUInt32LE(40),
    horizon: bytes.readUInt32LE(44),
    state: state!,
    lane: bytes[49]! as LaneNumber,
  };
}

// ---- i: requests of the entries that one batch applied ----

export interface RequestFacts extends GroupKey {
  readonly requestId: Uint8Array;
  readonly sequence: Sequence;
  readonly ballot: Ballot;
}

const REQUEST_FACTS_BYTES = REQUEST_ID_BYTES + 20;

/** `i ‖ time of the batch u64 BE ‖ counter u32 BE`. */
export function requestsRowKey(timeMs: number, counter: number): Buffer {
  const row = rowBuffer(13);
  row[0] = ROW.REQUESTS;
  row.writeBigUInt64BE(BigInt(Math.floor(timeMs)), 1);
  row.writeUInt32BE(counter, 9);
  return row;
}

export function timeOfRequestsRow(source: Uint8Array): number {
  checkRow(source.length === 13, 'requests row key has a wrong length');
  return Number(viewOf(source).readBigUInt64BE(1));
}

/** Concatenated: request id 16, policy u16, group u32, sequence u48, ballot u64. */
export function packRequests(requests: readonly RequestFacts[]): Buffer {
  const bytes = rowBuffer(requests.length * REQUEST_FACTS_BYTES);
  let at = 0;
  for (const request of requests) {
    bytes.set(request.requestId, at);
    bytes.writeUInt16LE(request.policy, at + 16);
    bytes.writeUInt32LE(request.group, at + 18);
    bytes.writeUIntLE(request.sequence, at + 22, 6);
    writeU53LE(bytes, request.ballot, at + 28);
    at += REQUEST_FACTS_BYTES;
  }
  return bytes;
}

export function unpackRequests(source: Uint8Array): RequestFacts[] {
  checkRow(source.length % REQUEST_FACTS_BYTES === 0, 'requests row has a wrong length');
  const bytes = viewOf(source);
  const requests: RequestFacts[] = [];
  for (let at = 0; at < bytes.length; at += REQUEST_FACTS_BYTES) {
    requests.push({
      requestId: copyOf(source, at, at + REQUEST_ID_BYTES),
      policy: bytes.readUInt16LE(at + 16) as PolicyId,
      group: bytes.readUInt32LE(at + 18) as GroupId,
      sequence: bytes.readUIntLE(at + 22, 6),
      ballot: readU53LE(bytes, at + 28),
    });
  }
  return requests;
}

// ---- d: damage ----

export interface DamageValue {
  /** Bytes of the volume that are unusable. */
  readonly length: number;
  readonly foundMs: number;
  readonly what: string;
  /** The head there could not be read: what it was is not known (P11). */
  readonly headLost: boolean;
  /** Record key, block id or note name of the entry, in hex, if known. */
  readonly key?: string | undefined;
  readonly policy?: number | undefined;
  readonly group?: number | undefined;
  /** Nothing on this node needs the place any more. */
  readonly settled?: boolean | undefined;
}

export function damageRowKey(volume: number, place: number): Buffer {
  const row = rowBuffer(9);
  row[0] = ROW.DAMAGE;
  row.writeUInt32BE(volume, 1);
  row.writeUInt32BE(place / 8, 5);
  return row;
}

export function unpackDamageKey(source: Uint8Array): { volume: number; place: number } {
  checkRow(source.length === 9, 'damage row key has a wrong length');
  const row = viewOf(source);
  return { volume: row.readUInt32BE(1), place: row.readUInt32BE(5) * 8 };
}

export function packDamage(value: DamageValue): Uint8Array {
  return utf8(JSON.stringify(value));
}

export function unpackDamage(source: Uint8Array): DamageValue {
  const value = JSON.parse(fromUtf8(source)) as DamageValue;
  checkRow(typeof value.length === 'number' && typeof value.what === 'string', 'damage row');
  return value;
}

// ---- m: facts of the index itself ----

export const INDEX_FORMAT = 1;

/** `format`, `storeId` and `ready` make an index usable; `highest` is the highest volume id given out; `scrub` where the scrub stands. */
export function metaRowKey(name: 'format' | 'storeId' | 'ready' | 'scrub' | 'highest'): Uint8Array {
  return utf8(`m${name}`);
}
