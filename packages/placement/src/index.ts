export type { PlacementAlgorithm, Placer, PublishInput, Supports } from './algorithm.ts';
export { algorithmOf } from './algorithms.ts';
export { asTopology } from './as-topology.ts';
export { balancePins, type BalanceOptions, type PinBalance } from './balance-pins.ts';
export { calibrate } from './calibrate.ts';
export { domainOf, placeableNodes } from './domains.ts';
export { fairShares } from './fair-shares.ts';
export { groupOf, hashKey, type KeyHash } from './key-hash.ts';
export { logUnit } from './logarithm.ts';
export { type GroupMove, leastMoves, movesBetween, weightShares } from './moves.ts';
export { place, type PlaceOptions } from './place.ts';
export type { Balance, NodeLoad } from './plan/load.ts';
export type { Flow, GroupBytes, Movement } from './plan/movement.ts';
export type { NodePlan, PlacementPlan, PlanWarning, Standing } from './plan/placement-plan.ts';
export { planChange, type PlanInput } from './plan/plan.ts';
export { DOMAIN_LABELS, type Spread } from './plan/spread.ts';
export { type ChangeOptions, changeTopology, type NodeChoice, type TopologyChange } from './plan/topology-change.ts';
export { PlacementError, type PlacementErrorCode } from './placement-error.ts';
export type { GroupId, NodeId } from './ids.ts';
export { type PublishOptions, publishTopology } from './publish.ts';
export type { Demands } from './refusals.ts';
export { compilePlacement, type PlacementTable } from './placement-table.ts';
export {
  type AlgorithmName,
  type DomainLabel,
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
