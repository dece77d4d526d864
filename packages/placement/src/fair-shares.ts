import { algorithmOf } from './algorithms.ts';
import { domainShares } from './domain-shares.ts';
import { withoutDomains } from './domains.ts';
import type { NodeId } from './ids.ts';
import type { Topology } from './topology.ts';

/**
 * How many copies of a group each node should hold on average under the topology's algorithm: in proportion to weight, as far
 * as its domains allow where the algorithm keeps them apart.
 *
 * @throws PlacementError BAD_CONFIG
 */
export function fairShares(topology: Topology): Map<NodeId, number> {
  return domainShares(algorithmOf(topology).supports.domains ? topology : withoutDomains(topology));
}
