import type { NodeId } from '@webdfs/base';
import { GROUPS, isPrefix, keyOf, type World } from './world.ts';

/** What must hold after every event. */
export class Rules {
  readonly #world: World;
  /** By group: the meaning of each ballot, and the newest one. */
  readonly #meaning: Map<number, string>[] = Array.from({ length: GROUPS }, () => new Map());
  readonly #newest: number[] = Array.from({ length: GROUPS }, () => 0);
  #told: readonly (readonly { readonly id: number }[])[];
  #seen = 0;

  constructor(world: World) {
    this.#world = world;
    this.#told = [...world.history];
  }

  /** The first rule that is broken, in words. */
  broken(): string | undefined {
    const world = this.#world;
    for (let i = this.#seen; i < world.snapshots.length; i++) {
      const broken = this.#ballots(i);
      if (broken !== undefined) return broken;
    }
    this.#seen = world.snapshots.length;
    for (let group = 0; group < GROUPS; group++) {
      const broken = this.#told1(group) ?? this.#held(group) ?? this.#readable(group);
      if (broken !== undefined) return broken;
    }
    this.#told = [...world.history];
    return undefined;
  }

  #ballots(index: number): string | undefined {
    for (let group = 0; group < GROUPS; group++) {
      const view = this.#world.snapshots[index]!.group(keyOf(group));
      if (view.ballot === 0) continue;
      if (view.ballot < this.#newest[group]!) {
        return `the ballot of group ${group} goes back from ${this.#newest[group]} to ${view.ballot}`;
      }
      this.#newest[group] = view.ballot;
      const meaning = `${view.inSync.join()} ${view.primary} ${view.session}`;
      const known = this.#meaning[group]!.get(view.ballot) ?? meaning;
      if (known !== meaning) return `ballot ${view.ballot} of group ${group} means ${known} and ${meaning}`;
      this.#meaning[group]!.set(view.ballot, meaning);
    }
    return undefined;
  }

  #told1(group: number): string | undefined {
    const before = this.#told[group]!;
    const now = this.#world.history[group]!;
    const isLonger = before.every(({ id }, i) => now[i]?.id === id);
    return isLonger ? undefined : `group ${group} was told ${ids(before)}, and now shows ${ids(now)}`;
  }

  #held(group: number): string | undefined {
    const view = this.#world.view(group);
    const holders: readonly NodeId[] = [...view.inSync, ...view.eligible];
    for (const id of holders) {
      const node = this.#world.node(id);
      if (!this.#world.isIntact(node) || isPrefix(this.#world.history[group]!, node.logs[group]!)) continue;
      const role = view.inSync.includes(id) ? 'in sync' : 'eligible';
      return `node ${id} is ${role} in group ${group} and holds ${ids(node.logs[group]!)} of ${ids(this.#world.history[group]!)}`;
    }
    return undefined;
  }

  /** Whoever believes it may serve shows everything that was told. */
  #readable(group: number): string | undefined {
    for (const node of this.#world.nodes) {
      const ballot = node.serving[group]!;
      if (ballot === 0 || !this.#world.isLive(node)) continue;
      if (node.view.group(keyOf(group)).ballot !== ballot) continue;
      if (isPrefix(this.#world.history[group]!, node.logs[group]!)) continue;
      return `node ${node.id} serves group ${group} with ${ids(node.logs[group]!)} of ${ids(this.#world.history[group]!)}`;
    }
    return undefined;
  }
}

function ids(log: readonly { readonly id: number }[]): string {
  return `[${log.map(({ id }) => id).join(' ')}]`;
}
