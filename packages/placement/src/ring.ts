import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, PublishOptions } from './algorithm.ts';
import { decide, groupState, mixWord, SALT } from './decision-hash.ts';
import { DomainRule } from './domain-rule.ts';
import { placeableNodes } from './domains.ts';
import { NOBODY, placerOfTable, SlotTable } from './slot-table.ts';
import type { Topology } from './topology.ts';

/** Rounds of release and refill; what is still uneven then stays so. */
const MAX_ROUNDS = 16;

/** Odd, so that its multiples pass through all groups once: what is taken comes from everywhere, not from the first groups. */
const STRIDE = 0x9e3779b1;

interface Seat {
  readonly id: NodeId;
  readonly mixed: number;
  /** Slots in proportion to weight. */
  readonly wanted: number;
  have: number;
}

/** A table on its way from one publication to the next. */
class RingBuilder {
  readonly #table: SlotTable;
  readonly #rule: DomainRule;
  readonly #seed: number;
  readonly #seats = new Map<number, Seat>();
  readonly #released: { group: number; column: number }[] = [];

  constructor(topology: Topology, table: SlotTable) {
    this.#table = table;
    this.#rule = new DomainRule(topology);
    this.#seed = topology.seed;
    const nodes = placeableNodes(topology).toSorted((a, b) => a.id - b.id);
    const total = nodes.reduce((sum, node) => sum + node.weight, 0);
    for (const { id, weight } of nodes) {
      const wanted = (table.groups * table.copies * weight) / total;
      this.#seats.set(id, { id, mixed: mixWord(id), wanted, have: 0 });
    }
  }

  /** Takes the slots of nodes that are gone, and those that crowd a domain while another has room. */
  releaseWrong(): void {
    for (let group = 0; group < this.#table.groups; group++) {
      for (const [column, node] of this.#table.row(group).entries()) {
        const seat = this.#seats.get(node);
        if (seat === undefined) this.#release(group, column);
        else seat.have += 1;
      }
      for (let left = this.#table.copies; left > 0; left--) {
        const row = this.#table.row(group);
        const crowded = this.#rule.crowded(row.filter((node) => (node as number) !== NOBODY));
        if (crowded === undefined) break;
        this.#seats.get(crowded)!.have -= 1;
        this.#release(group, row.indexOf(crowded));
      }
    }
  }

  /** Takes slots of nodes that have too many, one of a group at most. @returns how many */
  releaseOverload(): number {
    let count = 0;
    for (let i = 0; i < this.#table.groups; i++) {
      const group = Math.imul(i, STRIDE) & (this.#table.groups - 1);
      let most: Seat | undefined;
      for (const node of this.#table.row(group)) {
        const seat = this.#seats.get(node)!;
        if (overload(seat) >= 1 && (most === undefined || overload(seat) > overload(most))) most = seat;
      }
      if (most === undefined) continue;
      most.have -= 1;
      count += 1;
      this.#release(group, this.#table.row(group).indexOf(most.id));
    }
    return count;
  }

  /** Gives every released slot to the hungriest node that may have it. */
  refill(): void {
    for (const { group, column } of this.#released) {
      const row = this.#table.row(group);
      const free = this.#rule.free(row.filter((node) => (node as number) !== NOBODY));
      const state = groupState(this.#seed, group);
      let best: Seat | undefined;
      for (const seat of this.#seats.values()) {
        if (free(seat.id) && (best === undefined || isHungrier(seat, best, state))) best = seat;
      }
      best!.have += 1;
      this.#table.set(group, column, best!.id);
    }
    this.#released.length = 0;
  }

  /** Orders every row so that its beginnings are spread as well as the whole. */
  orderRows(): void {
    for (let group = 0; group < this.#table.groups; group++) {
      const row = this.#table.row(group);
      const ordered: NodeId[] = [];
      while (row.length > 0) {
        const at = row.findIndex(this.#rule.free(ordered));
        ordered.push(...row.splice(Math.max(0, at), 1));
      }
      for (const [column, node] of ordered.entries()) this.#table.set(group, column, node);
    }
  }

  #release(group: number, column: number): void {
    this.#table.set(group, column, NOBODY);
    this.#released.push({ group, column });
  }
}

function overload(seat: Seat): number {
  return seat.have - seat.wanted;
}

/** By the share of its slots that it has; of equal ones by a draw, so that the same nodes do not always share groups. */
function isHungrier(a: Seat, b: Seat, state: number): boolean {
  const difference = a.have / a.wanted - b.have / b.wanted;
  if (difference !== 0) return difference < 0;
  return decide(state, a.mixed, SALT.NODE) > decide(state, b.mixed, SALT.NODE);
}

function publish(topology: Topology, options: PublishOptions): Topology {
  const table = SlotTable.after(options.before, options, topology.copies);
  const builder = new RingBuilder(topology, table);
  builder.releaseWrong();
  builder.refill();
  for (let round = 0; round < MAX_ROUNDS && builder.releaseOverload() > 0; round++) builder.refill();
  builder.orderRows();
  return { ...topology, table: table.publish() };
}

/**
 * A ring table as in Swift: the placement is a table that is kept from one topology to the next, with slots taken from nodes
 * that have too many and given to those that have too few. It moves the least and is the most even, but it follows from
 * its history: the table must be published with the topology and never be lost.
 *
 * Cost: a look-up reads the table; publishing is groups × copies × nodes.
 * Source: OpenStack Swift, "Building a Consistent Hashing Ring".
 */
export const RING: PlacementAlgorithm = {
  name: 'ring',
  version: 1,
  supports: {
    order: 'prefix',
    domains: true,
    exactReweight: false,
    exactGrowth: false,
    weights: true,
    fractionalWeights: true,
    unevenSubclusters: true,
    wideSubclusters: 'none',
    stores: 'table',
    lookup: true,
  },
  prepare: (topology) => placerOfTable(topology, new DomainRule(topology)),
  publish,
};
