import { type Ballot, codeOf, type GroupKey, messageOf, type Sequence, type Timer, WebdfsError } from '@webdfs/base';
import { BlockReads } from './block-reads.ts';
import { COMPACTION, Compactor } from './compaction.ts';
import type { Core } from './core.ts';
import { dropRows } from './drop-rows.ts';
import type { LogEntry } from './entry.ts';
import type { StoreFolder } from './folder.ts';
import type { FullDisk } from './full-disk.ts';
import { recordRowKey, unpackRecord } from './index-rows.ts';
import { type Logged, syncMark } from './logged.ts';
import type { EntryRead } from './reader.ts';
import { openStaging, type StagerOptions } from './staging.ts';
import { noteRowKey, unpackNote } from './state-rows.ts';
import type {
  BlockRow,
  Damage,
  GroupLog,
  GroupMark,
  Identity,
  KnownRequest,
  RecordRow,
  Staging,
  Store,
  StoreFacts,
  WalkRow,
} from './store.ts';
import { purgeTombstones } from './tombstone-purge.ts';
import { settleDamage } from './damage-settling.ts';
import { type Pace, scrub } from './scrub.ts';
import { Throttle } from './throttle.ts';
import type { StoreUpkeep } from './store-upkeep.ts';
import { toRecordRow, Walks } from './walks.ts';
import { copyOf } from './plain-bytes.ts';

/** Housekeeping: tombstones to forget, staged blocks that nothing named. */
const CHORES_MS = 30_000;
const STAGED_KEEP_MS = 3_600_000;
/** Looking the place up again after compaction may have moved it. */
const MAX_MOVES = 3;

const NO_LOG: GroupLog = {
  last: 0,
  lastBallot: 0,
  commit: 0,
  objects: 0,
  blocks: 0,
  bytes: 0,
  digest: 0,
  mark: undefined,
};

export interface LocalStoreOptions {
  readonly identity: Identity;
  readonly core: Core;
  readonly folder: StoreFolder;
  readonly space: FullDisk;
  readonly staging: StagerOptions;
  readonly upkeep: StoreUpkeep;
  readonly scannedAtStart: number;
  readonly tombstoneKeepMs: number;
  /** Closes what the store was opened with: index, lock. */
  readonly release: () => Promise<void>;
}

/** While writers wait for the disk, reading in the background goes at a share of its pace. */
const BUSY_PRICE = 4;

/** A store in a folder of this machine, opened by `openStore`. */
export class LocalStore implements Store {
  readonly identity: Identity;
  readonly #options: LocalStoreOptions;
  readonly #core: Core;
  readonly #walks: Walks;
  readonly #blocks: BlockReads;
  readonly #openedMs: number;
  #chores: Timer | undefined;
  #choreRunning: Promise<void> | undefined;
  #purgeAfter: Uint8Array | undefined;
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;

  constructor(options: LocalStoreOptions) {
    this.#options = options;
    this.identity = options.identity;
    this.#core = options.core;
    this.#walks = new Walks(options.core.tables, options.core.index);
    this.#blocks = new BlockReads(options.core);
    this.#openedMs = options.core.tables.clock.monotonic();
    this.#scheduleChores();
  }

  get full(): boolean {
    return this.#options.space.full;
  }

