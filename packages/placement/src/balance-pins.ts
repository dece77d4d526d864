import type { GroupId, NodeId } from './ids.ts';
import { PlacementError } from './placement-error.ts';
import { algorithmOf } from './algorithms.ts';
import { fairShares } from './fair-shares.ts';
import { pinBoard, type PinRule, pinRule } from './pins.ts';
import type { Pin, Topology } from './topology.ts';

const DEFAULT_TOLERANCE = 0.02;
const MAX_PINS = 65_536;
const MAX_GROUP_BITS = 24;
/** Odd, so that its multiples pass through all groups once: the pins are spread over the groups. */
const STRIDE = 0x9e3779b1;

export interface BalanceOptions {
  /** log2 of the number of groups. */
  readonly groupBits: number;
  /** Bytes of each group; missing: every group counts alike. */
  readonly sizes?: ArrayLike<number>;
  /** How far above its fair share the fullest node may be; 0.02. */
  readonly tolerance?: number;
}

export interface PinBalance {
  /** To be published with the topology. */
  readonly pins: readonly Pin[];
  readonly added: readonly Pin[];
  /** Earlier pins that no longer apply: a node left the group, has no weight, or would share a domain. */
  readonly stale: readonly Pin[];
  /** Earlier pins that applied and are no longer needed. */
  readonly needless: readonly Pin[];
  /** Load of the fullest node as a multiple of its fair share: with the earlier pins, and with the new ones. */
  readonly before: number;
  readonly after: number;
}

interface Seat {
  readonly id: NodeId;
  /** What it holds when all hold their share, in groups or bytes. */
  readonly fair: number;
  /** What it may hold. */
  readonly limit: number;
  readonly groups: Set<number>;
  load: number;
}

interface Step {
  readonly group: number;
  readonly from: Seat;
  readonly to: Seat;
}

function fullness(seat: Seat): number {
  return seat.load / seat.fair;
}

/** The pins of a topology while they are being chosen; at most one more for a group that has none. */
class Balancer {
  readonly stale: Pin[] = [];
  readonly needless: Pin[] = [];
  readonly added = new Set<Pin>();
  readonly #seats = new Map<NodeId, Seat>();
  readonly #lists: NodeId[][] = [];
  readonly #pins = new Map<number, Pin[]>();
  readonly #rule: PinRule;
  readonly #sizeOf: (group: number) => number;

  constructor(topology: Topology, options: BalanceOptions) {
    const { groupBits, sizes, tolerance = DEFAULT_TOLERANCE } = options;
    const groups = 2 ** groupBits;
    this.#sizeOf = (group) => sizes?.[group] ?? 1;
    let total = 0;
    for (let group = 0; group < groups; group++) total += this.#sizeOf(group);
    const shares = fairShares(topology);
    for (const [id, share] of shares) {
      const fair = total * share;
      // a node holds whole groups
      const limit = Math.max(fair * (1 + tolerance), sizes === undefined ? Math.ceil(fair) : 0);
      this.#seats.set(id, { id, fair, limit, groups: new Set(), load: 0 });
    }
    const algorithm = algorithmOf(topology);
    this.#rule = pinRule(topology, algorithm.supports.domains);
    const copies = Math.min(topology.copies, shares.size);
    const place = algorithm.prepare(topology);
    this.#seat(topology, (group) => place(group, copies), groups);
  }

