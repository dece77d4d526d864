import type { NodeId } from '@webdfs/base';
import type { Contestant, Task } from './contestant.ts';
import {
  balanceOf,
  type Balance,
  biasByWeight,
  type Counts,
  type Moves,
  movesBetween,
  optimumOf,
  partnersOf,
  type Placed,
  sharedRackShare,
  targetsOf,
} from './placed.ts';
import { nodesOf, type Subclusters } from './layout.ts';
import type { Change, Setup } from './setups.ts';

/** What a change did under one seed. */
export interface ChangeTrial {
  readonly change: Change;
  readonly moved: number;
  readonly ranks: number;
  readonly optimum: number;
  /** See `astrayIn`. */
  readonly astray: number;
}

/** Copies that left nodes which are to hold no less, or came to nodes which are to hold no more: the larger count. */
function astrayIn(before: Placed, after: Placed, moves: Moves): number {
  const old = targetsOf(before);
  const now = targetsOf(after);
  const growth = (node: number): number => (now.get(node) ?? 0) - (old.get(node) ?? 0);
  const count = (counts: Counts, stray: (growth: number) => boolean): number =>
    [...counts].reduce((sum, [node, copies]) => sum + (stray(growth(node)) ? copies : 0), 0);
  return Math.max(
    count(moves.from, (change) => change >= 0),
    count(moves.to, (change) => change <= 0),
  );
}

/** Places layouts under one seed, each once. */
export class Trial {
  readonly #contestant: Contestant;
  readonly #task: Omit<Task, 'subclusters'>;
  readonly #placed = new Map<Subclusters, Placed>();

  constructor(contestant: Contestant, setup: Setup, seed: number) {
    const { copies, groupCount, domain } = setup;
    this.#contestant = contestant;
    this.#task = { copies, groupCount, seed, ...(domain === undefined ? {} : { domain }) };
  }

  /** A layout that follows nothing. */
  place(subclusters: Subclusters): Placed {
    let placed = this.#placed.get(subclusters);
    if (placed === undefined) {
      placed = this.#contestant.place({ ...this.#task, subclusters });
      this.#placed.set(subclusters, placed);
    }
    return placed;
  }

  after(change: Change): Placed {
    const before = this.place(change.before);
    const task = { ...this.#task, subclusters: change.after };
    return this.#contestant.place(task, { before, unplanned: change.unplanned === true });
  }

  /** Why this contestant cannot make the change; undefined if it can. */
  refusal(change: Change): string | undefined {
    return [change.before, change.after]
      .map((subclusters) => this.#contestant.refusal({ ...this.#task, subclusters }))
      .find((reason) => reason !== undefined);
  }

  compare(change: Change): Moves {
    return movesBetween(this.place(change.before), this.after(change));
  }

  /** Counts are for as many groups as were asked for, even where fewer were placed. */
  move(change: Change): ChangeTrial {
    const before = this.place(change.before);
    const after = this.after(change);
    const moves = movesBetween(before, after);
    const scale = this.#task.groupCount / before.groupCount;
    return {
      change,
      moved: moves.count * scale,
      ranks: moves.ranks * scale,
      optimum: optimumOf(before, after) * scale,
      astray: astrayIn(before, after, moves) * scale,
    };
  }
}

export interface StillTrial extends Balance {
  readonly bias: readonly (readonly [weight: number, bias: number])[];
  readonly sharedRacks: number;
}

export function stillTrial(placed: Placed): StillTrial {
  return { ...balanceOf(placed), bias: biasByWeight(placed), sharedRacks: sharedRackShare(placed) };
}

/** Each survivor's part in a failed node's groups, relative to its part by weight. */
export function partnerRatios(placed: Placed, failed: NodeId): Map<number, number> {
  const partners = partnersOf(placed, failed);
  const sum = [...partners.values()].reduce((total, count) => total + count, 0);
  const weights = new Map<number, number>(nodesOf(placed.subclusters).map((node) => [node.id, node.weight]));
  const weightSum = [...partners.keys()].reduce((total, node) => total + weights.get(node)!, 0);
  return new Map([...partners].map(([node, count]) => [node, count / ((sum * weights.get(node)!) / weightSum)]));
}
