import {
  asGroupId,
  asPolicyId,
  chunkSums,
  EMPTY,
  type GroupKey,
  ManualClock,
  SeededRandom,
  silentLog,
  utf8,
  type WebdfsError,
  Writer,
} from '@webdfs/base';
import { type Crash, SimulatedDisk } from '@webdfs/base/testing';
import { FLAG, KIND, type LogEntry, type LogKind, REQUEST_ID_BYTES, SUMMARY_BYTES } from './entry.ts';
import { MemoryLock } from './folder-lock.ts';
import { openStore, type StoreTuning } from './open-store.ts';
import { SortedIndexHouse } from './sorted-index.ts';
import type { RecordRow, Store } from './store.ts';

/** Builders for tests of this room: a store on a simulated disk, and entries of one group. */

export const GROUP: GroupKey = { policy: asPolicyId(1), group: asGroupId(7) };
export const FOLDER = '/data/store';

/** Bucket 1 and a name. */
export function aKey(name: string): Uint8Array {
  return utf8(`\0\0\0\u0001${name}`);
}

export function aRequestId(number: number): Uint8Array {
  const id = new Uint8Array(REQUEST_ID_BYTES);
  new DataView(id.buffer).setUint32(0, number);
  return id;
}

export interface EntryParts {
  readonly sequence: number;
  readonly name?: string;
  readonly text?: string;
  readonly body?: Uint8Array;
  readonly ballot?: number;
  readonly commit?: number;
  readonly flags?: number;
  readonly closes?: string;
  readonly timeMs?: number;
  readonly group?: GroupKey;
  readonly summary?: Uint8Array;
}

function entryOf(kind: LogKind, key: Uint8Array, meta: Uint8Array, body: Uint8Array, parts: EntryParts): LogEntry {
  return {
    ...(parts.group ?? GROUP),
    kind,
    key,
    meta,
    body,
    sums: chunkSums(body),
    flags: parts.flags ?? 0,
    sequence: parts.sequence,
    ballot: parts.ballot ?? 1,
    commit: parts.commit ?? 0,
    timeMs: parts.timeMs ?? 1_800_000_000_000 + parts.sequence,
    timeCount: 0,
    hashHigh: key.reduce((hash, byte) => (Math.imul(hash, 31) + byte) >>> 0, 7),
    hashLow: 99,
  };
}

/** A put. */
export function aRecord(parts: EntryParts): LogEntry {
  const { name = `key${parts.sequence}`, text = `text of ${parts.sequence}`, closes } = parts;
  const meta = new Writer().raw(aRequestId(parts.sequence)).raw(parts.summary ?? new Uint8Array(SUMMARY_BYTES).fill(5));
  if (closes !== undefined) meta.short(aKey(closes));
  const flags = (parts.flags ?? FLAG.LATEST_ONLY) | (closes === undefined ? 0 : FLAG.CLOSES);
  return entryOf(KIND.RECORD, aKey(name), meta.take(), parts.body ?? utf8(text), { ...parts, flags });
}

export function aTombstone(parts: EntryParts): LogEntry {
  return entryOf(KIND.TOMBSTONE, aKey(parts.name ?? 'key'), aRequestId(parts.sequence), EMPTY, parts);
}

export function aNote(parts: EntryParts): LogEntry {
  const body = utf8(parts.text ?? 'note');
  return entryOf(KIND.GROUP_ENTRY, utf8(parts.name ?? 'a'), aRequestId(parts.sequence), body, parts);
}

export function aBlockId(number: number): Uint8Array {
  const id = new Uint8Array(20);
  new DataView(id.buffer).setUint32(16, number);
  return id;
}

export function aBlock(id: Uint8Array, whole: { size: number; sums: Uint32Array }, parts: EntryParts): LogEntry {
  const body = new Writer().u32(whole.size);
  for (const sum of whole.sums) body.u32(sum);
  return entryOf(KIND.BLOCK, id, aRequestId(parts.sequence), body.take(), parts);
}

export function aBlockGone(id: Uint8Array, parts: EntryParts): LogEntry {
  return entryOf(KIND.BLOCK_GONE, id, aRequestId(parts.sequence), EMPTY, parts);
}

