import type { NodeId } from './ids.ts';
import type { Topology } from './topology.ts';

/** What an algorithm promises beyond the common invariants; the conformance suite and `validateTopology` ask it. */
export interface Supports {
  /** When the number of copies changes: `prefix` keeps the order and adds at the end, `nested` only keeps the members. */
  readonly order: 'prefix' | 'nested';
  /** Copies stay out of a domain that has one already, as long as others have fewer. */
  readonly domains: boolean;
  /** A node's change of weight moves copies only to or from that node (while what was published stays). */
  readonly exactReweight: boolean;
  /** New nodes only take copies: nothing moves between the old ones (while what was published stays). */
  readonly exactGrowth: boolean;
  /** Load in proportion to weight; `false`: every node with weight holds alike. */
  readonly weights: boolean;
  /** Takes weights that are no whole units of 65 536. */
  readonly fractionalWeights: boolean;
  /** Honours unequal weights inside a sub-cluster exactly. */
  readonly unevenSubclusters: boolean;
  /** Which sub-clusters must have as many nodes with weight as the topology asks copies for. */
  readonly wideSubclusters: 'none' | 'oldest' | 'every';
  /** What `publish` leaves in the topology. */
  readonly stores: 'nothing' | 'factors' | 'table';
  /** Fit for a cluster: a list follows from the map. `false`: a baseline for experiments that no map may name. */
  readonly lookup: boolean;
}

/**
 * The nodes of a group before pins: `count` distinct ones, in order.
 *
 * @param count  at most the number of nodes with weight
 */
export type Placer = (group: number, count: number) => NodeId[];

/** What a publisher tells an algorithm. */
export interface PublishInput {
  /** log2 of the number of groups that a table shall cover, 0..16. */
  readonly groupBits: number;
  /** Where the groups lie so far: algorithms that remember move as little as they can from there. */
  readonly placed?: (group: number) => readonly NodeId[];
}

/** One way to place groups. Everything it needs from a topology is prepared once. */
export interface PlacementAlgorithm {
  readonly name: string;
  readonly version: number;
  readonly supports: Supports;
  prepare(topology: Topology): Placer;
  /**
   * What the publisher of a topology computes once and stores in it (calibration factors, a table), so that readers need
   * not. Missing: nothing is stored.
   */
  publish?(topology: Topology, input: PublishInput): Topology;
}
