import { type Clock, codeOf, type Log, messageOf, type Random, type Revision, sleep, WebdfsError } from '@webdfs/base';
import type { Change, Lease, MapContents, MapEntry, MapStore, Transaction } from '../map-store.ts';
import { checkLease, checkTransaction } from '../transaction-check.ts';
import type { EtcdAddress } from './address.ts';
import { entryOf, type Fields, fieldsIn, listIn, numberIn, revisionOf } from './answers.ts';
import { EtcdClient, type EtcdTls } from './client.ts';
import { base64, NEWEST_KEY, rangeOf, transactionOf } from './requests.ts';
import { changesOf } from './watch.ts';

export interface EtcdMapOptions {
  readonly address: EtcdAddress;
  readonly tls?: EtcdTls;
  /** The cluster's name; its keys begin with `/webdfs/<name>/`. */
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How long an answer is waited for; 2 000. */
  readonly timeoutMs?: number;
  /** How long a watch may lag behind what is known before another member is watched; 1 000. */
  readonly lagMs?: number;
}

const LAG_MS = 1_000;
const RETRY_MS = 200;
const PAGE_KEYS = 512;
const MAX_KEYS = 262_144;
const NAME = /^[A-Za-z0-9][\w.-]{0,62}$/;
const ASK_AGAIN = { repeatable: true } as const;
/** Lease ids are ours, because etcd's own do not fit a number; two that meet are told apart by trying again. */
const LEASE_TRIES = 4;
const LEASE_IDS = 2 ** 52;

interface Watcher {
  position: Revision;
  /** Ends the present connection. */
  readonly leave: () => void;
}

/**
 * The map store of clusters on several machines: keys in etcd, under a prefix of the cluster's own. Every answer that
 * says what is stored is linearizable. See `docs/formats/etcd.md` for the keys, and decision 13 for the way they are reached.
 */
class EtcdMapStore implements MapStore {
  readonly #client: EtcdClient;
  readonly #prefix: string;
  readonly #options: EtcdMapOptions;
  readonly #watchers = new Set<Watcher>();

  constructor(options: EtcdMapOptions) {
    this.#options = options;
    this.#client = new EtcdClient(options);
    this.#prefix = `/webdfs/${options.name}/`;
  }

  async read(): Promise<MapContents> {
    for (;;) {
      try {
        return await this.#readPages();
      } catch (error) {
        // compacted between two pages: from the beginning
        if (codeOf(error) !== 'COMPACTED') throw error;
      }
    }
  }

  async transact(transaction: Transaction): Promise<{ done: boolean; revision: Revision }> {
    checkTransaction(transaction);
    const answer = await this.#client.call('kv/txn', transactionOf(this.#prefix, transaction), { repeatable: false });
    const done = answer['succeeded'] === true;
    const wrote = done && transaction.write.length > 0;
    const revision = wrote
      ? revisionOf(answer)
      : newestOf(fieldsIn(listIn(answer, 'responses').at(-1) ?? {}, 'response_range'));
    this.#learned(revision);
    return { done, revision };
  }

