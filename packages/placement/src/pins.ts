import type { NodeId } from './ids.ts';
import { domainOf, placeableNodes } from './domains.ts';
import type { Pin, Topology } from './topology.ts';

/** Exchanges two nodes of a list; one that is not in it counts as beyond its end. */
function exchange(list: NodeId[], a: NodeId, b: NodeId): void {
  for (const [i, node] of list.entries()) {
    if (node === a) list[i] = b;
    else if (node === b) list[i] = a;
  }
}

/** The most copies in one domain, for each prefix of a list. */
function crowding(list: readonly NodeId[], domains: ReadonlyMap<NodeId, string>): number[] {
  const held = new Map<string, number>();
  let most = 0;
  return list.map((node) => {
    const domain = domains.get(node)!;
    const count = (held.get(domain) ?? 0) + 1;
    held.set(domain, count);
    return (most = Math.max(most, count));
  });
}

/** The pins of a topology, ready to be applied to its groups. */
export interface PinBoard {
  has(group: number): boolean;
  /**
   * Applies a group's pins. They are judged on the list for the topology's own number of copies and exchange two places of
   * the group's order, so that lists for other numbers stay prefixes (or nested sets) of each other.
   *
   * @param judged  the unpinned list for `topology.copies`; changed in place
   * @param list    the unpinned list wanted; changed in place
   * @returns the pins that do not apply
   */
  apply(group: number, judged: NodeId[], list: NodeId[]): Pin[];
}

/** Whether a pin from one node to the other may be applied to a list. */
export type PinRule = (list: readonly NodeId[], from: NodeId, to: NodeId) => boolean;

/** @param keepDomains  refuse a pin that would crowd a domain more than the list does, for any number of copies */
export function pinRule(topology: Topology, keepDomains: boolean): PinRule {
  const domains = new Map<NodeId, string>();
  for (const node of placeableNodes(topology)) domains.set(node.id, domainOf(topology, node));
  return (list, from, to) => {
    if (!list.includes(from) || list.includes(to) || !domains.has(to)) return false;
    if (!keepDomains || domains.get(from) === domains.get(to)) return true;
    const before = crowding(list, domains);
    const pinned = list.map((node) => (node === from ? to : node));
    return crowding(pinned, domains).every((most, i) => most <= before[i]!);
  };
}

/** @param keepDomains  as for `pinRule` */
export function pinBoard(topology: Topology, keepDomains: boolean): PinBoard {
  const applies = pinRule(topology, keepDomains);
  const byGroup = Map.groupBy(topology.pins ?? [], (pin) => pin.group as number);

  return {
    has: (group) => byGroup.has(group),
    apply(group, judged, list) {
      const refused: Pin[] = [];
      for (const pin of byGroup.get(group) ?? []) {
        if (!applies(judged, pin.from, pin.to)) {
          refused.push(pin);
          continue;
        }
        exchange(judged, pin.from, pin.to);
        if (list !== judged) exchange(list, pin.from, pin.to);
      }
      return refused;
    },
  };
}
