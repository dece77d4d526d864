import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, Placer, PublishInput } from './algorithm.ts';
import { decide, groupState, mixWord, SALT } from './decision-hash.ts';
import { DomainRule } from './domain-rule.ts';
import { domainShares } from './domain-shares.ts';
import { NOBODY, placerOfTable, SlotTable } from './slot-table.ts';
import type { Topology } from './topology.ts';
import { WRD } from './wrd.ts';

/** Passes over all groups; what is still uneven then stays so. */
const MAX_ROUNDS = 16;

/** Odd, so that its multiples pass through all groups once: what is taken comes from everywhere, not from the first groups. */
const STRIDE = 0x9e3779b1;

interface Seat {
  readonly id: NodeId;
  readonly mixed: number;
  /** Its fair share of all slots. */
  readonly wanted: number;
  have: number;
  /** have / wanted. */
  fill: number;
}

/** A table on its way from one publication to the next. */
class RingBuilder {
  readonly #table: SlotTable;
  readonly #rule: DomainRule;
  readonly #seed: number;
  readonly #seats = new Map<number, Seat>();
  readonly #order: readonly Seat[];
  readonly #released: { group: number; column: number }[] = [];

  constructor(topology: Topology, table: SlotTable) {
    this.#table = table;
    this.#rule = new DomainRule(topology);
    this.#seed = topology.seed;
    for (const [id, share] of [...domainShares(topology)].sort(([a], [b]) => a - b)) {
      const wanted = table.groups * share;
      this.#seats.set(id, { id, mixed: mixWord(id), wanted, have: 0, fill: 0 });
    }
    this.#order = [...this.#seats.values()];
  }

  /** Draws groups that nobody has anything of, so that who shares a group with whom is chance. */
  drawNew(place: Placer): void {
    for (let group = 0; group < this.#table.groups; group++) {
      if (this.#table.row(group).some((node) => (node as number) !== NOBODY)) continue;
      for (const [column, node] of place(group, this.#table.copies).entries()) this.#table.set(group, column, node);
    }
  }

  /** Takes the slots of nodes that are gone, and those that crowd a domain while another has room. */
  releaseWrong(): void {
    for (let group = 0; group < this.#table.groups; group++) {
      for (const [column, node] of this.#table.row(group).entries()) {
        const seat = this.#seats.get(node);
        if (seat === undefined) this.#release(group, column);
        else give(seat, 1);
      }
      for (let left = this.#table.copies; left > 0; left--) {
        const row = this.#table.row(group);
        const crowded = this.#rule.crowded(row.filter((node) => (node as number) !== NOBODY));
        if (crowded === undefined) break;
        give(this.#seats.get(crowded)!, -1);
        this.#release(group, row.indexOf(crowded));
      }
    }
  }

  /** Gives every released slot to the hungriest node that may have it. */
  refill(): void {
    for (const { group, column } of this.#released) {
      const best = this.#hungriest(group, this.#table.row(group))!;
      give(best, 1);
      this.#table.set(group, column, best.id);
    }
    this.#released.length = 0;
  }

  /** Takes slots of nodes that have too many for nodes that then have less, one of a group at most. @returns how many */
  relieve(): number {
    let count = 0;
    if (!this.#order.some((seat) => overload(seat) >= 1)) return count;
    for (let i = 0; i < this.#table.groups; i++) {
      const group = Math.imul(i, STRIDE) & (this.#table.groups - 1);
      const row = this.#table.row(group);
      let from: Seat | undefined;
      for (const node of row) {
        const seat = this.#seats.get(node)!;
        if (overload(seat) >= 1 && (from === undefined || overload(seat) > overload(from))) from = seat;
      }
      if (from === undefined) continue;
      const to = this.#hungriest(
        group,
        row.filter((node) => node !== from.id),
      );
      if (to === undefined || overload(to) + 1 >= overload(from)) continue;
      give(from, -1);
      give(to, 1);
      count += 1;
      this.#table.set(group, row.indexOf(from.id), to.id);
    }
    return count;
  }

  /** By the share of its slots that it has; of equal ones by a draw, so that the same nodes do not always share groups. */
  #hungriest(group: number, row: readonly NodeId[]): Seat | undefined {
    const free = this.#rule.free(row.filter((node) => (node as number) !== NOBODY));
    const state = groupState(this.#seed, group);
    let best: Seat | undefined;
    let bestDraw = 0;
    for (const seat of this.#order) {
      if ((best !== undefined && seat.fill > best.fill) || !free(seat.id)) continue;
      const draw = decide(state, seat.mixed, SALT.NODE);
      if (best !== undefined && seat.fill === best.fill && draw < bestDraw) continue;
      best = seat;
      bestDraw = draw;
    }
    return best;
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

function give(seat: Seat, slots: number): void {
  seat.have += slots;
  seat.fill = seat.have / seat.wanted;
}

function publish(topology: Topology, input: PublishInput): Topology {
  const table = SlotTable.from(input, topology.copies);
  const builder = new RingBuilder(topology, table);
  builder.drawNew(WRD.prepare(topology));
  builder.releaseWrong();
  builder.refill();
  for (let round = 0; round < MAX_ROUNDS && builder.relieve() > 0; round++);
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
