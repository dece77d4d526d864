import type { GroupId, NodeId } from '@webdfs/base';
import { domainOf, fairShares, type Pin, type PlacementTable, type Topology } from '@webdfs/placement';

const DEFAULT_TOLERANCE = 0.02;

export interface IntakeOptions {
  /** Bytes of one copy of each group; missing: every group counts alike. */
  readonly bytesOf?: (group: GroupId) => number;
  /** How far above its share of what moves a node may take in; 0.02. */
  readonly tolerance?: number;
}

interface Intake {
  /** Groups that come, and have no pin yet. */
  readonly groups: Set<GroupId>;
  bytes: number;
  /** What it would take in if all shares came out even. */
  readonly share: number;
  /** What it holds in the end, and may hold. */
  load: number;
  readonly mostLoad: number;
}

/**
 * Pins that even out what each node takes in during one change. The fullest node is not the matter here: when few nodes leave, each of the
 * others gets few groups, and the luckless one 1 + sqrt(2·ln n/g) times its share, although all are evenly full before and after. No
 * node is filled beyond its fair share for it, and nothing moves that would not have moved.
 *
 * @param after  with the pins that keep nodes evenly full
 * @returns pins to be added to those of `after`; groups that have one get no other
 */
export function balanceIntake(before: PlacementTable, after: PlacementTable, options: IntakeOptions = {}): Pin[] {
  return new IntakeBalancer(before, after, options).balance();
}

class IntakeBalancer {
  readonly #before: PlacementTable;
  readonly #after: PlacementTable;
  readonly #bytesOf: (group: GroupId) => number;
  readonly #tolerance: number;
  readonly #intakes = new Map<NodeId, Intake>();
  readonly #domains: ReadonlyMap<NodeId, string>;

  constructor(before: PlacementTable, after: PlacementTable, { bytesOf = () => 1, tolerance }: IntakeOptions) {
    this.#before = before;
    this.#after = after;
    this.#bytesOf = bytesOf;
    this.#tolerance = tolerance ?? DEFAULT_TOLERANCE;
    this.#domains = domainsOf(after.topology);
    let total = 0;
    for (let group = 0; group < after.groupCount; group++) total += bytesOf(group as GroupId);
    // shares are copies of each group, all nodes together hold `copies` of them
    const old = fairShares(before.topology);
    for (const [node, share] of fairShares(after.topology)) {
      this.#intakes.set(node, {
        groups: new Set(),
        bytes: 0,
        share: Math.max(0, share - (old.get(node) ?? 0)) * total,
        load: 0,
        mostLoad: share * total * (1 + this.#tolerance),
      });
    }
    this.#count();
  }

  #count(): void {
    const pinned = new Set(this.#after.topology.pins?.map(({ group }) => group));
    for (let number = 0; number < this.#after.groupCount; number++) {
      const group = number as GroupId;
      const bytes = this.#bytesOf(group);
      const old = this.#before.members(group);
      for (const node of this.#after.members(group)) {
        const intake = this.#intakes.get(node)!;
        intake.load += bytes;
        if (old.includes(node)) continue;
        intake.bytes += bytes;
        if (!pinned.has(group)) intake.groups.add(group);
      }
    }
  }

  balance(): Pin[] {
    const pins: Pin[] = [];
    const nodes = [...this.#intakes].toSorted(([, a], [, b]) => b.bytes - b.share - (a.bytes - a.share));
    for (const [from, intake] of nodes) {
      for (const group of intake.groups) {
        const bytes = this.#bytesOf(group);
        // no node takes in less than a whole group
        if (intake.bytes <= Math.max(intake.share * (1 + this.#tolerance), intake.share + bytes / 2)) break;
        const to = this.#takerOf(group, from, bytes);
        if (to === undefined) continue;
        pins.push({ group, from, to });
        this.#move(group, bytes, from, to);
      }
    }
    return pins;
  }

  #move(group: GroupId, bytes: number, from: NodeId, to: NodeId): void {
    const [giver, taker] = [this.#intakes.get(from)!, this.#intakes.get(to)!];
    giver.groups.delete(group);
    giver.bytes -= bytes;
    giver.load -= bytes;
    taker.bytes += bytes;
    taker.load += bytes;
  }

  /** The node that is furthest below its share and may take a group instead of another. */
  #takerOf(group: GroupId, from: NodeId, bytes: number): NodeId | undefined {
    const members = this.#after.members(group);
    const others = members.filter((node) => node !== from).map((node) => this.#domains.get(node));
    const old = this.#before.members(group);
    let best: NodeId | undefined;
    let most = 0;
    for (const [node, { share, bytes: taken, load, mostLoad }] of this.#intakes) {
      const room = share - taken;
      if (room < bytes / 2 || room <= most || load + bytes > mostLoad) continue;
      if (members.includes(node) || old.includes(node) || others.includes(this.#domains.get(node))) continue;
      [best, most] = [node, room];
    }
    return best;
  }
}

function domainsOf(topology: Topology): Map<NodeId, string> {
  return new Map(
    topology.subclusters.flatMap(({ nodes }) => nodes.map((node) => [node.id, domainOf(topology, node)] as const)),
  );
}
