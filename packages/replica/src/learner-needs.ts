import { type Clock, type GroupKey, groupNumber, type NodeId, type Random } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';

/** J1: nodes that should be members and are not. Those eligible are put back by the controller as they are (T7). */
export function lacking(view: Pick<GroupView, 'goal' | 'inSync' | 'eligible'>): NodeId[] {
  return view.goal.filter((node) => !view.inSync.includes(node) && !view.eligible.includes(node));
}

/** J5 without a learner: all that should be members are, in another order or with one too many. */
export function isOutOfOrder({ goal, inSync }: Pick<GroupView, 'goal' | 'inSync'>): boolean {
  if (goal.length === 0 || !goal.every((node) => inSync.includes(node))) return false;
  return inSync.length !== goal.length || goal.some((node, i) => inSync[i] !== node);
}

/** Pauses of single groups with single nodes after a failure: each is twice the one before, ± 50 %, until it succeeds. */
export class Pauses {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #firstMs: number;
  readonly #lastMs: number;
  readonly #pauses = new Map<string, { readonly until: number; readonly ms: number }>();

  constructor(
    seams: { readonly clock: Clock; readonly random: Random },
    limits: { readonly firstPauseMs: number; readonly lastPauseMs: number },
  ) {
    this.#clock = seams.clock;
    this.#random = seams.random;
    this.#firstMs = limits.firstPauseMs;
    this.#lastMs = limits.lastPauseMs;
  }

  isPaused(key: GroupKey, node: NodeId): boolean {
    const pause = this.#pauses.get(nameOf(key, node));
    return pause !== undefined && this.#clock.monotonic() < pause.until;
  }

  lengthen(key: GroupKey, node: NodeId): void {
    const before = this.#pauses.get(nameOf(key, node))?.ms;
    const ms = before === undefined ? this.#firstMs : Math.min(before * 2, this.#lastMs);
    const until = this.#clock.monotonic() + ms * (0.5 + this.#random.fraction());
    this.#pauses.set(nameOf(key, node), { ms, until });
  }

  forget(key: GroupKey, node: NodeId): void {
    this.#pauses.delete(nameOf(key, node));
  }

  /** Forgets those that were over so long ago that the next failure is another story. */
  expire(): void {
    const now = this.#clock.monotonic();
    for (const [name, { until, ms }] of this.#pauses) if (now > until + 2 * ms) this.#pauses.delete(name);
  }
}

function nameOf(key: GroupKey, node: NodeId): string {
  return `${node}/${groupNumber(key)}`;
}
