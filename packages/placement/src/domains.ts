import type { Topology, TopologyNode } from './topology.ts';

/** Sets apart the domain of a node without the label from every label: labels must not begin with it. */
export const OWN_DOMAIN = '#';

/** The domain of a node: the value of the topology's domain label, or the node itself. The key of its calibration factor. */
export function domainOf(topology: Topology, node: TopologyNode): string {
  const label = topology.domain === undefined ? undefined : node.labels[topology.domain];
  return label ?? `${OWN_DOMAIN}${node.id}`;
}

/** The nodes that may hold copies: those with weight, in the order of the topology. */
export function placeableNodes(topology: Topology): TopologyNode[] {
  return topology.subclusters.flatMap((subcluster) => subcluster.nodes.filter((node) => node.weight > 0));
}

/** Total weight of each domain that has any. */
export function domainWeights(topology: Topology): Map<string, number> {
  const weights = new Map<string, number>();
  for (const node of placeableNodes(topology)) {
    const domain = domainOf(topology, node);
    weights.set(domain, (weights.get(domain) ?? 0) + node.weight);
  }
  return weights;
}

/** The topology as nodes alone: every node is a domain of its own. */
export function withoutDomains(topology: Topology): Topology {
  const { domain: _, ...flat } = topology;
  return flat;
}
