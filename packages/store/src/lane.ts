import { codeOf, type Clock, type DiskFile, messageOf, type Log, sleep, type Timer, WebdfsError } from '@webdfs/base';
import { KIND } from './entry.ts';
import { LaneWriter } from './lane-writer.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_ENTRIES, MAX_QUEUE_BYTES, MAX_QUEUE_ENTRIES } from './limits.ts';
import { type Logged, syncMark } from './logged.ts';
import type { Residency } from './residency.ts';
import type { LaneNumber } from './volume-format.ts';
import type { Volume, VolumeTable } from './volume-table.ts';

/** An idle lane proves its last commit after so long. */
const IDLE_PROOF_MS = 1_000;
const RECENT_COMMITS = 256;
/** How long a full disk is given before the seal of a broken volume is tried again. */
const SEAL_AGAIN_MS = 1_000;

export interface LaneOptions {
  readonly lane: LaneNumber;
  readonly volumes: VolumeTable;
  readonly residency: Residency;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxVolumeBytes: number;
  /** Undefined, or a promise for which the next commit waits: the overlay is full. */
  readonly hold: () => Promise<void> | undefined;
  /** Entries that one `fdatasync` has made durable, in order; their answers are for the receiver to give. */
  readonly committed: (entries: readonly Logged[]) => void;
  /** A write found the disk full. */
  readonly full: () => Promise<void>;
  /** The disk failed: the store must stop. Nothing of this lane is answered any more but with this error. */
  readonly fatal: (error: WebdfsError) => void;
}

/**
 * One append-only stream of entries with group commit (store, section 4). What arrives while a commit is in flight, or
 * in the same turn of the event loop, goes with the next one: one write, one `fdatasync`, no timers.
 *
 * P1: an entry is answered only after an `fdatasync` that began after its last byte was written. P2: one writer per file,
 * one commit in flight. P3: `durable` in a head is never above a synced offset. P4: no place is written twice.
 */
