import type { PlacementAlgorithm } from './algorithm.ts';
import { withoutDomains } from './domains.ts';
import { WRD } from './wrd.ts';

/**
 * Weighted rendezvous, flat: every node scores ln(u) / (weight · its factor), the highest scores win, in order. That is WRD
 * where nothing but the node fails together.
 *
 * Cost: one hash and one logarithm per node.
 * Source: Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996; weights by exponential order times.
 */
export const RENDEZVOUS: PlacementAlgorithm = {
  ...WRD,
  name: 'rendezvous',
  supports: { ...WRD.supports, domains: false },
  prepare: (topology) => WRD.prepare(withoutDomains(topology)),
};