  facts(): StoreFacts {
    const { volumes, groups, damage, overlay } = this.#core.tables;
    const { log, bulk } = this.#core.lanes;
    let liveBytes = 0;
    let volumeBytes = 0;
    let count = 0;
    for (const volume of volumes.all()) {
      count += 1;
      liveBytes += volume.live;
      volumeBytes += volume.size;
    }
    let objects = 0;
    let blocks = 0;
    for (const group of groups.all()) {
      objects += group.objects;
      blocks += group.blocks;
    }
    const { free, total } = this.#options.space.space;
    return {
      volumes: count,
      liveBytes,
      volumeBytes,
      freeBytes: free,
      totalBytes: total,
      objects,
      blocks,
      full: this.full,
      damaged: damage.size,
      suspect: damage.suspect,
      lastDurableMs: Math.max(this.#openedMs, log.lastSyncMs, bulk.lastSyncMs),
      counters: {
        commits: log.counters.commits + bulk.counters.commits,
        entries: log.counters.entries + bulk.counters.entries,
        bytes: log.counters.bytes + bulk.counters.bytes,
        syncMs: log.counters.syncMs + bulk.counters.syncMs,
        refused: log.counters.refused + bulk.counters.refused,
        cacheHits: this.#core.cache.hits,
        cacheMisses: this.#core.cache.misses,
        batches: overlay.batches,
        overlayBytes: overlay.bytes,
        stagingBytes: this.#options.staging.budget.used,
        syncReads: this.#core.reader.counters.syncReads,
        poolReads: this.#core.reader.counters.poolReads,
        slowReads: this.#core.residency.slowReads,
        scannedAtStart: this.#options.scannedAtStart,
      },
    };
  }

  // ---- the log of a group ----

  append(entry: LogEntry): Promise<void> {
    return this.#core.logs.append(entry);
  }

  cut(group: GroupKey, after: Sequence, below: Ballot): Promise<void> {
    return this.#core.logs.cut(group, after, below);
  }

  commit(group: GroupKey, upTo: Sequence): void {
    this.#core.logs.commit(group, upTo);
  }

  log(group: GroupKey): GroupLog {
    return this.#core.tables.groups.get(group)?.log() ?? NO_LOG;
  }

  async pending(group: GroupKey): Promise<LogEntry[]> {
    const entries: LogEntry[] = [];
    for (const entry of await this.#core.logs.pending(group)) entries.push(await this.#pendingEntry(entry));
    return entries;
  }

  async #pendingEntry(entry: Logged): Promise<LogEntry> {
    const { volume, place, entryBytes, sequence, key } = entry;
    const read = await this.#core.reader.readEntry({ volume, place, entryBytes }, { sequence, key });
    if ('entry' in read) return read.entry;
    const what = read.mismatch.what;
    this.#core.tables.damage.report({ volume, place, length: entryBytes, what, key, group: entry });
    throw new WebdfsError('CORRUPT', `pending entry ${sequence} at ${volume}:${place}: ${what}`);
  }

  mark(group: GroupKey, mark: GroupMark): Promise<void> {
    return this.#core.logs.mark(group, mark);
  }

  install(entry: LogEntry): Promise<void> {
    return this.#core.logs.install(entry);
  }

  rebase(group: GroupKey, sequence: Sequence, ballot: Ballot): Promise<void> {
    return this.#core.logs.rebase(group, sequence, ballot);
  }

  drop(group: GroupKey): Promise<void> {
    return this.#options.upkeep.exclusive(async () => {
      const { tables, applier, index } = this.#core;
      const state = await this.#core.logs.endTenure(group);
      await dropRows(tables, applier, index, state);
      await tables.overlay.sync();
    });
  }

  groups(): readonly GroupKey[] {
    const keys: GroupKey[] = [];
    for (const state of this.#core.tables.groups.all()) {
      if (state.exists) keys.push({ policy: state.policy, group: state.group });
    }
    return keys;
  }

  requests(): readonly KnownRequest[] {
    return this.#core.requests.known;
  }

  // ---- applied records ----

  find(key: Uint8Array): RecordRow | undefined {
    const row = this.#core.tables.overlay.get(recordRowKey(key));
    return row === undefined ? undefined : toRecordRow(copyOf(key), unpackRecord(row));
  }

  async read(row: RecordRow): Promise<LogEntry> {
    let place: Pick<RecordRow, 'volume' | 'place' | 'entryBytes'> = row;
    for (let moves = 0; ; moves++) {
      const read = await this.#readAt(place, row);
      if ('entry' in read) return read.entry;
      const now = this.find(row.key);
      if (now?.sequence !== row.sequence) {
        throw new WebdfsError('CONFLICT', `the record has changed: version ${row.sequence} was asked for`);
      }
      const hasMoved = now.volume !== place.volume || now.place !== place.place;
      if (!hasMoved || moves === MAX_MOVES) throw this.#damaged(now, read.mismatch);
      place = now;
    }
  }

  async #readAt(place: Pick<RecordRow, 'volume' | 'place' | 'entryBytes'>, row: RecordRow): Promise<EntryRead> {
    try {
      return await this.#core.reader.readEntry(place, row);
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') throw error;
      return { mismatch: { what: `volume ${place.volume} is gone`, foreign: false } };
    }
  }

  #damaged(row: RecordRow, mismatch: { what: string; foreign: boolean }): WebdfsError {
    const { volume, place, entryBytes: length, key } = row;
    const { what } = mismatch;
    this.#core.tables.damage.report({ volume, place, length, what, key, group: row });
    // the disk is well, the index is not: it is rebuilt at the next start
    if (mismatch.foreign) void this.#options.folder.distrustIndex().catch(() => undefined);
    return new WebdfsError('CORRUPT', `record at ${volume}:${place}: ${what}`);
  }

  list(range: Parameters<Store['list']>[0]): Promise<{ rows: RecordRow[]; next: Uint8Array | undefined }> {
    return this.#walks.list(range);
  }

  walkRecords(
    group: GroupKey,
    after: string | undefined,
    limit: number,
  ): Promise<{ rows: WalkRow[]; next: string | undefined }> {
    return this.#walks.records(group, after, limit);
  }

  // ---- notes ----

  note(group: GroupKey, name: Uint8Array): Uint8Array | undefined {
    const row = this.#core.tables.overlay.get(noteRowKey(group, name));
    if (row === undefined) return undefined;
    const note = unpackNote(row);
    return note.removed ? undefined : copyOf(note.value);
  }

  notes(group: GroupKey, prefix: Uint8Array): Promise<{ name: Uint8Array; value: Uint8Array }[]> {
    return this.#walks.notes(group, prefix);
  }

  // ---- blocks ----

  stage(group: GroupKey, id: Uint8Array): Staging {
    return openStaging(this.#options.staging, group, id);
  }

  staged(id: Uint8Array): { size: number; sums: Uint32Array } | undefined {
    return this.#core.tables.staged.finished(id)?.whole;
  }

  readStaged(id: Uint8Array, offset: number, target: Uint8Array): Promise<void> {
    return this.#blocks.readStaged(id, offset, target);
  }

  findBlock(group: GroupKey, id: Uint8Array): BlockRow | undefined {
    return this.#blocks.find(group, id);
  }

  readBlockEntry(row: BlockRow): Promise<LogEntry> {
    return this.#blocks.readEntry(row);
  }

  readBlock(row: BlockRow, offset: number, target: Uint8Array): Promise<void> {
    return this.#blocks.read(row, offset, target);
  }

  walkBlocks(
    group: GroupKey,
    after: Uint8Array | undefined,
    limit: number,
  ): Promise<{ rows: BlockRow[]; next: Uint8Array | undefined }> {
    return this.#walks.blocks(group, after, limit);
  }

  // ---- upkeep ----

  onDamage(listener: (damage: Damage) => void): void {
    this.#core.tables.damage.onDamage(listener);
  }

  async damage(): Promise<Damage[]> {
    return this.#core.tables.damage.list();
  }

  settleDamage(): Promise<number> {
    return settleDamage(this.#core.tables, this.#core.index);
  }

  saveFile(name: string, bytes: Uint8Array): Promise<void> {
    return this.#options.folder.save(name, bytes);
  }

  loadFile(name: string): Promise<Uint8Array | undefined> {
    return this.#options.folder.load(name);
  }

  /** Proves that the disk writes: resolves after an `fdatasync` that began after the call. */
  async proveDisk(): Promise<void> {
    const mark = syncMark(this.#core.tables.clock.now());
    await new Promise<void>((resolve, reject) => {
      mark.answer = { durable: resolve, failed: reject };
      this.#core.lanes.log.push(mark);
    });
  }

  async compact(options: { signal?: AbortSignal } = {}): Promise<boolean> {
    const compactor = new Compactor(this.#options.upkeep, COMPACTION, this.#untilClosed(options.signal));
    return (await compactor.compact()) !== undefined;
  }

  pace({ bytesPerSecond, signal }: { bytesPerSecond: number; signal?: AbortSignal }): Pace {
    const { upkeep } = this.#options;
    const throttle = new Throttle({ clock: upkeep.clock, bytesPerSecond, signal: this.#untilClosed(signal) });
    // not to stand still: a disk that is always slow must be verified too
    const price = (): number => (upkeep.pressure().commitMs > COMPACTION.commitTargetMs ? BUSY_PRICE : 1);
    return { take: (bytes) => throttle.take(bytes * price()) };
  }

  scrub(options: {
    bytesPerSecond: number;
    signal?: AbortSignal;
    done?: Set<number>;
  }): Promise<{ entries: number; damaged: number }> {
    const { done } = options;
    return scrub(this.#options.upkeep, { pace: this.pace(options), ...(done === undefined ? {} : { done }) });
  }

  /** Long work ends when its caller says so, or the store is closed. */
  #untilClosed(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
  }

  // ---- chores ----

  #scheduleChores(): void {
    this.#chores = this.#core.tables.clock.after(CHORES_MS, () => {
      this.#choreRunning = this.#doChores()
        .catch((error: unknown) => this.#options.upkeep.log.warn('chores failed', { error: messageOf(error) }))
        .then(() => {
          this.#choreRunning = undefined;
          if (this.#closed === undefined) this.#scheduleChores();
        });
    });
  }

  async #doChores(): Promise<void> {
    const { tables, applier, index } = this.#core;
    const { clock } = tables;
    for (const block of tables.staged.stale(clock.now() - STAGED_KEEP_MS)) applier.dropStaged(block);
    const keepMs = this.#options.tombstoneKeepMs;
    this.#purgeAfter = await purgeTombstones(tables, index, { clock, keepMs, after: this.#purgeAfter });
  }

  /** Drains the lanes, seals their volumes, and leaves an index that knows all: the next start has nothing to scan. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { lanes, tables } = this.#core;
    this.#chores?.cancel();
    this.#closing.abort(new WebdfsError('CANCELLED', 'the store is being closed'));
    await this.#choreRunning;
    await this.#options.space.close();
    await this.#options.upkeep.idle();
    try {
      await lanes.log.close();
      await lanes.bulk.close();
      await tables.overlay.sync();
    } catch (error) {
      // what was acknowledged is durable; the next start brings the index up
      this.#options.upkeep.log.warn('closed in haste', { error: messageOf(error) });
    } finally {
      await tables.volumes.close();
      await this.#options.release();
    }
  }
}
