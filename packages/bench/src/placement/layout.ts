import { asNodeId, type NodeId } from '@webdfs/base';
import { type Subcluster, type TopologyNode, UNIT_WEIGHT } from '@webdfs/placement';

/** Sub-clusters and what is done to them; weights in whole units here, in 16.16 inside. */

export type Subclusters = readonly Subcluster[];

/** `count` nodes of one weight with ids from `first` on; its own rack, named for its id. */
export function subcluster(id: number, nodes: { first: number; count: number; weight: number }): Subcluster {
  return {
    id,
    nodes: Array.from({ length: nodes.count }, (_, i) => ({
      id: asNodeId(nodes.first + i),
      weight: nodes.weight * UNIT_WEIGHT,
      labels: { rack: `rack-${id}` },
    })),
  };
}

/** Sub-clusters of `size` nodes each, one per weight, ids from 1 on. */
export function subclustersOf(weights: readonly number[], size: number): Subclusters {
  return weights.map((weight, i) => subcluster(i + 1, { first: i * size + 1, count: size, weight }));
}

function changeNodes(subclusters: Subclusters, change: (node: TopologyNode, subclusterId: number) => TopologyNode[]) {
  return subclusters.map(({ id, nodes }) => ({ id, nodes: nodes.flatMap((node) => change(node, id)) }));
}

/** Weights times `factor` in one sub-cluster; 0 drains it. */
export function scaleSubcluster(subclusters: Subclusters, id: number, factor: number): Subclusters {
  return changeNodes(subclusters, (node, home) => [home === id ? { ...node, weight: node.weight * factor } : node]);
}

export function scaleNode(subclusters: Subclusters, id: NodeId, factor: number): Subclusters {
  return changeNodes(subclusters, (node) => [node.id === id ? { ...node, weight: node.weight * factor } : node]);
}

/** A sub-cluster that has no nodes left goes, too. */
export function dropNode(subclusters: Subclusters, id: NodeId): Subclusters {
  return changeNodes(subclusters, (node) => (node.id === id ? [] : [node])).filter(({ nodes }) => nodes.length > 0);
}

export function dropSubcluster(subclusters: Subclusters, id: number): Subclusters {
  return subclusters.filter((subcluster) => subcluster.id !== id);
}

/** One more node in a sub-cluster, like its last one. @param id  one that is not taken */
export function growSubcluster(subclusters: Subclusters, subclusterId: number, id: NodeId): Subclusters {
  return subclusters.map((home) =>
    home.id === subclusterId ? { id: home.id, nodes: [...home.nodes, { ...home.nodes.at(-1)!, id }] } : home,
  );
}

export function nodesOf(subclusters: Subclusters): TopologyNode[] {
  return subclusters.flatMap(({ nodes }) => nodes);
}

export function totalWeight(subclusters: Subclusters): number {
  return nodesOf(subclusters).reduce((sum, node) => sum + node.weight, 0);
}
