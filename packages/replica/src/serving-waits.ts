import { type Clock, type GroupKey, groupNumber, type Timer, WebdfsError } from '@webdfs/base';
import type { ReplicaParameters } from './parameters.ts';

interface Wait {
  readonly wake: () => void;
  readonly timer: Timer;
}

/**
 * Requests that came while their group was being taken over: they go on when it is served, when the map changed, or when
 * they have waited long enough; whoever asked then sees what is the matter. Bounded per group and per node.
 */
export class ServingWaits {
  readonly #clock: Clock;
  readonly #limits: Pick<ReplicaParameters, 'waitingPerGroup' | 'waitingPerNode'>;
  readonly #groups = new Map<number, Set<Wait>>();
  #count = 0;

  constructor(clock: Clock, limits: Pick<ReplicaParameters, 'waitingPerGroup' | 'waitingPerNode'>) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get count(): number {
    return this.#count;
  }

  /** Resolves at the group's next change, after `ms` at the latest. @throws BUSY if too many wait already */
  wait(group: GroupKey, ms: number): Promise<void> {
    const number = groupNumber(group);
    const waits = this.#groups.get(number) ?? new Set<Wait>();
    if (waits.size >= this.#limits.waitingPerGroup || this.#count >= this.#limits.waitingPerNode) {
      const message = `${waits.size} requests wait for the group, ${this.#count} on the node`;
      throw new WebdfsError('BUSY', message, { retryAfterMs: 100 });
    }
    this.#groups.set(number, waits);
    this.#count++;
    return new Promise((resolve) => {
      const wake = (): void => {
        if (!waits.delete(wait)) return;
        wait.timer.cancel();
        this.#count--;
        if (waits.size === 0) this.#groups.delete(number);
        resolve();
      };
      const wait: Wait = { wake, timer: this.#clock.after(ms, wake) };
      waits.add(wait);
    });
  }

  changed(group: GroupKey): void {
    // A wait that is over leaves the set: it is walked as it was.
    for (const { wake } of Array.from(this.#groups.get(groupNumber(group)) ?? [])) wake();
  }

  mapChanged(): void {
    for (const waits of Array.from(this.#groups.values())) for (const { wake } of Array.from(waits)) wake();
  }

  stop(): void {
    this.mapChanged();
  }
}
