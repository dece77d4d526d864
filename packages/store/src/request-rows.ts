import { type Clock, toHex } from '@webdfs/base';
import { type Logged, requestIdOf } from './logged.ts';
import { copyOf } from './plain-bytes.ts';
import type { RowChange } from './row-index.ts';
import { packRequests, type RequestFacts, requestsRowKey, timeOfRequestsRow, unpackRequests } from './state-rows.ts';
import type { KnownRequest } from './store.ts';

/** How long the requests of applied entries are remembered across a restart. */
export const REQUESTS_KEPT_MS = 120_000;
/** Rows remembered for their removal; one row per batch, at most fifty batches a second. */
const MAX_ROWS = 65_536;

/** The `i` rows: one per index batch, with the request ids of all entries that the batch applied. */
export class RequestRows {
  readonly #clock: Clock;
  #gathered: RequestFacts[] = [];
  #counter = 0;
  /** Rows written and not yet expired, oldest first. */
  #rows: { timeMs: number; key: Uint8Array }[] = [];
  #known: KnownRequest[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Remembers the request of an entry that is being applied. */
  note(entry: Logged): void {
    const requestId = requestIdOf(entry.meta);
    if (requestId === undefined) return;
    const { policy, group, sequence, ballot } = entry;
    this.#gathered.push({ requestId, policy, group, sequence, ballot });
  }

  /** Adds the row of what was gathered to a batch, and takes expired rows away. */
  addTo(changes: RowChange[]): void {
    const now = this.#clock.now();
    let expired = 0;
    while (expired < this.#rows.length && this.#isOld(this.#rows[expired]!.timeMs, now)) expired++;
    expired = Math.max(expired, this.#rows.length - MAX_ROWS);
    for (const row of this.#rows.splice(0, expired)) changes.push({ key: row.key, value: undefined });
    if (this.#gathered.length === 0) return;
    this.#counter = (this.#counter + 1) >>> 0;
    const key = copyOf(requestsRowKey(now, this.#counter));
    changes.push({ key, value: packRequests(this.#gathered) });
    this.#rows.push({ timeMs: now, key });
    this.#gathered = [];
  }

  #isOld(timeMs: number, now: number): boolean {
    return now - timeMs > REQUESTS_KEPT_MS;
  }

  /** Whether a retry of the request may still come. */
  isYoung(entry: Logged): boolean {
    return !this.#isOld(entry.timeMs, this.#clock.now());
  }

  /** Takes over a row at start; an expired one goes with the next batch. */
  restore(key: Uint8Array, value: Uint8Array): void {
    const timeMs = timeOfRequestsRow(key);
    this.#rows.push({ timeMs, key });
    if (this.#isOld(timeMs, this.#clock.now())) return;
    for (const facts of unpackRequests(value)) this.#remember(facts, timeMs);
  }

  /** Remembers the request of an entry met at start: one that was applied again, or one that is pending. */
  met(entry: Logged): void {
    const requestId = requestIdOf(entry.meta);
    if (requestId === undefined || !this.isYoung(entry)) return;
    this.#remember(
      { requestId, policy: entry.policy, group: entry.group, sequence: entry.sequence, ballot: entry.ballot },
      entry.timeMs,
    );
  }

  #remember(facts: RequestFacts, timeMs: number): void {
    const { policy, group, sequence, ballot } = facts;
    this.#known.push({ requestId: toHex(facts.requestId), policy, group, sequence, ballot, timeMs });
  }

  /** What was known at start. */
  get known(): readonly KnownRequest[] {
    return this.#known;
  }
}
