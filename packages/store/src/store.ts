import type { Ballot, GroupKey, Sequence } from '@webdfs/base';
import type { LogEntry } from './entry.ts';
import type { Pace } from './scrub.ts';

/** Who this folder belongs to. The disk id of the protocol is `storeId`. */
export interface Identity {
  /** 32 hex digits, made when the folder was made. */
  readonly storeId: string;
  readonly node: number;
  readonly cluster: string;
}

/** Where a group's log stands on this node. All zero for a group that was never here. */
export interface GroupLog {
  /** Sequence and ballot of the last entry that is not void. */
  readonly last: Sequence;
  readonly lastBallot: Ballot;
  /** Entries up to here are committed and applied. */
  readonly commit: Sequence;
  /** Applied rows: objects, blocks, and the bytes of both. */
  readonly objects: number;
  readonly blocks: number;
  readonly bytes: number;
  /** Sum (mod 2^48) over records, tombstone-free, and blocks of a hash of (key hash, sequence): equal content, equal digest. */
  readonly digest: number;
  /** The last mark written by `mark`. */
  readonly mark: GroupMark | undefined;
}

/** What the protocol must not forget about a group; opaque to the store but for its size (at most 4 KiB as JSON). */
export interface GroupMark {
  readonly role: 'member' | 'learner';
  /** The ballot whose Sync it has applied. */
  readonly syncedIn: Ballot;
  /** How far a learner has come: an opaque cursor. */
  readonly progress?: string;
}

/** An index row of a record: enough to list it, and to find its bytes. */
export interface RecordRow extends GroupKey {
  /** Bucket (u32 big-endian) and key. The caller's own copy. */
  readonly key: Uint8Array;
  readonly sequence: Sequence;
  readonly flags: number;
  readonly modifiedMs: number;
  readonly summary: Uint8Array;
  readonly volume: number;
  /** Byte offset of the entry in its volume. */
  readonly place: number;
  readonly entryBytes: number;
}

/** An index row of a block. */
export interface BlockRow extends GroupKey {
  readonly id: Uint8Array;
  readonly size: number;
  readonly sequence: Sequence;
  /** CRC-32C of each 64 KiB. */
  readonly sums: Uint32Array;
  readonly modifiedMs: number;
}

/** One step of a walk over a group in hash order: a record, or the tombstone of one. */
export interface WalkRow {
  readonly hashHigh: number;
  readonly hashLow: number;
  readonly key: Uint8Array;
  readonly sequence: Sequence;
  readonly tombstone: boolean;
}

export interface StoreFacts {
  /** Files that hold the bytes. */
  readonly volumes: number;
  /** Bytes of live entries, of all volumes, and of the file system. */
  readonly liveBytes: number;
  readonly volumeBytes: number;
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly objects: number;
  readonly blocks: number;
  /** Puts are refused (DISK_FULL) for want of space. */
  readonly full: boolean;
  /** Places known to be damaged and not yet repaired. */
  readonly damaged: number;
  /** A head was unreadable: some group may lack its tail (P11). */
  readonly suspect: boolean;
  /** When the disk last proved that it writes: `Clock.monotonic()` of the last successful fdatasync. */
  readonly lastDurableMs: number;
  /** Counters since start: `commits`, `entries`, `syncMs`, `cacheHits`, `scannedAtStart`, … */
  readonly counters: Readonly<Record<string, number>>;
}

/** A request already in this node's logs, for the table that makes retries exactly once. */
export interface KnownRequest extends GroupKey {
  /** 32 hex digits. */
  readonly requestId: string;
  readonly sequence: Sequence;
  readonly ballot: Ballot;
  readonly timeMs: number;
}

export interface Damage {
  readonly volume: number;
  readonly place: number;
  readonly what: string;
  /** The record key or block id, if it could be read. */
  readonly key?: Uint8Array;
  readonly group?: GroupKey;
}

/** A block's bytes on their way in. Pieces are written as they fill; nothing names them until the BLOCK entry. */
export interface Staging {
  /** Takes a copy of `bytes`. Resolves, or returns undefined, when the next may come: that is the back-pressure. */
  write(bytes: Uint8Array): Promise<void> | undefined;
  /** Hands over the last piece. Resolves when all are written (not yet synced). Sums of each 64 KiB. */
  finish(): Promise<{ size: number; sums: Uint32Array }>;
  /** Forgets the block; its pieces become garbage. */
  abort(): void;
}

/**
 * One node's store: the log of its groups, what has been applied of them, and the blocks.
 *
 * Errors: DISK_FULL (nothing was stored), DISK_FAILED (the store has stopped for good: restart), CORRUPT (the bytes asked
 * for are damaged here: read them elsewhere, then `repair`), TOO_LARGE.
 */
export interface Store extends AsyncDisposable {
  readonly identity: Identity;
  /** Counts over all groups and volumes: for reports, not for every write. */
  facts(): StoreFacts;
  /** The disk takes no more bytes: `facts().full`, at no cost. */
  readonly full: boolean;

