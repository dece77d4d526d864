import type { Clock, Timer } from '@webdfs/base';
import { ROW } from './index-rows.ts';
import { MAX_BATCH_ROWS, MAX_OVERLAY_BYTES } from './limits.ts';
import type { LocationCache } from './location-cache.ts';
import type { RowChange, RowIndex } from './row-index.ts';

/** Rough cost of a row in memory beside its bytes. */
const ROW_OVERHEAD_BYTES = 160;
/** A batch starts when so many rows wait, or so long after the first. */
const GATHER_ROWS = 4_000;
const GATHER_MS = 50;

/** A row's key as the name it has in a `Map`. */
export function rowName(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1');
}

type Rows = Map<string, RowChange>;
const NO_ROWS: Rows = new Map();

/**
 * Decided rows on their way into the index. Every read asks here first, so a row is seen from the moment it is put (P8).
 * One batch is in flight, what gathers meanwhile is the next; batches are unsynced unless someone asks.
 */
export class Overlay {
  readonly #index: RowIndex;
  readonly #clock: Clock;
  /** Rows that go with each batch as they are then: of groups, volumes, requests. */
  readonly #addState: (changes: RowChange[]) => void;
  readonly #onFailed: (error: unknown) => void;
  readonly #cache: LocationCache | undefined;
  #next: Rows = new Map();
  #current: Rows = NO_ROWS;
  #bytes = 0;
  #currentBytes = 0;
  /** State alone has changed: there is something to write though no row waits. */
  #stateChanged = false;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  /** Batches built, and batches written. */
  #built = 0;
  #written = 0;
  #synced = 0;
  #syncWanted = false;
  #waiting: (() => void)[] = [];
  #failure: unknown;

  constructor(options: {
    index: RowIndex;
    clock: Clock;
    addState: (changes: RowChange[]) => void;
    onFailed: (error: unknown) => void;
    /** Of record rows: told of every change before anybody can ask. */
    cache?: LocationCache;
  }) {
    this.#index = options.index;
    this.#clock = options.clock;
    this.#addState = options.addState;
    this.#onFailed = options.onFailed;
    this.#cache = options.cache;
  }

  /** Bytes of rows that are not in the index yet. */
  get bytes(): number {
    return this.#bytes + this.#currentBytes;
  }

  get batches(): number {
    return this.#built;
  }

  /** The row as of now. The bytes are not the caller's to change. */
  get(key: Uint8Array): Uint8Array | undefined {
    const cache = key[0] === ROW.RECORD ? this.#cache : undefined;
    const cached = cache?.get(key);
    if (cached !== undefined) return cached;
    if (this.#next.size > 0 || this.#current.size > 0) {
      const name = rowName(key);
      const change = this.#next.get(name) ?? this.#current.get(name);
      if (change !== undefined) return change.value;
    }
    const value = this.#index.get(key);
    if (value !== undefined) cache?.set(key, value);
    return value;
  }

  /** Puts a row, or removes it. Key and value are the overlay's from now on. */
  put(key: Uint8Array, value: Uint8Array | undefined): void {
    const name = rowName(key);
    if (!this.#next.has(name)) this.#bytes += 2 * key.length + ROW_OVERHEAD_BYTES;
    this.#bytes += value?.length ?? 0;
    this.#next.set(name, { key, value });
    if (key[0] === ROW.RECORD) {
      if (value === undefined) this.#cache?.delete(key);
      else this.#cache?.set(key, value);
    }
    this.#schedule();
  }

  /** Group or volume state has changed and belongs into the next batch. */
  touch(): void {
    this.#stateChanged = true;
    this.#schedule();
  }

  /** The next batch is to be synced. */
  wantSync(): void {
    this.#syncWanted = true;
    this.touch();
  }

  #schedule(): void {
    if (this.#running !== undefined || this.#failure !== undefined) return;
    if (this.#next.size >= GATHER_ROWS) this.#start();
    else {
      this.#timer ??= this.#clock.after(GATHER_MS, () => {
        this.#timer = undefined;
        if (this.#running === undefined && this.#failure === undefined) this.#start();
      });
    }
  }

  #start(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#current = this.#next;
    this.#currentBytes = this.#bytes;
    this.#next = new Map();
    this.#bytes = 0;
    this.#stateChanged = false;
    const changes = [...this.#current.values()];
    this.#addState(changes);
    const sync = this.#syncWanted;
    this.#syncWanted = false;
    const batch = ++this.#built;
    this.#running = this.#index.batch(changes, { sync }).then(
      () => this.#finished(batch, sync),
      (error: unknown) => this.#broke(error),
    );
  }

  #finished(batch: number, sync: boolean): void {
    this.#written = batch;
    if (sync) this.#synced = batch;
    this.#current = NO_ROWS;
    this.#currentBytes = 0;
    this.#running = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
    if (this.#next.size >= GATHER_ROWS) this.#start();
    else if (this.#next.size > 0 || this.#stateChanged) this.#schedule();
  }

  #broke(error: unknown): void {
    this.#failure = error;
    this.#running = undefined;
    this.#onFailed(error);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  /** Resolves when all rows put so far are in the index. */
  async settled(): Promise<void> {
    if (this.#next.size === 0 && !this.#stateChanged && this.#running === undefined) return this.#check();
    const target = this.#next.size > 0 || this.#stateChanged ? this.#built + 1 : this.#built;
    while (this.#written < target) {
      this.#check();
      if (this.#running === undefined) this.#start();
      await this.#running;
    }
    this.#check();
  }

  /** Resolves when all rows put so far, and group and volume state as of now, are durable in the index. */
  async sync(): Promise<void> {
    this.wantSync();
    const target = this.#built + 1;
    while (this.#synced < target) {
      this.#check();
      if (this.#running === undefined) this.#start();
      await this.#running;
    }
  }

  /** Undefined if there is room for more rows, else a promise of it: who appends waits (`MAX_OVERLAY_BYTES`). */
  room(): Promise<void> | undefined {
    if (this.#failure !== undefined || this.bytes < MAX_OVERLAY_BYTES) return undefined;
    if (this.#running === undefined) this.#start();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Undefined while a scan may put more rows, else a promise: keeps the batches of a recovery small. */
  pace(): Promise<void> | undefined {
    return this.#next.size < MAX_BATCH_ROWS ? undefined : this.settled();
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}
