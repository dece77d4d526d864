import { type Clock, type Random, type Timer, WebdfsError } from '@webdfs/base';
import { checkLease } from './transaction-check.ts';

interface HeldLease {
  readonly ttlMs: number;
  readonly holder: string;
  /** By the monotonic clock. */
  dueMs: number;
  timer: Timer;
}

const MAX_LEASES = 4_096;
/** A timer this much too late says that this process stood still: renewals may wait unread, so all leases start again. */
const STOOD_STILL_MS = 1_000;

/** Leases by this process's monotonic clock. What ending one means is the owner's business. */
export class LeaseTable {
  readonly #clock: Clock;
  readonly #onEnd: (id: number) => void;
  readonly #leases = new Map<number, HeldLease>();
  /** Ids of another run of the store must not be taken for ours. */
  readonly #base: number;
  #count = 0;

  constructor(clock: Clock, random: Random, onEnd: (id: number) => void) {
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#base = Math.floor(random.fraction() * 2 ** 31) * 2 ** 21;
  }

  has(id: number): boolean {
    return this.#leases.has(id);
  }

  /** @throws INVALID for a time out of bounds, BUSY when there are too many */
  grant(ttlMs: number, holder: string): number {
    checkLease(ttlMs);
    if (this.#leases.size >= MAX_LEASES) throw new WebdfsError('BUSY', `${MAX_LEASES} leases are held`);
    this.#count++;
    const id = this.#base + this.#count;
    this.#leases.set(id, { ttlMs, holder, dueMs: this.#clock.monotonic() + ttlMs, timer: this.#timer(id, ttlMs) });
    return id;
  }

  /** @throws NOT_FOUND if it is gone */
  renew(id: number): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) throw new WebdfsError('NOT_FOUND', `lease ${id} is gone`);
    lease.dueMs = this.#clock.monotonic() + lease.ttlMs;
  }

  /** Ends a lease at once; nothing happens if it is gone. */
  end(id: number): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    lease.timer.cancel();
    this.#leases.delete(id);
    this.#onEnd(id);
  }

  holderOf(id: number): string | undefined {
    return this.#leases.get(id)?.holder;
  }

  heldBy(holder: string): number[] {
    return [...this.#leases].filter(([, lease]) => lease.holder === holder).map(([id]) => id);
  }

  /** Stops all timers; nobody is told. */
  close(): void {
    for (const { timer } of this.#leases.values()) timer.cancel();
    this.#leases.clear();
  }

  #timer(id: number, ms: number): Timer {
    const due = this.#clock.monotonic() + ms;
    return this.#clock.after(ms, () => this.#look(id, due));
  }

  #look(id: number, expectedMs: number): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return;
    const now = this.#clock.monotonic();
    if (now - expectedMs > STOOD_STILL_MS) lease.dueMs = now + lease.ttlMs;
    if (lease.dueMs <= now) return this.end(id);
    lease.timer = this.#timer(id, lease.dueMs - now);
  }
}
