import { asNodeId, type NodeId } from '@webdfs/base';
import { type Bound, commissionBound, decommissionBound, type Rates } from '@webdfs/rescale';
import type { Membership } from './parts.ts';

/** Nodes join or leave: what is asked of a run, whoever does it. */
export interface Scenario {
  /** Nodes before. */
  readonly nodes: number;
  /** More of them, or fewer if negative. */
  readonly change: number;
  readonly copies: number;
  readonly bytesPerNode: number;
}

/** As in `10 + 30`. */
export function nameOf({ nodes, change }: Scenario): string {
  return `${nodes} ${change < 0 ? '−' : '+'} ${Math.abs(change)}`;
}

/** Nodes 1, 2 and so on; the last ones join or leave. */
export function membershipOf({ nodes, change, copies }: Scenario): Membership {
  const ids = (count: number): NodeId[] => Array.from({ length: count }, (_, i) => asNodeId(i + 1));
  return { before: ids(nodes), after: ids(nodes + change), copies };
}

export function boundFor({ nodes, change, copies, bytesPerNode }: Scenario, rates: Rates): Bound {
  const setup = { nodes, change: Math.abs(change), copies, bytesPerNode };
  return change < 0 ? decommissionBound(setup, rates) : commissionBound(setup, rates);
}

/** The published platform: 50 GB a node, three copies, 10 Gbit/s. */
export const PLATFORM = { copies: 3, bytesPerNode: 50e9, network: 1.25e9, drive: 0.2e9 } as const;

export function platformScenario(nodes: number, change: number): Scenario {
  return { nodes, change, copies: PLATFORM.copies, bytesPerNode: PLATFORM.bytesPerNode };
}
