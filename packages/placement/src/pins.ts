import type { NodeId } from '@webdfs/base';
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

/** @param keepDomains  refuse a pin that would crowd a domain more than the unpinned list does, for any number of copies */
export function pinBoard(topology: Topology, keepDomains: boolean): PinBoard {
  const domains = new Map<NodeId, string>();
  for (const node of placeableNodes(topology)) domains.set(node.id, domainOf(topology, node));
  const byGroup = Map.groupBy(topology.pins ?? [], (pin) => pin.group as number);

  const applies = (pin: Pin, judged: readonly NodeId[]): boolean => {
    if (!judged.includes(pin.from) || judged.includes(pin.to) || !domains.has(pin.to)) return false;
    if (!keepDomains) return true;
    const pinned = [...judged];
    exchange(pinned, pin.from, pin.to);
    const before = crowding(judged, domains);
    return crowding(pinned, domains).every((most, i) => most <= before[i]!);
  };

  return {
    has: (group) => byGroup.has(group),
    apply(group, judged, list) {
      const refused: Pin[] = [];
      for (const pin of byGroup.get(group) ?? []) {
        if (!applies(pin, judged)) {
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
