import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm, Placer } from './algorithm.ts';
import { byRank } from './by-rank.ts';
import { decide, groupState, SALT } from './decision-hash.ts';
import { type Layer, layersOf, STEP } from './layers.ts';
import { type Topology, UNIT_WEIGHT } from './topology.ts';

/** A layer's weights in whole units: the algorithm reckons modulo their sum. */
interface Stage {
  readonly layer: Layer;
  readonly weight: number;
  readonly total: number;
  /** The weight whose draws end here: all of the layer, or as if it had a node for each copy. */
  readonly reach: number;
  /** What the node number is taken modulo. */
  readonly slots: number;
}

function stagesOf(topology: Topology): Stage[] {
  return layersOf(topology).map((layer) => {
    const weight = layer.weight / UNIT_WEIGHT;
    const wide = layer.nodes.length >= topology.copies;
    return {
      layer,
      weight,
      total: weight + layer.weightBelow / UNIT_WEIGHT,
      reach: wide ? weight : (topology.copies * layer.nodeWeight) / UNIT_WEIGHT,
      slots: wide ? layer.nodes.length : topology.copies,
    };
  });
}

/** A 53-bit draw: totals of large clusters come near 2^32, where a remainder of 32 bits would not be even. */
function wideDraw(state: number, layer: Layer): number {
  const high = decide(state, layer.mixed, SALT.SUBCLUSTER) >>> 11;
  return high * 4_294_967_296 + decide(state, layer.mixed, SALT.SUBCLUSTER_LOW);
}

function prepare(topology: Topology): Placer {
  const stages = stagesOf(topology);
  return byRank(topology, (group, rank): NodeId | undefined => {
    const state = groupState(topology.seed, group);
    const key = decide(state, 0, SALT.KEY);
    for (const { layer, total, reach, slots } of stages) {
      const draw = Math.floor(wideDraw(state, layer) % total);
      const at = (key + draw + rank * STEP) % slots;
      if ((draw + rank * STEP) % total < reach && at < layer.nodes.length) return layer.nodes[at]!.id;
    }
    return undefined;
  });
}

/**
 * RUSH_P, the first of the family: each copy walks from the newest sub-cluster to the oldest and steps by multiples of a
 * prime, so that no two copies meet. Adding a sub-cluster moves only what it must; every other change moves nearly all.
 *
 * Weights are whole numbers. The oldest sub-cluster must have a node for each copy, or ranks fall off the end of the walk
 * (here they go to the rendezvous order). Streams are seeded by sub-cluster id.
 * Cost: linear in the sub-clusters for each copy.
 * Source: Honicky and Miller, "A Fast Algorithm for Online Placement and Reorganization of Replicated Data", IPDPS 2003.
 */
export const RUSH_P: PlacementAlgorithm = {
  name: 'rush-p',
  version: 1,
  supports: {
    order: 'prefix',
    domains: false,
    exactReweight: false,
    exactGrowth: true,
    weights: true,
    fractionalWeights: false,
    unevenSubclusters: false,
    wideSubclusters: 'oldest',
    stores: 'nothing',
    lookup: true,
  },
  prepare,
};
