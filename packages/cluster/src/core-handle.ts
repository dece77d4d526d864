import { type Revision, WebdfsError } from '@webdfs/base';
import type { MapCore } from './map-core.ts';
import type { Change, Lease, MapContents, MapStore, Transaction } from './map-store.ts';

/** The promises of a map store over a core in this process. Closing it leaves the core open, and its leases to run out. */
export class CoreHandle implements MapStore {
  readonly #core: MapCore;
  readonly #holder: string;
  #closed = false;

  constructor(core: MapCore, holder: string) {
    this.#core = core;
    this.#holder = holder;
  }

  #open(): MapCore {
    if (this.#closed) throw new WebdfsError('UNAVAILABLE', 'this way to the map store is closed');
    return this.#core;
  }

  async read(): Promise<MapContents> {
    return this.#open().contents();
  }

  async transact(transaction: Transaction): Promise<{ done: boolean; revision: Revision }> {
    return await this.#open().transact(transaction);
  }

  watch(after: Revision, signal: AbortSignal): AsyncIterable<Change> {
    return this.#core.watch(after, signal);
  }

  async fresh(_seen: Revision): Promise<Revision> {
    return this.#open().revision;
  }

  async lease(ttlMs: number): Promise<Lease> {
    const id = this.#open().grant(ttlMs, this.#holder);
    return {
      id,
      ttlMs,
      renew: async () => this.#open().renew(id),
      end: async () => await this.#open().end(id),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
  }
}
