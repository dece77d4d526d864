export type { PlacementAlgorithm, Placer, Supports } from './algorithm.ts';
export { calibrate } from './calibrate.ts';
export { domainOf } from './domains.ts';
export { groupOf, hashKey, type KeyHash } from './key-hash.ts';
export { logUnit } from './logarithm.ts';
export { algorithmOf, place, type PlaceOptions } from './place.ts';
export { compilePlacement, type PlacementTable } from './placement-table.ts';
export {
  type AlgorithmName,
  ALGORITHMS,
  type Pin,
  type Subcluster,
  type Topology,
  type TopologyNode,
  type Weight,
} from './topology.ts';
export { type TopologyFindings, validateTopology } from './validate.ts';
