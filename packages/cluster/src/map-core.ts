import { type Clock, codeOf, type Random, type Revision, WebdfsError } from '@webdfs/base';
import { ChangeHistory } from './change-history.ts';
import { KeySpace } from './key-space.ts';
import { LeaseTable } from './lease-table.ts';
import type { Change, MapContents, Transaction, Write } from './map-store.ts';
import { checkTransaction } from './transaction-check.ts';

export interface MapCoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Makes a revision durable before it is seen by anyone. DISK_FULL says that surely nothing was stored; anything else it
   * throws leaves that unknown and ends the store.
   */
  readonly persist?: (revision: Revision, writes: readonly Write[]) => Promise<void>;
  readonly history?: { readonly changes?: number; readonly bytes?: number };
}

const MAX_WAITING = 1_024;
/** When keys of an ended lease could not be removed because the disk is full. */
const REMOVE_AGAIN_MS = 1_000;

/**
 * The map store itself, without a disk or a socket: transactions one after another, leases, watches. Memory and embedded
 * are both this; the embedded one hands in how a revision becomes durable.
 *
 * One transaction is in flight at a time. That costs one sync per transaction, which is what the map's rare writes can
 * pay, and makes the log's tail unambiguous: at most the last entry can be torn.
 */
export class MapCore {
  readonly space: KeySpace = new KeySpace();
  readonly history: ChangeHistory;
  readonly #options: MapCoreOptions;
  readonly #leases: LeaseTable;
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #closed: WebdfsError | undefined;

  constructor(options: MapCoreOptions) {
    this.#options = options;
    this.history = new ChangeHistory(options.history);
    this.#leases = new LeaseTable(options.clock, options.random, (id) => this.#leaseEnded(id));
  }

  /** @throws UNAVAILABLE once the store has ended */
  contents(): MapContents {
    this.#checkOpen();
    return this.space.contents();
  }

  get revision(): Revision {
    this.#checkOpen();
    return this.space.revision;
  }

  /** @throws INVALID, TOO_LARGE, NOT_FOUND (a lease that is gone), BUSY, DISK_FULL, UNAVAILABLE (unknown whether it happened) */
  async transact(transaction: Transaction): Promise<{ done: boolean; revision: Revision }> {
    checkTransaction(transaction);
    return await this.#inTurn(() => this.#perform(transaction));
  }

  async *watch(after: Revision, signal: AbortSignal): AsyncGenerator<Change> {
    let seen = after;
    while (!signal.aborted) {
      for (const change of this.changesAfter(seen)) {
        if (signal.aborted) return;
        yield change;
        seen = change.revision;
      }
      await this.grown(seen, signal);
    }
  }

  /** @throws COMPACTED, OLD_STORE, UNAVAILABLE once the store has ended */
  changesAfter(revision: Revision): readonly Change[] {
    this.#checkOpen();
    return this.history.after(revision);
  }

  /** Resolves once there is something after `revision`, the signal aborts, or the store ends. */
  grown(revision: Revision, signal: AbortSignal): Promise<void> {
    if (this.#closed !== undefined) return Promise.resolve();
    return this.history.grown(revision, signal);
  }

  grant(ttlMs: number, holder: string): number {
    this.#checkOpen();
    return this.#leases.grant(ttlMs, holder);
  }

  renew(id: number): void {
    this.#checkOpen();
    this.#leases.renew(id);
  }

  /** Resolves once the lease's keys are gone. */
  async end(id: number): Promise<void> {
    this.#checkOpen();
    this.#leases.end(id);
    await this.#tail;
  }

  /** Ends all leases of one holder, such as a process that died. */
  async endHolder(holder: string): Promise<void> {
    this.#checkOpen();
    for (const id of this.#leases.heldBy(holder)) this.#leases.end(id);
    await this.#tail;
  }

  /** Removes the keys of leases that nobody holds: an earlier run's. */
  async endUnleased(): Promise<void> {
    await this.#inTurn(async () => {
      const writes: Write[] = [];
      for (const { key, lease } of this.space.entries()) {
        if (lease !== undefined && !this.#leases.has(lease)) writes.push({ type: 'delete', key });
      }
      if (writes.length > 0) await this.#commit(writes);
    });
  }

  /** Who holds the lease that a key is bound to. */
  holderOf(key: string): string | undefined {
    const lease = this.space.get(key)?.lease;
    return lease === undefined ? undefined : this.#leases.holderOf(lease);
  }

  /** Waits for what is under way, then answers nothing any more. */
  async close(): Promise<void> {
    await this.#tail;
    this.fail(new WebdfsError('UNAVAILABLE', 'the map store is closed'));
    await this.#tail;
  }

  /** Ends the store: nobody knows what became of the last write. */
  fail(error: WebdfsError): void {
    this.#closed ??= error;
    this.#leases.close();
    this.history.wake();
  }

  #checkOpen(): void {
    if (this.#closed !== undefined) {
      throw new WebdfsError('UNAVAILABLE', 'the map store does not answer', { cause: this.#closed });
    }
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#checkOpen();
    if (this.#waiting >= MAX_WAITING) throw new WebdfsError('BUSY', `${MAX_WAITING} transactions wait`);
    this.#waiting++;
    const turn = this.#tail.then(work);
    this.#tail = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#waiting--;
    }
  }

  async #perform({ compare, write }: Transaction): Promise<{ done: boolean; revision: Revision }> {
    this.#checkOpen();
    if (!compare.every((each) => this.space.holds(each))) return { done: false, revision: this.space.revision };
    const effective = this.space.effective(write);
    for (const each of effective) {
      if (each.type === 'put' && each.lease !== undefined && !this.#leases.has(each.lease)) {
        throw new WebdfsError('NOT_FOUND', `lease ${each.lease} is gone`);
      }
    }
    if (effective.length > 0) await this.#commit(effective);
    return { done: true, revision: this.space.revision };
  }

  async #commit(writes: readonly Write[]): Promise<void> {
    const revision = this.space.revision + 1;
    try {
      await this.#options.persist?.(revision, writes);
    } catch (error) {
      if (codeOf(error) === 'DISK_FULL') throw error;
      const failure = new WebdfsError('UNAVAILABLE', `revision ${revision} may or may not be stored`, { cause: error });
      this.fail(failure);
      throw failure;
    }
    this.history.push(this.space.apply(revision, writes));
    // a lease that ended while this was being stored could not yet take its keys away
    for (const write of writes) {
      if (write.type === 'put' && write.lease !== undefined && !this.#leases.has(write.lease)) {
        this.#leaseEnded(write.lease);
      }
    }
  }

  /** Removes the keys of a lease that ended; in turn, like every write. */
  #leaseEnded(id: number): void {
    if (this.#closed !== undefined) return;
    const turn = this.#tail.then(async () => {
      const writes: Write[] = [];
      for (const entry of this.space.entries()) if (entry.lease === id) writes.push({ type: 'delete', key: entry.key });
      if (writes.length > 0 && this.#closed === undefined) await this.#commit(writes);
    });
    this.#tail = turn.catch((error) => {
      if (codeOf(error) === 'DISK_FULL') this.#options.clock.after(REMOVE_AGAIN_MS, () => this.#leaseEnded(id));
    });
  }
}
