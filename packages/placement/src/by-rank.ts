import type { NodeId } from './ids.ts';
import type { Placer } from './algorithm.ts';
import { DomainRule, type Free } from './domain-rule.ts';
import { placeableNodes } from './domains.ts';
import { RENDEZVOUS } from './rendezvous.ts';
import type { Topology } from './topology.ts';

/**
 * Chooses the node of one rank.
 *
 * @param free  whether a node may have the rank, after those that have the ranks before
 * @returns undefined if the algorithm has no answer; a node that is not free counts as none
 */
export type Pick = (group: number, rank: number, free: Free) => NodeId | undefined;

/**
 * A placer that decides rank by rank, so that its lists for other counts are prefixes. A rank without an answer goes to the
 * first free node in flat rendezvous order: no list is ever short, whatever an algorithm leaves open.
 *
 * @param rule  keeps domains apart; without it every node that is not in the list is free
 */
export function byRank(topology: Topology, pick: Pick, rule?: DomainRule): Placer {
  const order = RENDEZVOUS.prepare(topology);
  const all = placeableNodes(topology).length;
  return (group, count) => {
    const list: NodeId[] = [];
    while (list.length < count) {
      const free: Free = rule?.free(list) ?? ((node) => !list.includes(node));
      const node = pick(group, list.length, free);
      if (node !== undefined && free(node)) list.push(node);
      else list.push(order(group, rule === undefined ? list.length + 1 : all).find(free)!);
    }
    return list;
  };
}
