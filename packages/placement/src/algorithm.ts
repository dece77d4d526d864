import type { NodeId } from '@webdfs/base';
import type { AlgorithmName, Topology } from './topology.ts';

/** What an algorithm promises beyond the common invariants; the conformance suite asks it. */
export interface Supports {
  /** When the number of copies changes: `prefix` keeps the order and adds at the end, `nested` only keeps the members. */
  readonly order: 'prefix' | 'nested';
  /** Copies stay out of a domain that has one already, as long as others have fewer. */
  readonly domains: boolean;
  /** A node's change of weight moves copies only to or from that node (while the calibration factors stay). */
  readonly exactReweight: boolean;
  /** Honours unequal weights inside a sub-cluster exactly. */
  readonly unevenSubclusters: boolean;
}

/**
 * The nodes of a group before pins: `count` distinct ones, in order.
 *
 * @param count  at most the number of nodes with weight
 */
export type Placer = (group: number, count: number) => NodeId[];

/** One way to place groups. Everything it needs from a topology is prepared once. */
export interface PlacementAlgorithm {
  readonly name: AlgorithmName;
  readonly version: 1;
  readonly supports: Supports;
  prepare(topology: Topology): Placer;
}
