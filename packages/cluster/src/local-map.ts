import {
  type Clock,
  codeOf,
  type GroupKey,
  type Log,
  messageOf,
  type Revision,
  sleep,
  WebdfsError,
} from '@webdfs/base';
import type { MapStore, Transaction } from './map-store.ts';
import { type Affected, MapSnapshot } from './map-view.ts';
import type { LocalMap, MapView } from './view.ts';

type Listener = (view: MapView, groups: readonly GroupKey[] | 'all') => void;

/** A local map that follows a store until it is disposed of. */
export interface FollowedMap extends LocalMap, AsyncDisposable {
  readonly view: MapSnapshot;
  /** A view that shows everything that had been written when this was called. @throws UNAVAILABLE */
  readFresh(): Promise<MapView>;
  /** Resolves when the store turns out to be older than what was seen of it: OLD_STORE. Never rejects. */
  readonly failed: Promise<WebdfsError>;
}

export interface FollowOptions {
  /** How long `readThrough` waits; 2 000. */
  readonly readThroughMs?: number;
  /** How often all keys are read and compared, for stores whose watch may miss something; 600 000. */
  readonly auditMs?: number;
}

const READ_THROUGH_MS = 2_000;
const AUDIT_MS = 600_000;
const RETRY_MS = 200;
const MAX_WAITING = 16_384;

class Follower implements FollowedMap {
  readonly #store: MapStore;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #readThroughMs: number;
  readonly #auditMs: number;
  #snapshot: MapSnapshot;
  readonly #listeners = new Set<Listener>();
  readonly #waiting = new Set<{ readonly revision: Revision; readonly wake: () => void }>();
  readonly #closed = new AbortController();
  readonly #failure = Promise.withResolvers<WebdfsError>();
  readonly #loop: Promise<void>;

  constructor(store: MapStore, snapshot: MapSnapshot, clock: Clock, log: Log, options: FollowOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#readThroughMs = options.readThroughMs ?? READ_THROUGH_MS;
    this.#auditMs = options.auditMs ?? AUDIT_MS;
    this.#snapshot = snapshot;
    this.#loop = this.#follow();
  }

  get view(): MapSnapshot {
    return this.#snapshot;
  }

  get failed(): Promise<WebdfsError> {
    return this.#failure.promise;
  }

  onChange(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  readThrough(revision: Revision): Promise<MapView> {
    if (this.#snapshot.revision >= revision) return Promise.resolve(this.#snapshot);
    if (this.#closed.signal.aborted || this.#waiting.size >= MAX_WAITING) return Promise.reject(this.#late(revision));
    return new Promise((resolve, reject) => {
      const wake = (): void => {
        timer.cancel();
        this.#waiting.delete(waiting);
        if (this.#snapshot.revision >= revision) resolve(this.#snapshot);
        else reject(this.#late(revision));
      };
      const waiting = { revision, wake };
      const timer = this.#clock.after(this.#readThroughMs, wake);
      this.#waiting.add(waiting);
    });
  }

  async readFresh(): Promise<MapView> {
    return await this.readThrough(await this.#store.fresh(this.#snapshot.revision));
  }

  transact(transaction: Transaction): Promise<{ readonly done: boolean; readonly revision: Revision }> {
    return this.#store.transact(transaction);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    for (const { wake } of this.#waiting) wake();
    await this.#loop;
  }

  #late(revision: Revision): WebdfsError {
    return new WebdfsError(
      'UNAVAILABLE',
      `the map is at revision ${this.#snapshot.revision}, ${revision} did not come in time`,
    );
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      const audit = new AbortController();
      const timer = this.#clock.after(this.#auditMs, () => audit.abort());
      try {
        const until = AbortSignal.any([signal, audit.signal]);
        for await (const change of this.#store.watch(this.#snapshot.revision, until)) {
          if (signal.aborted) return;
          const { snapshot, affected } = this.#snapshot.next(change);
          this.#show(snapshot, affected);
        }
        if (audit.signal.aborted) await this.#readAgain();
      } catch (error) {
        await this.#recover(error);
      } finally {
        timer.cancel();
      }
    }
  }

  async #recover(error: unknown): Promise<void> {
    const code = codeOf(error);
    // what is not ours to name is a bug: nobody carries on after it
    if (code === undefined) throw error;
    if (code === 'OLD_STORE') return this.#fail(error as WebdfsError);
    try {
      if (code === 'COMPACTED' || code === 'CORRUPT') return await this.#readAgain();
    } catch (again) {
      if (codeOf(again) === undefined) throw again;
      this.#log.error('map.unreadable', { error: messageOf(again), revision: this.#snapshot.revision });
    }
    await sleep(this.#clock, RETRY_MS, this.#closed.signal).catch(() => undefined);
  }

  async #readAgain(): Promise<void> {
    const contents = await this.#store.read();
    if (contents.revision < this.#snapshot.revision) {
      const message = `the map store is at revision ${contents.revision}, revision ${this.#snapshot.revision} was seen`;
      return this.#fail(new WebdfsError('OLD_STORE', message));
    }
    const missed = contents.revision === this.#snapshot.revision && !this.#snapshot.shows(contents);
    if (missed) this.#log.error('map.missed', { revision: contents.revision });
    if (missed || contents.revision > this.#snapshot.revision) this.#show(MapSnapshot.of(contents), 'all');
  }

  #fail(error: WebdfsError): void {
    this.#log.error('map.old', { error: error.message });
    this.#closed.abort();
    this.#failure.resolve(error);
    for (const { wake } of this.#waiting) wake();
  }

  #show(snapshot: MapSnapshot, affected: Affected): void {
    this.#snapshot = snapshot;
    for (const { revision, wake } of this.#waiting) if (snapshot.revision >= revision) wake();
    if (!snapshot.founded) return;
    for (const listener of this.#listeners) listener(snapshot, affected);
  }
}

/**
 * A node's own copy of the map: read once, then kept up by the store's watch; read again when it was away for too long.
 * What it shows is always a state that the map had, never a mixture.
 *
 * @throws NOT_FOUND if the store holds no cluster yet, UNAVAILABLE if it does not answer, CORRUPT
 */
export async function followMap(
  store: MapStore,
  clock: Clock,
  log: Log,
  options: FollowOptions = {},
): Promise<FollowedMap> {
  const snapshot = MapSnapshot.of(await store.read());
  if (!snapshot.founded) throw new WebdfsError('NOT_FOUND', 'the map store holds no cluster');
  return new Follower(store, snapshot, clock, log, options);
}