export class Lane {
  readonly #options: LaneOptions;
  readonly #writer: LaneWriter;
  #queue: Logged[] = [];
  #queueBytes = 0;
  /** Callers beyond the queue's bounds, in order. */
  readonly #waiting: Logged[] = [];
  #volume: Volume | undefined;
  /** Where the next entry goes; the end of what was written. */
  #position = 0;
  /** A write to this volume failed: it must be sealed before anything else is written. */
  #broken: Volume | undefined;
  /** What that write was to write: a crash may bring it back until the volume is sealed, so its refusal waits for that. */
  #doubtful: readonly Logged[] = [];
  #running: Promise<void> | undefined;
  #failure: WebdfsError | undefined;
  #closing = false;
  #idle: Timer | undefined;
  #lastSyncMs = -1;
  readonly #recent: number[] = [];
  readonly counters = { commits: 0, entries: 0, bytes: 0, syncMs: 0, marks: 0, refused: 0 };

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#writer = new LaneWriter(options);
  }

  /** The volume that is being written, if any. */
  get volume(): Volume | undefined {
    return this.#volume ?? this.#broken;
  }

  /** `Clock.monotonic()` of the last successful `fdatasync`; −1 before the first. */
  get lastSyncMs(): number {
    return this.#lastSyncMs;
  }

  /** 99th percentile of recent commits, ms; 0 before the first. */
  get commitMs(): number {
    const order = this.#recent.toSorted((a, b) => a - b);
    return order[Math.min(order.length - 1, Math.floor(order.length * 0.99))] ?? 0;
  }

  /** Takes an entry; its `answer` hears what becomes of it. Beyond the bounds of the queue it waits its turn outside. */
  push(entry: Logged): void {
    if (this.#failure !== undefined) {
      entry.answer?.failed(this.#failure);
      return;
    }
    if (this.#waiting.length > 0 || this.#isFull()) this.#waiting.push(entry);
    else this.#enqueue(entry);
    this.#idle?.cancel();
    this.#idle = undefined;
    this.#running ??= this.#run();
  }

  #isFull(): boolean {
    return this.#queueBytes >= MAX_QUEUE_BYTES || this.#queue.length >= MAX_QUEUE_ENTRIES;
  }

  #enqueue(entry: Logged): void {
    this.#queue.push(entry);
    this.#queueBytes += entry.entryBytes;
  }

  /** Resolves when all that was pushed so far has been answered. */
  async drain(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Drains, then seals the volume; one that holds nothing is removed. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.drain();
    this.#idle?.cancel();
    const volume = this.#volume;
    this.#volume = undefined;
    if (volume === undefined || this.#failure !== undefined) return;
    await this.#options.volumes.seal(volume, this.#position);
    this.#options.volumes.release(volume);
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    await new Promise<void>((resolve) => clock.soon(resolve));
    while (this.#queue.length > 0 && this.#failure === undefined) {
      const held = this.#options.hold();
      if (held !== undefined) await held;
      try {
        const volume = await this.#ready();
        const entries = this.#take();
        if (entries.length > 0 && this.#failure === undefined) await this.#commit(volume, entries);
      } catch (error) {
        await this.#refuse(error);
      }
      while (this.#waiting.length > 0 && !this.#isFull()) this.#enqueue(this.#waiting.shift()!);
    }
    this.#running = undefined;
  }

  /** The volume to write to: seals one that is full or broken, makes one if there is none. */
  async #ready(): Promise<Volume> {
    const { volumes, lane, maxVolumeBytes } = this.#options;
    if (this.#broken !== undefined) await this.#sealBroken();
    if (this.#volume !== undefined && this.#position >= maxVolumeBytes) {
      // P5: every commit was synced, so nothing below the end is doubtful
      await volumes.seal(this.#volume, this.#position);
      volumes.release(this.#volume);
      this.#volume = undefined;
    }
    if (this.#volume === undefined) {
      this.#volume = await volumes.create(lane);
      this.#position = this.#volume.size;
    }
    return this.#volume;
  }

  #take(): Logged[] {
    let bytes = 0;
    let count = 0;
    while (count < this.#queue.length && count < MAX_BATCH_ENTRIES) {
      const next = this.#queue[count]!.entryBytes;
      if (count > 0 && bytes + next > MAX_BATCH_BYTES) break;
      bytes += next;
      count += 1;
    }
    this.#queueBytes -= bytes;
    return this.#queue.splice(0, count);
  }

  async #commit(volume: Volume, entries: Logged[]): Promise<void> {
    const { clock, residency, volumes } = this.#options;
    const file = volume.file!;
    const began = clock.monotonic();
    const start = this.#position;
    let end: number;
    try {
      end = await this.#writer.write(volume, entries, start);
    } catch (error) {
      this.#volume = undefined;
      this.#broken = volume;
      this.#doubtful = entries;
      throw error;
    }
    for (const entry of entries) entry.answer?.written?.();
    const written = clock.monotonic();
    await this.#sync(file, entries);
    const now = clock.monotonic();
    this.#lastSyncMs = now;
    this.#position = end;
    volume.size = end;
    volume.durable = end;
    volume.entries += entries.length;
    for (const entry of entries) {
      entry.durable = true;
      entry.durableMs = now;
      volume.unsettled.push(entry);
    }
    volume.reached(end);
    volumes.touch(volume);
    // what was written directly is not in the cache
    if (volume.direct === undefined) residency.touch(volume.id, start, end - start);
    this.#count(entries, end - start, now - written, now - began);
    this.#handOver(entries);
    this.#proveWhenIdle(entries);
  }

  #handOver(entries: readonly Logged[]): void {
    try {
      this.#options.committed(entries);
    } catch (error) {
      const failure = this.#die(error);
      for (const entry of entries) entry.answer?.failed(failure);
      throw failure;
    }
  }

  /** @throws after a failure the lane is dead: the kernel may have dropped the pages and say that they are clean */
  async #sync(file: DiskFile, entries: readonly Logged[]): Promise<void> {
    try {
      await file.datasync();
    } catch (error) {
      const failure = this.#die(error);
      for (const entry of entries) entry.answer?.failed(failure);
      throw failure;
    }
  }

  #die(error: unknown): WebdfsError {
    if (this.#failure !== undefined) return this.#failure;
    const failure = new WebdfsError('DISK_FAILED', 'the store has stopped', { cause: error });
    this.#failure = failure;
    this.#options.fatal(failure);
    return failure;
  }

  /** Stops the lane from outside: what is queued is answered with `error`. */
  stop(error: WebdfsError): void {
    this.#failure ??= error;
    this.#idle?.cancel();
    this.#rejectQueued(error);
  }

  /**
   * What was queued behind a failed batch is refused with it: a group's entries must not get gaps. The batch itself is
   * refused once a seal says that none of it counts, however long the disk stays full.
   */
  async #refuse(error: unknown): Promise<void> {
    const { log, lane, full, clock } = this.#options;
    log.error('append refused', { lane, error: messageOf(error) });
    if (codeOf(error) === 'DISK_FULL')
      await full().catch((failed: unknown) => log.warn('no space made', { error: messageOf(failed) }));
    else if (this.#broken === undefined) this.#die(error);
    this.#rejectQueued(this.#failure ?? error);
    while (this.#broken !== undefined && this.#failure === undefined && !this.#closing) {
      try {
        await this.#sealBroken();
      } catch (sealing) {
        log.error('volume cannot be sealed', { lane, error: messageOf(sealing) });
        if (codeOf(sealing) === 'DISK_FULL') await sleep(clock, SEAL_AGAIN_MS);
        else this.#die(sealing);
      }
    }
    if (this.#doubtful.length === 0) return;
    // with what came meanwhile: it is behind this batch, too
    const batch = this.#doubtful;
    this.#doubtful = [];
    this.#rejectQueued(this.#failure ?? error, batch);
  }

  async #sealBroken(): Promise<void> {
    const { volumes } = this.#options;
    const volume = this.#broken!;
    await volumes.seal(volume, volume.durable);
    volumes.release(volume);
    this.#broken = undefined;
  }

  #rejectQueued(error: unknown, batch: readonly Logged[] = []): void {
    const refused = [...batch, ...this.#queue, ...this.#waiting];
    this.#queue = [];
    this.#queueBytes = 0;
    this.#waiting.length = 0;
    this.counters.refused += refused.length;
    for (const entry of refused) entry.answer?.failed(error);
  }

  #count(entries: readonly Logged[], bytes: number, syncMs: number, wholeMs: number): void {
    const { counters } = this;
    counters.commits += 1;
    counters.entries += entries.length;
    counters.bytes += bytes;
    counters.syncMs += syncMs;
    this.#recent.push(wholeMs);
    if (this.#recent.length > RECENT_COMMITS) this.#recent.shift();
  }

  /** The last commit of a busy spell has nothing after it that says it was synced: a mark a second later does. */
  #proveWhenIdle(entries: readonly Logged[]): void {
    if (this.#queue.length > 0 || entries.every((entry) => entry.kind === KIND.SYNC_MARK)) return;
    const { clock } = this.#options;
    this.#idle?.cancel();
    this.#idle = clock.after(IDLE_PROOF_MS, () => {
      this.#idle = undefined;
      this.counters.marks += 1;
      this.push(syncMark(clock.now()));
    });
  }
}
