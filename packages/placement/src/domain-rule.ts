import type { NodeId } from './ids.ts';
import { domainOf, placeableNodes } from './domains.ts';
import type { Topology } from './topology.ts';

/** Whether a node may take the next copy of a group. */
export type Free = (node: NodeId) => boolean;

/** Keeps the copies of a group apart: where the next one may go. */
export class DomainRule {
  readonly #domains = new Map<NodeId, number>();
  /** Nodes with weight in each domain. */
  readonly #sizes: number[] = [];

  constructor(topology: Topology) {
    const numbers = new Map<string, number>();
    for (const node of placeableNodes(topology)) {
      const domain = domainOf(topology, node);
      const number = numbers.get(domain) ?? numbers.size;
      numbers.set(domain, number);
      this.#domains.set(node.id, number);
      this.#sizes[number] = (this.#sizes[number] ?? 0) + 1;
    }
  }

  /** Nodes that are not in the list and whose domain holds as few of the list as any that could take one more. */
  free(list: readonly NodeId[]): Free {
    const held = this.#held(list);
    const least = this.#least(held);
    return (node) => {
      const domain = this.#domains.get(node);
      return domain !== undefined && held[domain] === least && !list.includes(node);
    };
  }

  /** A node of the list that would be free elsewhere: its domain holds two more than another could. The last of such. */
  crowded(list: readonly NodeId[]): NodeId | undefined {
    const held = this.#held(list);
    const least = this.#least(held);
    return list.findLast((node) => held[this.#domains.get(node)!]! > least + 1);
  }

  #held(list: readonly NodeId[]): Uint32Array {
    const held = new Uint32Array(this.#sizes.length);
    for (const node of list) held[this.#domains.get(node)!]! += 1;
    return held;
  }

  #least(held: Uint32Array): number {
    let least = Infinity;
    for (let domain = 0; domain < held.length; domain++) {
      if (held[domain]! < least && held[domain]! < this.#sizes[domain]!) least = held[domain]!;
    }
    return least;
  }
}
