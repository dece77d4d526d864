import type { NodeId } from '../ids.ts';
import type { Weight } from '../topology.ts';
import type { Balance, NodeLoad } from './load.ts';
import type { Movement } from './movement.ts';
import type { Spread } from './spread.ts';

/** What an operator should know before a change. The codes are for programs, and stay. */
export interface PlanWarning {
  readonly code:
    | 'shortfall'
    | 'overfull-domain'
    | 'unlabelled'
    | 'few-groups'
    | 'much-movement'
    | 'no-room'
    | 'lost-pins'
    | 'removed-with-copies'
    | 'topology';
  readonly message: string;
}

/** One node, before and after; undefined where it is not in the topology. */
export interface NodePlan {
  readonly node: NodeId;
  readonly subcluster: number;
  /** By the topology's domain label, of after if it is there. */
  readonly domain: string;
  readonly weight: { readonly before: Weight | undefined; readonly after: Weight | undefined };
  readonly before: NodeLoad | undefined;
  readonly after: NodeLoad | undefined;
}

/** One of the two sides as a whole. */
export interface Standing {
  readonly algorithm: string;
  readonly copies: number;
  /** Those with weight. */
  readonly nodes: number;
  readonly pins: number;
  readonly balance: Balance | undefined;
  /** Of each kind of domain that either topology knows, outermost first. */
  readonly spread: readonly Spread[];
}

/** What a change of topology amounts to, before anything moves. Plain data, fit for JSON. */
export interface PlacementPlan {
  readonly groups: number;
  readonly movement: Movement;
  /** Copies that any placement by weight, within the rules for domains, must make. */
  readonly least: number;
  /** Copies made over the least; undefined where nothing need move. */
  readonly ofLeast: number | undefined;
  readonly before: Standing;
  readonly after: Standing;
  /** All nodes of both, by id. */
  readonly nodes: readonly NodePlan[];
  readonly warnings: readonly PlanWarning[];
}
