import { type GroupKey, groupNumber, messageOf, type Timer, WebdfsError } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';
import type { ReplicaHost } from './replica-host.ts';

export interface LeftoverLimits {
  /** A copy is kept so long after the node has left its group, milliseconds (protocol, section 13). */
  readonly dropMs: number;
  /** Between looks. */
  readonly lookMs: number;
}

export const LEFTOVER_LIMITS: LeftoverLimits = { dropMs: 600_000, lookMs: 60_000 };

/** J6: whether a node's copy of a group is needed by nobody: others hold it whole, and nothing will ask this node for it. */
export function isLeftover(view: Pick<GroupView, 'health' | 'inSync' | 'eligible' | 'goal'>, self: number): boolean {
  if (view.health !== 'whole') return false;
  return ![view.inSync, view.eligible, view.goal].some((nodes) => nodes.some((node) => node === self));
}

/**
 * Deletes the copies of groups that this node has left. A map that is behind does no harm: a node is taken back into a group
 * only after a conversation in which it reads the map.
 */
export class Leftovers {
  readonly #host: ReplicaHost;
  readonly #limits: LeftoverLimits;
  /** Since when each copy has been seen to be one, by the monotonic clock. */
  readonly #since = new Map<number, number>();
  #timer: Timer | undefined;
  #isStopped = false;
  #dropped = 0;

  constructor(host: ReplicaHost, limits: Partial<LeftoverLimits> = {}) {
    this.#host = host;
    this.#limits = { ...LEFTOVER_LIMITS, ...limits };
  }

  start(): void {
    this.#timer = this.#host.clock.after(this.#limits.lookMs, () => {
      void this.look().then(() => {
        if (!this.#isStopped) this.start();
      });
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  counters(): { readonly droppedGroups: number } {
    return { droppedGroups: this.#dropped };
  }

  /** Drops what has been left for long enough. */
  async look(): Promise<void> {
    const { store, clock } = this.#host;
    for (const group of store.groups()) {
      const number = groupNumber(group);
      if (!this.#isLeftover(group)) {
        this.#since.delete(number);
        continue;
      }
      const since = this.#since.get(number) ?? clock.monotonic();
      this.#since.set(number, since);
      if (clock.monotonic() - since >= this.#limits.dropMs) await this.#drop(group);
      if (this.#isStopped) return;
    }
  }

  #isLeftover(group: GroupKey): boolean {
    const { map, self, store } = this.#host;
    return store.log(group).mark !== undefined && isLeftover(map.view.group(group), self);
  }

  async #drop(group: GroupKey): Promise<void> {
    try {
      await this.#host.store.drop(group);
      this.#since.delete(groupNumber(group));
      this.#dropped++;
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      this.#host.log.warn('copy not dropped', { policy: group.policy, group: group.group, why: messageOf(error) });
    }
  }
}