/** Bytes that differ from chunk to chunk. */
export function someBytes(count: number, seed = 1): Uint8Array {
  const random = new SeededRandom(seed);
  const pattern = random.bytes(4_093);
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; at += pattern.length) bytes.set(pattern.subarray(0, count - at), at);
  return bytes;
}

/** A store, the machine under it, and what survives when either dies. */
export class TestBed {
  readonly clock = new ManualClock();
  readonly random = new SeededRandom(42);
  readonly locks = new MemoryLock();
  readonly failures: WebdfsError[] = [];
  disk: SimulatedDisk;
  tuning: StoreTuning;
  #store: Store | undefined;

  constructor(tuning: StoreTuning & { totalBytes?: number; seed?: number } = {}) {
    const { totalBytes, seed = 1, ...rest } = tuning;
    this.disk = new SimulatedDisk({ seed, ...(totalBytes === undefined ? {} : { totalBytes }) });
    this.tuning = { ballast: false, ...rest };
  }

  get store(): Store {
    return this.#store!;
  }

  async open(more: { rebuild?: boolean } = {}): Promise<Store> {
    await this.disk.makeFolder('/data');
    await this.disk.syncFolder('/');
    this.#store = await openStore({
      disk: this.disk,
      index: new SortedIndexHouse({ disk: this.disk, random: this.random }),
      folder: FOLDER,
      identity: { node: 1, cluster: 'test' },
      clock: this.clock,
      random: this.random,
      log: silentLog,
      lock: this.locks,
      onFailed: (error) => void this.failures.push(error),
      options: this.tuning,
      ...more,
    });
    return this.#store;
  }

  /** Closes in peace and opens again. */
  async reopen(more: { rebuild?: boolean } = {}): Promise<Store> {
    await this.store[Symbol.asyncDispose]();
    return this.open(more);
  }

  /** The machine dies; what comes after it opens the folder. */
  async crash(crash: Crash, more: { rebuild?: boolean; loseIndex?: boolean } = {}): Promise<Store> {
    this.disk = this.disk.crash(crash);
    this.locks.breakAll();
    if (more.loseIndex === true) await this.disk.removeFolder(`${FOLDER}/index`);
    return this.open(more.rebuild === undefined ? {} : { rebuild: more.rebuild });
  }

  /** Volume files, by name. */
  async volumes(): Promise<string[]> {
    return await this.disk.list(`${FOLDER}/volumes`);
  }

  /** Changes bytes of a file behind the store's back, on the medium and in the cache. */
  async damage(path: string, offset: number, bytes: Uint8Array): Promise<void> {
    const file = await this.disk.open(path, 'write');
    await file.writev([bytes], offset);
    await file.sync();
    await file.close();
  }
}

/** Appends entries one after another and moves the commit point to the last of them. */
export async function putAll(store: Store, entries: readonly LogEntry[]): Promise<void> {
  await Promise.all(entries.map((entry) => store.append(entry)));
  const last = entries.at(-1);
  if (last !== undefined) store.commit(last, last.sequence);
}

export async function textOf(store: Store, name: string): Promise<string | undefined> {
  const row = store.find(aKey(name));
  return row === undefined ? undefined : new TextDecoder().decode((await store.read(row)).body);
}

/** All rows of bucket 1. */
export async function allRecords(store: Store): Promise<RecordRow[]> {
  const { rows } = await store.list({ from: aKey(''), before: utf8('\0\0\0\u0002'), limit: 10_000, take: 10_000 });
  return rows;
}

/** What a caller can see of a group, without places: equal content, equal picture. */
export async function pictureOf(store: Store, group: GroupKey = GROUP): Promise<unknown> {
  const records = [];
  for (const row of await allRecords(store)) {
    const { key, sequence, flags, modifiedMs, summary } = row;
    records.push({ key, sequence, flags, modifiedMs, summary, body: (await store.read(row)).body });
  }
  const walked = (await store.walkRecords(group, undefined, 10_000)).rows;
  const blocks = [];
  for (const row of (await store.walkBlocks(group, undefined, 10_000)).rows) {
    const bytes = new Uint8Array(row.size);
    await store.readBlock(row, 0, bytes);
    blocks.push({ ...row, bytes });
  }
  const pending = await store.pending(group);
  const notes = await store.notes(group, EMPTY);
  const { liveBytes, damaged } = store.facts();
  return structuredClone({ log: store.log(group), records, walked, blocks, pending, notes, liveBytes, damaged });
}
