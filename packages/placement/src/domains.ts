import type { DomainLabel, Topology, TopologyNode } from './topology.ts';

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

/** Each label with those that lie around it. */
const AROUND: readonly (readonly [DomainLabel, DomainLabel])[] = [
  ['rack', 'zone'],
  ['machine', 'rack'],
  ['machine', 'zone'],
];

/** Domains that are not a tree: a rack in two zones, a machine in two racks. Each is named. */
export function checkNesting(topology: Topology): string[] {
  const errors: string[] = [];
  for (const [inner, outer] of AROUND) {
    const first = new Map<string, TopologyNode>();
    for (const node of topology.subclusters.flatMap((subcluster) => subcluster.nodes)) {
      const { [inner]: inside, [outer]: around } = node.labels;
      if (inside === undefined || around === undefined) continue;
      const other = first.get(inside);
      if (other === undefined) first.set(inside, node);
      else if (other.labels[outer] !== around) {
        errors.push(
          `${inner} ${inside} is in ${outer} ${other.labels[outer]} (node ${other.id}) and in ${outer} ${around} ` +
            `(node ${node.id}): domains lie inside each other, a name stands for one place`,
        );
        break;
      }
    }
  }
  return errors;
}
