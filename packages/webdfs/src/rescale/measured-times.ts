import { asNodeId, type NodeId } from '@webdfs/base';
import type { MeasuredTimes, PlannedNode } from '@webdfs/cluster';
import type { NodeStatus } from '@webdfs/replica';
import {
  type Bound,
  commissionBound,
  decommissionBound,
  type NodeShare,
  type Pace,
  paceOf,
  type Rates,
  unequalBound,
} from '@webdfs/rescale';

/**
 * What each node may use, as far as it is known: the fastest that any was seen to take in or to send, or its cap if that is less.
 * A node that was slower may not have been asked for more, so that of all the fastest makes a bound that is one. Devices are as
 * fast as each was while it was busy.
 *
 * @returns undefined as long as nothing was measured and nothing is capped
 */
export function measuredRates(
  statuses: ReadonlyMap<NodeId, NodeStatus>,
  cap = Infinity,
): ((node: NodeId) => Rates) | undefined {
  let fastest = 0;
  for (const { moves } of statuses.values()) {
    fastest = Math.max(fastest, moves?.fastestReceive ?? 0, moves?.fastestSend ?? 0);
  }
  if (fastest === 0 && cap === Infinity) return undefined;
  const network = Math.min(cap, fastest === 0 ? Infinity : fastest);
  return (node) => {
    const moves = statuses.get(node)?.moves;
    return {
      network,
      read: moves === undefined || moves.readPerSecond === 0 ? Infinity : moves.readPerSecond,
      write: moves === undefined || moves.writePerSecond === 0 ? Infinity : moves.writePerSecond,
    };
  };
}

interface Change {
  readonly nodes: readonly PlannedNode[];
  /** Of each group. */
  readonly copies: number;
}

/** Nodes of one share join or leave those of the same share: then uniform placement has more to say than the shares alone. */
function uniformBound(shares: readonly NodeShare[], copies: number): Bound | undefined {
  const [before, after] = [shares.filter((node) => node.before > 0), shares.filter((node) => node.after > 0)];
  const isEven = (nodes: readonly NodeShare[], side: 'before' | 'after'): boolean =>
    nodes.every((node) => Math.abs(node[side] - nodes[0]![side]) <= 0.01 * nodes[0]![side]);
  if (!isEven(before, 'before') || !isEven(after, 'after')) return undefined;
  const joined = after.filter((node) => node.before === 0).length;
  const left = before.filter((node) => node.after === 0).length;
  const fastest: Rates = {
    network: Math.max(...shares.map(({ rates }) => rates.network)),
    read: Math.max(...shares.map(({ rates }) => rates.read)),
    write: Math.max(...shares.map(({ rates }) => rates.write)),
  };
  const setup = { nodes: before.length, copies, bytesPerNode: before[0]?.before ?? 0 };
  if (joined > 0 && left === 0 && before.length >= copies) {
    return commissionBound({ ...setup, change: joined }, fastest);
  }
  if (left > 0 && joined === 0 && after.length >= copies) {
    return decommissionBound({ ...setup, change: left }, fastest);
  }
  return undefined;
}

/** T_bound and T_plan by rates that were measured, with what sets them. */
export function measuredTimes({ nodes, copies }: Change, ratesOf: (node: NodeId) => Rates): MeasuredTimes {
  const shares = nodes.map(([node, before, after]): NodeShare => {
    return { before, after, rates: ratesOf(asNodeId(node)) };
  });
  const bounds = [unequalBound(shares, copies), uniformBound(shares, copies)].filter((bound) => bound !== undefined);
  const bound = bounds.reduce((a, b) => (b.seconds > a.seconds ? b : a));
  const paces = nodes.map(([node, , , receive, send, read]): Pace => {
    return paceOf(asNodeId(node), { receive, send, read, write: receive }, ratesOf(asNodeId(node)));
  });
  const pace = paces.reduce((a, b) => (b.seconds > a.seconds ? b : a));
  return {
    boundSeconds: bound.seconds,
    boundBy: bound.resource,
    planSeconds: pace.seconds,
    paceNode: pace.node,
    paceBy: pace.resource,
  };
}