  async *watch(after: Revision, signal: AbortSignal): AsyncGenerator<Change> {
    let seen = after;
    const stopped = (): boolean => signal.aborted || this.#client.closed.aborted;
    while (!stopped()) {
      try {
        for await (const change of this.#changes(seen, signal)) {
          if (stopped()) return;
          yield change;
          seen = change.revision;
        }
      } catch (error) {
        if (stopped()) return;
        if (codeOf(error) !== 'UNAVAILABLE') throw error;
        this.#options.log.debug('etcd.watch', { error: messageOf(error), revision: seen });
      }
      this.#client.turn();
      await sleep(this.#options.clock, RETRY_MS, signal).catch(() => undefined);
    }
  }

  async fresh(seen: Revision): Promise<Revision> {
    const answer = await this.#client.call('kv/range', { key: base64(this.#prefix + NEWEST_KEY) }, ASK_AGAIN);
    this.#checkAge(answer, seen);
    const newest = newestOf(answer);
    this.#learned(newest);
    return Math.max(seen, newest);
  }

  async lease(ttlMs: number): Promise<Lease> {
    checkLease(ttlMs);
    const { id, answer } = await this.#grant(ttlMs);
    return {
      id,
      ttlMs: numberIn(answer, 'TTL') * 1_000,
      renew: async () => {
        const kept = await this.#client.call('lease/keepalive', { ID: String(id) }, ASK_AGAIN);
        if (numberIn(fieldsIn(kept, 'result'), 'TTL') === 0) throw new WebdfsError('NOT_FOUND', `lease ${id} is gone`);
      },
      end: async () => {
        await this.#client.call('lease/revoke', { ID: String(id) }, ASK_AGAIN).catch((error: unknown) => {
          if (codeOf(error) !== 'NOT_FOUND') throw error;
        });
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
  }

  async #grant(ttlMs: number): Promise<{ id: number; answer: Fields }> {
    for (let tries = 1; ; tries++) {
      const id = 1 + Math.floor(this.#options.random.fraction() * (LEASE_IDS - 1));
      const request = { TTL: String(Math.ceil(ttlMs / 1_000)), ID: String(id) };
      try {
        return { id, answer: await this.#client.call('lease/grant', request, ASK_AGAIN) };
      } catch (error) {
        // taken: by chance, or by a first try whose answer was lost
        if (codeOf(error) !== 'CONFLICT' || tries === LEASE_TRIES) throw error;
      }
    }
  }

  async #readPages(): Promise<MapContents> {
    const { range_end } = rangeOf(this.#prefix);
    const entries: MapEntry[] = [];
    let revision: Revision = 0;
    let key = this.#prefix;
    for (;;) {
      const at = revision === 0 ? {} : { revision: String(revision) };
      const request = { key: base64(key), range_end, limit: String(PAGE_KEYS), ...at };
      const answer = await this.#client.call('kv/range', request, ASK_AGAIN);
      if (revision === 0) revision = revisionOf(answer);
      const page = listIn(answer, 'kvs').map((kv) => entryOf(kv, this.#prefix));
      for (const entry of page) if (entry.key !== NEWEST_KEY) entries.push(entry);
      if (answer['more'] !== true || page.length === 0) return { revision, entries };
      if (entries.length > MAX_KEYS)
        throw new WebdfsError('TOO_LARGE', `more than ${MAX_KEYS} keys below ${this.#prefix}`);
      key = `${this.#prefix}${page.at(-1)!.key}\0`;
    }
  }

  /** What one connection tells, until it breaks or falls behind. */
  async *#changes(seen: Revision, signal: AbortSignal): AsyncGenerator<Change> {
    const start = await this.#client.call('kv/range', { key: base64(this.#prefix + NEWEST_KEY) }, ASK_AGAIN);
    this.#checkAge(start, seen);
    const left = new AbortController();
    const watcher: Watcher = { position: seen, leave: () => left.abort() };
    this.#watchers.add(watcher);
    try {
      this.#learned(newestOf(start));
      const request = { create_request: { ...rangeOf(this.#prefix), start_revision: String(seen + 1) } };
      for await (const answer of this.#client.stream('watch', request, AbortSignal.any([left.signal, signal]))) {
        for (const change of changesOf(answer, this.#prefix)) {
          yield change;
          watcher.position = change.revision;
        }
      }
    } finally {
      this.#watchers.delete(watcher);
    }
  }

  /** There is a revision of ours: watches that do not tell of it in time are broken, and begun anew elsewhere. */
  #learned(newest: Revision): void {
    const { clock, lagMs = LAG_MS } = this.#options;
    for (const watcher of this.#watchers) {
      if (watcher.position >= newest) continue;
      clock.after(lagMs, () => {
        if (watcher.position < newest) watcher.leave();
      });
    }
  }

  /** @throws OLD_STORE if less is stored than was seen */
  #checkAge(answer: Fields, seen: Revision): void {
    const revision = revisionOf(answer);
    if (revision >= seen) return;
    throw new WebdfsError('OLD_STORE', `the map store is at revision ${revision}, revision ${seen} was seen`);
  }
}

/** The revision of the newest transaction, by an answer that looked at its key; 0 before the first. */
function newestOf(range: Fields): Revision {
  const [kv] = listIn(range, 'kvs');
  return kv === undefined ? 0 : numberIn(kv, 'mod_revision');
}

/**
 * A map store in etcd (3.4 or newer). Nothing is asked of etcd yet: its calls fail with UNAVAILABLE while it is away.
 *
 * @throws BAD_CONFIG for a name that cannot be part of a key
 */
export function openEtcdMapStore(options: EtcdMapOptions): MapStore {
  if (!NAME.test(options.name)) {
    throw new WebdfsError(
      'BAD_CONFIG',
      `a cluster's name has 1 to 63 letters, digits, and . _ - within, not ${options.name}`,
    );
  }
  return new EtcdMapStore(options);
}
