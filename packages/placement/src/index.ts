export type { PlacementAlgorithm, Placer, PublishOptions, Supports } from './algorithm.ts';
export { algorithmOf, publishTopology } from './algorithms.ts';
export { calibrate } from './calibrate.ts';
export { domainOf, placeableNodes } from './domains.ts';
export { groupOf, hashKey, type KeyHash } from './key-hash.ts';
export { logUnit } from './logarithm.ts';
export { type GroupMove, leastMoves, movesBetween, weightShares } from './moves.ts';
export { place, type PlaceOptions } from './place.ts';
export { compilePlacement, type PlacementTable } from './placement-table.ts';
export {
  type AlgorithmName,
  ALGORITHMS,
  type Pin,
  type PublishedTable,
  type Subcluster,
  type Topology,
  type TopologyNode,
  UNIT_WEIGHT,
  type Weight,
} from './topology.ts';
export { type TopologyFindings, validateTopology } from './validate.ts';
