import type { GroupId, NodeId } from './ids.ts';
import { PlacementError } from './placement-error.ts';
import type { Placer } from './algorithm.ts';
import { algorithmOf } from './algorithms.ts';
import { placeableNodes } from './domains.ts';
import { pinBoard } from './pins.ts';
import type { Topology } from './topology.ts';

export interface PlaceOptions {
  /**
   * What happens when fewer nodes than asked for have weight: `refuse` throws, `fewer` gives all there are.
   * A list is never short in silence.
   */
  readonly shortfall?: 'refuse' | 'fewer';
}

/** @throws PlacementError INVALID if there are fewer nodes with weight than `count`, unless `fewer` will do */
function reachableCount(topology: Topology, count: number, options: PlaceOptions): number {
  if (!Number.isInteger(count) || count < 0) throw new PlacementError('INVALID', `cannot place ${count} copies`);
  const placeable = placeableNodes(topology).length;
  if (count <= placeable) return count;
  if (options.shortfall === 'fewer') return placeable;
  throw new PlacementError('INVALID', `${count} copies need as many nodes with weight, the topology has ${placeable}`, {
    details: { what: 'placeable-nodes', wanted: count, placeable },
  });
}

/**
 * A placer with the pins applied; `count` is checked here, once.
 *
 * @throws PlacementError BAD_CONFIG, INVALID
 */
export function placerOf(
  topology: Topology,
  count: number,
  options: PlaceOptions = {},
): { count: number; place: (group: number) => NodeId[] } {
  const algorithm = algorithmOf(topology);
  const reachable = reachableCount(topology, count, options);
  const natural: Placer = algorithm.prepare(topology);
  if ((topology.pins ?? []).length === 0) return { count: reachable, place: (group) => natural(group, reachable) };
  const judgedCount = reachableCount(topology, topology.copies, { shortfall: 'fewer' });
  const pins = pinBoard(topology, algorithm.supports.domains);
  return {
    count: reachable,
    place(group) {
      const list = natural(group, reachable);
      if (!pins.has(group)) return list;
      pins.apply(group, reachable === judgedCount ? list : natural(group, judgedCount), list);
      return list;
    },
  };
}

/**
 * Where the copies of a group lie: distinct nodes with weight, the first is the one to be primary. Pure: the same
 * topology gives the same list on every machine.
 *
 * Cost: prepares the whole topology; for many groups use `compilePlacement`.
 * @throws PlacementError INVALID if fewer than `count` nodes have weight (see `PlaceOptions`), BAD_CONFIG
 */
export function place(topology: Topology, group: GroupId, count: number, options: PlaceOptions = {}): NodeId[] {
  return placerOf(topology, count, options).place(group);
}
