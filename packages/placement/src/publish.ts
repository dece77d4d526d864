import { algorithmOf } from './algorithms.ts';
import { placeableNodes } from './domains.ts';
import { placerOf } from './place.ts';
import type { Topology } from './topology.ts';

export interface PublishOptions {
  /** log2 of the number of groups that a table shall cover, 0..16. */
  readonly groupBits: number;
  /** The topology published last, of any algorithm: one that remembers moves as little as it can from there. */
  readonly before?: Topology;
}

/**
 * The topology with what its algorithm stores in it: calibration factors, a table. To be called by whoever publishes a
 * topology, for planned changes; what an earlier algorithm stored goes. A topology of fewer nodes than copies gets nothing.
 *
 * @throws PlacementError BAD_CONFIG; INVALID if a table of so many groups cannot be, or the one before is none
 */
export function publishTopology(topology: Topology, options: PublishOptions): Topology {
  const { groupBits, before } = options;
  const { factors: _, table: __, ...plain } = topology;
  const algorithm = algorithmOf(topology);
  if (algorithm.publish === undefined || placeableNodes(topology).length < topology.copies) return plain;
  if (before === undefined) return algorithm.publish(plain, { groupBits });
  const { place: placed } = placerOf(before, topology.copies, { shortfall: 'fewer' });
  return algorithm.publish(plain, { groupBits, placed });
}
