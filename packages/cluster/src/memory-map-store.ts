import { type Clock, type Random, type Revision, SeededRandom } from '@webdfs/base';
import { CoreHandle } from './core-handle.ts';
import { MapCore } from './map-core.ts';
import type { Change, Lease, MapContents, MapStore, Transaction } from './map-store.ts';

/**
 * A map store in this process's memory: for tests, simulation, and stores that are not meant to last. Several parties
 * share one through `connect`.
 */
export class MemoryMapStore implements MapStore {
  readonly #core: MapCore;
  readonly #own: CoreHandle;
  #connections = 0;

  constructor(
    clock: Clock,
    options: {
      readonly random?: Random;
      readonly history?: { readonly changes?: number; readonly bytes?: number };
    } = {},
  ) {
    this.#core = new MapCore({
      clock,
      random: options.random ?? new SeededRandom(1),
      ...(options.history === undefined ? {} : { history: options.history }),
    });
    this.#own = new CoreHandle(this.#core, 'own');
  }

  /** Another party's way to the same store. */
  connect(): MapStore {
    this.#connections++;
    return new CoreHandle(this.#core, `connection ${this.#connections}`);
  }

  read(): Promise<MapContents> {
    return this.#own.read();
  }

  transact(transaction: Transaction): Promise<{ done: boolean; revision: Revision }> {
    return this.#own.transact(transaction);
  }

  watch(after: Revision, signal: AbortSignal): AsyncIterable<Change> {
    return this.#own.watch(after, signal);
  }

  fresh(seen: Revision): Promise<Revision> {
    return this.#own.fresh(seen);
  }

  lease(ttlMs: number): Promise<Lease> {
    return this.#own.lease(ttlMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#core.close();
  }
}