  #seat(topology: Topology, place: (group: number) => NodeId[], groups: number): void {
    const board = pinBoard(topology, algorithmOf(topology).supports.domains);
    for (const pin of topology.pins ?? []) if (pin.group >= groups) this.stale.push(pin);
    for (const [group, pins] of Map.groupBy(topology.pins ?? [], (pin) => pin.group as number)) {
      if (group < groups) this.#pins.set(group, pins);
    }
    for (let i = 0; i < groups; i++) {
      const group = (Math.imul(i, STRIDE) & (groups - 1)) >>> 0;
      const list = place(group);
      const refused = board.apply(group, list, list);
      this.stale.push(...refused);
      for (const pin of refused) this.#forget(pin);
      this.#lists[group] = list;
      for (const node of list) this.#take(this.#seats.get(node)!, group);
    }
  }

  get pins(): Pin[] {
    return [...this.#pins.values()].flat().sort((a, b) => a.group - b.group);
  }

  get fullest(): number {
    return Math.max(0, ...Array.from(this.#seats.values(), fullness));
  }

  /** Takes back pins that are alone in their group and whose first node has room again. */
  dropNeedless(): void {
    for (const [pin, ...more] of Array.from(this.#pins.values())) {
      const from = this.#seats.get(pin!.from)!;
      if (more.length > 0 || from.load + this.#sizeOf(pin!.group) > from.limit) continue;
      this.#move({ group: pin!.group, from: this.#seats.get(pin!.to)!, to: from });
      this.#drop(pin!);
    }
  }

  /** Moves copies off the nodes that hold too much, the fullest first, until none is left that can be helped. */
  level(): void {
    const helpless = new Set<Seat>();
    // a step never leaves a fuller node than it found, so this ends; the bound is for what rounding could do
    for (let steps = 0; steps < 4 * MAX_PINS; steps++) {
      const fullest = this.#fullestBut(helpless);
      if (fullest === undefined) return;
      const step = this.#stepFrom(fullest);
      if (step === undefined) helpless.add(fullest);
      else this.#pin(step);
    }
  }

  #fullestBut(helpless: ReadonlySet<Seat>): Seat | undefined {
    let fullest: Seat | undefined;
    for (const seat of this.#seats.values()) {
      if (seat.load <= seat.limit || helpless.has(seat)) continue;
      if (fullest === undefined || fullness(seat) > fullness(fullest)) fullest = seat;
    }
    return fullest;
  }

  /** To the emptiest node that then keeps its limit; if there is none, to one that is then no fuller than this one. */
  #stepFrom(from: Seat): Step | undefined {
    const receivers = [...this.#seats.values()].sort((a, b) => fullness(a) - fullness(b));
    const groups = this.#offers(from);
    const within = (to: Seat, size: number): boolean => to.load + size <= to.limit;
    const better = (to: Seat, size: number): boolean => (to.load + size) / to.fair <= (from.load - size) / from.fair;
    for (const fits of [within, better]) {
      for (const to of receivers) {
        const group = groups.find((group) => fits(to, this.#sizeOf(group)) && this.#mayMove({ group, from, to }));
        if (group !== undefined) return { group, from, to };
      }
    }
    return undefined;
  }

  /** The groups whose copy could leave a node: the smallest that is enough first, then those that take most. */
  #offers(from: Seat): number[] {
    const surplus = from.load - from.limit;
    const groups = [...from.groups].filter((group) => {
      const pins = this.#pins.get(group) ?? [];
      return this.#sizeOf(group) > 0 && (pins.length === 0 || (pins.length === 1 && pins[0]!.to === from.id));
    });
    const size = this.#sizeOf;
    const enough = (group: number): boolean => size(group) >= surplus;
    return groups.sort((a, b) => (enough(a) && enough(b) ? size(a) - size(b) : size(b) - size(a)));
  }

  #mayMove({ group, from, to }: Step): boolean {
    const list = this.#lists[group]!;
    const [pin] = this.#pins.get(group) ?? [];
    if (pin === undefined) return this.#rule(list, from.id, to.id);
    // the pin would lead elsewhere: it is judged on the list without it
    const natural = list.map((node) => (node === from.id ? pin.from : node));
    return this.#rule(natural, pin.from, to.id);
  }

  #pin(step: Step): void {
    const { group, from, to } = step;
    const [earlier] = this.#pins.get(group) ?? [];
    if (earlier !== undefined) this.#drop(earlier);
    const pin: Pin = { group: group as GroupId, from: earlier?.from ?? from.id, to: to.id };
    this.#pins.set(group, [pin]);
    this.added.add(pin);
    this.#move(step);
  }

  #move({ group, from, to }: Step): void {
    this.#lists[group] = this.#lists[group]!.map((node) => (node === from.id ? to.id : node));
    from.groups.delete(group);
    from.load -= this.#sizeOf(group);
    this.#take(to, group);
  }

  #take(seat: Seat, group: number): void {
    seat.groups.add(group);
    seat.load += this.#sizeOf(group);
  }

  /** A pin that applied and is no longer wanted. */
  #drop(pin: Pin): void {
    this.#forget(pin);
    if (!this.added.delete(pin)) this.needless.push(pin);
  }

  #forget(pin: Pin): void {
    const rest = this.#pins.get(pin.group)!.filter((other) => other !== pin);
    if (rest.length === 0) this.#pins.delete(pin.group);
    else this.#pins.set(pin.group, rest);
  }
}

/**
 * Chooses pins that bring the fullest node to within 2 % of its fair share, as few as will do: each one takes a copy from a
 * node that holds too much to the emptiest that may have it. Earlier pins are kept where they still help; what they do no
 * longer is reported. For whoever publishes a topology, on planned changes.
 *
 * Where the rules leave no way (few groups for many nodes, domains that must hold more than their share), `after` says how
 * far it came.
 * Cost: places every group once; then, for each pin, a look at all nodes and at the groups of one.
 * @throws PlacementError INVALID if the options are no numbers of their kind, BAD_CONFIG as `place`
 */
export function balancePins(topology: Topology, options: BalanceOptions): PinBalance {
  checkOptions(options);
  const balancer = new Balancer(topology, options);
  const before = balancer.fullest;
  balancer.dropNeedless();
  balancer.level();
  // a large group that left a node may have made an earlier pin of it needless
  balancer.dropNeedless();
  const { pins, stale, needless } = balancer;
  return { pins, added: [...balancer.added], stale, needless, before, after: balancer.fullest };
}

function checkOptions({ groupBits, sizes, tolerance = DEFAULT_TOLERANCE }: BalanceOptions): void {
  if (!Number.isInteger(groupBits) || groupBits < 0 || groupBits > MAX_GROUP_BITS) {
    throw new PlacementError('INVALID', `group bits are ${groupBits}, allowed are 0 to ${MAX_GROUP_BITS}`);
  }
  if (!(tolerance >= 0 && tolerance < Infinity)) throw new PlacementError('INVALID', `the tolerance is ${tolerance}`);
  if (sizes === undefined) return;
  if (sizes.length !== 2 ** groupBits) {
    throw new PlacementError('INVALID', `there are ${sizes.length} sizes for ${2 ** groupBits} groups`);
  }
  const wrong = Array.from(sizes).findIndex((size) => !(size >= 0 && size <= Number.MAX_SAFE_INTEGER));
  if (wrong !== -1) throw new PlacementError('INVALID', `the size of group ${wrong} is ${sizes[wrong]}`);
}
