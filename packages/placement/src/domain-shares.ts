import type { NodeId } from './ids.ts';
import { domainOf, placeableNodes } from './domains.ts';
import type { Topology } from './topology.ts';

/** Halvings of the level: more than a double has bits. */
const MAX_STEPS = 64;

interface Vessel {
  readonly weight: number;
  readonly least: number;
  readonly most: number;
}

/** Fills `total` into vessels in proportion to their weight, between the least and the most that each can hold. */
function fill(vessels: readonly Vessel[], total: number): number[] {
  const at = (level: number): number[] =>
    vessels.map(({ weight, least, most }) => Math.min(most, Math.max(least, level * weight)));
  let low = 0;
  let high = Math.max(...vessels.map(({ weight, most }) => most / weight));
  for (let step = 0; step < MAX_STEPS; step++) {
    const middle = (low + high) / 2;
    if (at(middle).reduce((sum, share) => sum + share, 0) < total) low = middle;
    else high = middle;
  }
  return at(high);
}

/**
 * How many copies of a group each node holds on average when copies keep apart by the topology's domains and the load is as
 * even as that allows: in proportion to weight, but no node holds two copies of a group, and no domain holds more of them
 * than the number of domains forces.
 *
 * The sum is the topology's number of copies, or the number of nodes with weight if that is less.
 */
export function domainShares(topology: Topology): Map<NodeId, number> {
  const domains = [...Map.groupBy(placeableNodes(topology), (node) => domainOf(topology, node)).values()];
  const room = (copies: number): number => domains.reduce((sum, nodes) => sum + Math.min(copies, nodes.length), 0);
  const copies = Math.min(topology.copies, room(Infinity));
  let most = 1;
  while (room(most) < copies) most += 1;

  const vessels = domains.map((nodes) => ({
    weight: nodes.reduce((sum, node) => sum + node.weight, 0),
    least: Math.min(most - 1, nodes.length),
    most: Math.min(most, nodes.length),
  }));
  const shares = new Map<NodeId, number>();
  for (const [i, share] of fill(vessels, copies).entries()) {
    const nodes = domains[i]!;
    const parts = fill(
      nodes.map(({ weight }) => ({ weight, least: 0, most: 1 })),
      share,
    );
    for (const [n, part] of parts.entries()) shares.set(nodes[n]!.id, part);
  }
  return shares;
}
