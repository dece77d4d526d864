import { type Clock, type Revision, type SeededRandom, sleep, WebdfsError } from '@webdfs/base';
import type { Change, Lease, MapContents, MapStore, Transaction } from '@webdfs/cluster';

/** What stands between a machine and the map store; changed by hand. */
export interface MapRoad {
  /** Requests, or answers, do not arrive. */
  requestsLost: boolean;
  answersLost: boolean;
  /** Changes do not arrive; requests are answered. */
  watchStuck: boolean;
  latencyMs: number;
}

/** How long somebody waits for an answer that does not come. */
const PATIENCE_MS = 2_000;
/** How often a watch that is stuck looks whether it still is. */
const LOOK_MS = 50;

/**
 * One process's way to a map store somewhere else: everything takes time, gets lost on either way, and ends with the
 * process. An answer that got lost leaves unknown whether the request was done, as it would be.
 */
export class MapAccess implements MapStore {
  readonly #store: MapStore;
  readonly #road: MapRoad;
  readonly #clock: Clock;
  readonly #random: SeededRandom;

  constructor(store: MapStore, road: MapRoad, clock: Clock, random: SeededRandom) {
    this.#store = store;
    this.#road = road;
    this.#clock = clock;
    this.#random = random;
  }

  async #travel(): Promise<void> {
    await sleep(this.#clock, this.#random.fraction() * this.#road.latencyMs);
  }

  async #lost(): Promise<never> {
    await sleep(this.#clock, PATIENCE_MS);
    throw new WebdfsError('UNAVAILABLE', 'the map store does not answer');
  }

  async #ask<T>(work: () => Promise<T>): Promise<T> {
    await this.#travel();
    if (this.#road.requestsLost) return await this.#lost();
    const outcome = await work().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    if (this.#road.answersLost) return await this.#lost();
    await this.#travel();
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  read(): Promise<MapContents> {
    return this.#ask(() => this.#store.read());
  }

  transact(transaction: Transaction): Promise<{ readonly done: boolean; readonly revision: Revision }> {
    return this.#ask(() => this.#store.transact(transaction));
  }

  async *watch(after: Revision, signal: AbortSignal): AsyncGenerator<Change> {
    for await (const change of this.#store.watch(after, signal)) {
      await this.#travel();
      while (this.#road.watchStuck || this.#road.answersLost) {
        await sleep(this.#clock, LOOK_MS, signal).catch(() => undefined);
        if (signal.aborted) return;
      }
      yield change;
    }
  }

  fresh(seen: Revision): Promise<Revision> {
    return this.#ask(() => this.#store.fresh(seen));
  }

  async lease(ttlMs: number): Promise<Lease> {
    const lease = await this.#ask(() => this.#store.lease(ttlMs));
    return {
      id: lease.id,
      ttlMs: lease.ttlMs,
      renew: () => this.#ask(() => lease.renew()),
      end: () => this.#ask(() => lease.end()),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }
}
