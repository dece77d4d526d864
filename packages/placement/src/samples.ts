import type { NodeId } from './ids.ts';
import type { PlacementAlgorithm } from './algorithm.ts';
import { streamDraw } from './decision-hash.ts';
import { placeableNodes } from './domains.ts';
import { type AlgorithmName, type Subcluster, type Topology, type TopologyNode, UNIT_WEIGHT } from './topology.ts';

/** Topologies for tests and experiments. */

export interface Chance {
  /** Uniform in 0..2^32−1. */
  uint32(): number;
  /** Uniform in 0..limit−1. */
  below(limit: number): number;
}

/** Chance that a seed repeats. */
export class SeededChance implements Chance {
  readonly #seed: number;
  #draws = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  uint32(): number {
    return streamDraw(this.#seed, this.#draws++);
  }

  below(limit: number): number {
    return Math.floor((this.uint32() / 4_294_967_296) * limit);
  }
}

/** `count` nodes of weight `weight` (1 is a unit) with ids from `firstId`, all with the same labels. */
export function subclusterOf(
  id: number,
  nodes: { firstId: number; count: number; weight: number; labels?: TopologyNode['labels'] },
): Subcluster {
  return {
    id,
    nodes: Array.from({ length: nodes.count }, (_, i) => ({
      id: (nodes.firstId + i) as NodeId,
      weight: nodes.weight * UNIT_WEIGHT,
      labels: nodes.labels ?? {},
    })),
  };
}

/** The set-up of RUSH's first published experiments: 3 × 5 nodes of weights 1, 2 and 4, three copies. */
export function foundingTopology(algorithm: AlgorithmName, seed: number): Topology {
  return {
    algorithm,
    version: 1,
    seed,
    copies: 3,
    subclusters: [1, 2, 4].map((weight, i) => subclusterOf(i + 1, { firstId: i * 5 + 1, count: 5, weight })),
  };
}

/** One rack that is one sub-cluster; its label is `r` and its number, its nodes have ids from ten times that number. */
export function rackOf(number: number, weight: number, count = 8): Subcluster {
  return subclusterOf(number, { firstId: number * 10, count, weight, labels: { rack: `r${number}` } });
}

/** 12 racks of 8 nodes; weights 1, 2, 4, four racks each, oldest first; three copies kept apart by rack. */
export function rackTopology(algorithm: AlgorithmName, seed: number): Topology {
  const subclusters = Array.from({ length: 12 }, (_, i) => rackOf(i + 1, [1, 2, 4][Math.floor(i / 4)]!));
  return { algorithm, version: 1, seed, copies: 3, domain: 'rack', subclusters };
}

/**
 * A topology nobody would draw by hand, but one that the algorithm supports: a few sub-clusters in a few racks, some nodes
 * drained, three copies.
 */
export function anyTopology(chance: Chance, algorithm: PlacementAlgorithm): Topology {
  const { fractionalWeights, wideSubclusters } = algorithm.supports;
  const subclusters: Subcluster[] = [];
  let id = 0;
  const racks = 1 + chance.below(6);
  const count = 1 + chance.below(6);
  for (let i = 0; i < count; i++) {
    const wide = wideSubclusters === 'every' || (wideSubclusters === 'oldest' && i === 0);
    const least = wide ? 3 : 0;
    const weight = 1 + chance.below(8);
    const nodes = Array.from({ length: Math.max(1, least) + chance.below(6) }, (_, n) => ({
      id: ((id += 1 + chance.below(3)), id as NodeId),
      weight:
        n >= least && chance.below(8) === 0 ? 0 : weight * UNIT_WEIGHT + (fractionalWeights ? chance.below(3) : 0),
      labels: { rack: `r${chance.below(racks)}` },
    }));
    subclusters.push({ id: i * 3 + 1, nodes });
  }
  const whole: Topology = {
    algorithm: algorithm.name as AlgorithmName,
    version: 1,
    seed: chance.uint32(),
    copies: 3,
    ...(chance.below(3) === 0 ? {} : { domain: 'rack' }),
    subclusters,
  };
  return placeableNodes(whole).length >= 3 ? whole : anyTopology(chance, algorithm);
}

/** The topology with every node changed by `change`. */
export function mapNodes(topology: Topology, change: (node: TopologyNode) => TopologyNode): Topology {
  const subclusters = topology.subclusters.map((subcluster) => ({
    ...subcluster,
    nodes: subcluster.nodes.map(change),
  }));
  return { ...topology, subclusters };
}

/** The topology without the nodes that `keep` refuses, and without sub-clusters that are empty then. */
export function keepNodes(topology: Topology, keep: (node: TopologyNode) => boolean): Topology {
  const subclusters = topology.subclusters
    .map((subcluster) => ({ ...subcluster, nodes: subcluster.nodes.filter(keep) }))
    .filter((subcluster) => subcluster.nodes.length > 0);
  return { ...topology, subclusters };
}
