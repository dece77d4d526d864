import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, PublishInput } from './algorithm.ts';
import { decide, groupState, SALT, streamDraw } from './decision-hash.ts';
import { domainOf, placeableNodes } from './domains.ts';
import { NOBODY, placerOfTable, SlotTable } from './slot-table.ts';
import type { Topology } from './topology.ts';

interface Member {
  readonly id: NodeId;
  readonly domain: string;
}

/** What may stand beside the copies that a group has, strictest first: HDFS's rule, then any other node. */
function allowed(list: readonly Member[]): ((node: Member) => boolean)[] {
  const any = (node: Member): boolean => list.every(({ id }) => id !== node.id);
  const [first, second] = list;
  if (first === undefined) return [any];
  const apart = (node: Member): boolean => any(node) && node.domain !== first.domain;
  if (second === undefined) return [apart, any];
  if (list.length > 2) return [any];
  // two racks are in use: beside the second copy; if the first two share one, in another
  const beside = (node: Member): boolean => any(node) && node.domain === second.domain;
  return second.domain === first.domain ? [apart, any] : [beside, any];
}

function publish(topology: Topology, input: PublishInput): Topology {
  const nodes: Member[] = placeableNodes(topology)
    .map((node) => ({ id: node.id, domain: domainOf(topology, node) }))
    .sort((a, b) => a.id - b.id);
  const members = new Map(nodes.map((node) => [node.id, node]));
  const table = SlotTable.from(input, topology.copies);
  for (let group = 0; group < table.groups; group++) {
    const stream = decide(groupState(topology.seed, group), 0, SALT.KEY);
    const row = table.row(group);
    const list = row.flatMap((id) => members.get(id) ?? []);
    for (const [column, id] of row.entries()) {
      if (id !== (NOBODY as number) && members.has(id)) continue;
      const choices =
        allowed(list)
          .map((rule) => nodes.filter(rule))
          .find((some) => some.length > 0) ?? [];
      const chosen = choices[Math.floor((streamDraw(stream, column) / 4_294_967_296) * choices.length)]!;
      list.push(chosen);
      table.set(group, column, chosen.id);
    }
  }
  return { ...topology, table: table.publish() };
}

/**
 * What HDFS does by default, as a baseline: the first copy anywhere (no writer is known here), the second in another rack,
 * the third beside the second, more anywhere; a lost copy is drawn anew, nothing else ever moves, and weight does not count.
 * It needs a directory of all blocks, here the published table, so it is no way to look anything up and fit for experiments
 * alone.
 *
 * Cost: a look-up reads the table; publishing is groups × copies × nodes.
 * Source: Apache Hadoop, "HDFS Architecture", replica placement.
 */
export const HDFS_RANDOM: PlacementAlgorithm = {
  name: 'hdfs-random',
  version: 1,
  supports: {
    order: 'prefix',
    domains: false,
    exactReweight: true,
    exactGrowth: true,
    weights: false,
    fractionalWeights: true,
    unevenSubclusters: false,
    wideSubclusters: 'none',
    stores: 'table',
    lookup: false,
  },
  prepare: (topology) => placerOfTable(topology),
  publish,
};
