import type { NodeId } from './ids.ts';
import { mixWord } from './decision-hash.ts';
import type { Topology } from './topology.ts';

export interface LayerNode {
  readonly id: NodeId;
  readonly mixed: number;
  readonly weight: number;
}

/** A sub-cluster's nodes with weight, by id, and what lies below (is older than) it. */
export interface Layer {
  readonly id: number;
  readonly mixed: number;
  readonly nodes: readonly LayerNode[];
  readonly weight: number;
  /** Mean weight of a node: the papers assume one weight per sub-cluster. */
  readonly nodeWeight: number;
  readonly nodesBelow: number;
  readonly weightBelow: number;
}

/** The sub-clusters that have weight, newest first: the order of the walks of RUSH. */
export function layersOf(topology: Topology): Layer[] {
  const layers: Layer[] = [];
  let nodesBelow = 0;
  let weightBelow = 0;
  for (const subcluster of topology.subclusters) {
    const nodes = subcluster.nodes
      .filter((node) => node.weight > 0)
      .map((node) => ({ id: node.id, mixed: mixWord(node.id), weight: node.weight }))
      .sort((a, b) => a.id - b.id);
    if (nodes.length === 0) continue;
    const weight = nodes.reduce((sum, node) => sum + node.weight, 0);
    layers.unshift({
      id: subcluster.id,
      mixed: mixWord(subcluster.id),
      nodes,
      weight,
      nodeWeight: weight / nodes.length,
      nodesBelow,
      weightBelow,
    });
    nodesBelow += nodes.length;
    weightBelow += weight;
  }
  return layers;
}

/**
 * A prime that no sub-cluster's size and no number of copies reaches, so that steps of it never meet in either: the step of
 * RUSH_P and RUSH_T. One for all, because a prime that followed the sizes would move everything when a size changes.
 */
export const STEP = 65_537;