  // ---- the log of a group ----
  /**
   * Makes an entry durable: resolves after the `fdatasync` that covers it and everything before it in its group. It is
   * pending until `commit` passes it. A BLOCK entry needs its bytes staged and finished here, of the same size and sums.
   * Entries of one group must be appended in the order of their sequences, without gaps. A repeat resolves with the first;
   * a pending entry of a lower ballot at the same sequence becomes void, with all of lower ballots that follow it.
   * @throws NOT_FOUND if a BLOCK's bytes are not here, CHECKSUM_MISMATCH if they are others, NOT_SYNCED for a gap,
   * STALE_BALLOT if a pending entry there has a higher ballot, or the entry became void while it was being written, CONFLICT
   * if another entry of the same sequence and ballot is pending
   */
  append(entry: LogEntry): Promise<void>;
  /** Voids pending entries with sequences above `after` and ballots below `below`, for good. Never at or below the commit point. */
  cut(group: GroupKey, after: Sequence, below: Ballot): Promise<void>;
  /** Moves the commit point: pending, durable entries up to `upTo` are applied, in order, and seen by every read from now on. */
  commit(group: GroupKey, upTo: Sequence): void;
  log(group: GroupKey): GroupLog;
  /** Entries after the commit point, in order, once those in flight are durable. */
  pending(group: GroupKey): Promise<LogEntry[]>;
  /** Remembers the protocol's state of a group, durably. */
  mark(group: GroupKey, mark: GroupMark): Promise<void>;
  /**
   * A learner's door: makes an entry durable and applies it at once, whatever its sequence, unless what is here of its key
   * is newer; equal sequence replaces (repair of a damaged copy). A tombstone removes what is older than itself. It is no
   * part of the log: `last` and `commit` stay.
   */
  install(entry: LogEntry): Promise<void>;
  /**
   * A learner's log begins after `sequence` (commit point and last entry): what was pending before is void.
   * @throws CONFLICT if more is committed here already: drop the group first
   */
  rebase(group: GroupKey, sequence: Sequence, ballot: Ballot): Promise<void>;
  /** Deletes all of a group that this node no longer holds. */
  drop(group: GroupKey): Promise<void>;
  /** Groups that have anything here. */
  groups(): readonly GroupKey[];
  /** Requests in entries younger than `retryKeepMs`, as recovered at start; later ones are the caller's to remember. */
  requests(): readonly KnownRequest[];

  // ---- applied records ----
  /** The newest applied version of a key, or undefined. Index only, on this thread. */
  find(key: Uint8Array): RecordRow | undefined;
  /** The entry that a row names, verified. @throws CORRUPT, CONFLICT if the key has another version by now */
  read(row: RecordRow): Promise<LogEntry>;
  /**
   * Rows in the order of keys. `from` is inclusive; both bounds are whole keys (bucket and name bytes), `before` exclusive.
   * Stops after `limit` rows looked at or `accept` rows taken; `next` is where to go on, undefined at the end.
   */
  list(range: {
    from: Uint8Array;
    before: Uint8Array;
    limit: number;
    accept?: (row: RecordRow) => boolean;
    take: number;
  }): Promise<{ rows: RecordRow[]; next: Uint8Array | undefined }>;
  /** A group's records and kept tombstones in the order (hash, key), after a cursor; `next` undefined at the end. */
  walkRecords(
    group: GroupKey,
    after: string | undefined,
    limit: number,
  ): Promise<{ rows: WalkRow[]; next: string | undefined }>;

  // ---- notes of a group (GROUP_ENTRY) ----
  note(group: GroupKey, name: Uint8Array): Uint8Array | undefined;
  notes(group: GroupKey, prefix: Uint8Array): Promise<{ name: Uint8Array; value: Uint8Array }[]>;

  // ---- blocks ----
  stage(group: GroupKey, id: Uint8Array): Staging;
  /** Whether a block's bytes are staged whole and not yet named. */
  staged(id: Uint8Array): { size: number; sums: Uint32Array } | undefined;
  /** Fills `target` with the bytes of a staged, finished block from `offset`: how a member that missed the stream gets them. */
  readStaged(id: Uint8Array, offset: number, target: Uint8Array): Promise<void>;
  findBlock(group: GroupKey, id: Uint8Array): BlockRow | undefined;
  /** The BLOCK entry itself, as `append` took it. */
  readBlockEntry(row: BlockRow): Promise<LogEntry>;
  /** Fills `target` with the block's bytes from `offset`, every 64 KiB chunk touched verified. @throws CORRUPT */
  readBlock(row: BlockRow, offset: number, target: Uint8Array): Promise<void>;
  /** A group's blocks in the order of ids, after a cursor. */
  walkBlocks(
    group: GroupKey,
    after: Uint8Array | undefined,
    limit: number,
  ): Promise<{ rows: BlockRow[]; next: Uint8Array | undefined }>;

  // ---- upkeep ----
  /** Proves that the disk writes: resolves after an `fdatasync` that began after the call. For a node that is idle. */
  proveDisk(): Promise<void>;
  /** Damage found by a read, by compaction or the scrubber. */
  onDamage(listener: (damage: Damage) => void): void;
  damage(): Promise<Damage[]>;
  /**
   * Settles damage in places that nothing here needs any more; `facts().damaged` and `suspect` forget it. The caller vouches
   * that this node holds what the other members hold: it was compared with them.
   *
   * @returns places settled
   */
  settleDamage(): Promise<number>;
  /** Small files beside the volumes, replaced whole and durably: `life`, `map`. */
  saveFile(name: string, bytes: Uint8Array): Promise<void>;
  loadFile(name: string): Promise<Uint8Array | undefined>;
  /** Rewrites the fullest-of-garbage volume, if any is worth it; true if one was rewritten. */
  compact(options?: { signal?: AbortSignal }): Promise<boolean>;
  /**
   * A meter for reading in the background: `take` resolves when so many bytes may be read, a little later while writers
   * wait for the disk. @throws CANCELLED once the signal is aborted or the store is closed
   */
  pace(options: { bytesPerSecond: number; signal?: AbortSignal }): Pace;
  /**
   * Reads and verifies everything once, at most `bytesPerSecond`.
   *
   * @param options.done  ids of volumes that need not be read again; those that were read are added
   */
  scrub(options: {
    bytesPerSecond: number;
    signal?: AbortSignal;
    done?: Set<number>;
  }): Promise<{ entries: number; damaged: number }>;
}
