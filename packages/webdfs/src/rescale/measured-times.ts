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
 * What each node may use, as far as it is known: the fastest that it was seen to take in or to send, or its cap if that is less.
 * Of a node that did neither yet, that of the fastest other is supposed, so that a bound remains one.
 *
 * @returns undefined as long as nothing was measured and nothing is capped
 */
export function measuredRates(
  statuses: ReadonlyMap<NodeId, NodeStatus>,
  cap = Infinity,
): ((node: NodeId) => Rates) | undefined {
  const seen = new Map<NodeId, number>();
  for (const [node, { moves }] of statuses) {
    const fastest = Math.max(moves?.fastestReceive ?? 0, moves?.fastestSend ?? 0);
    if (fastest > 0) seen.set(node, fastest);
  }
  const other = Math.max(...seen.values());
  if (seen.size === 0 && cap === Infinity) return undefined;
  return (node) => {
    const moves = statuses.get(node)?.moves;
    const fastest = seen.size === 0 ? Infinity : (seen.get(node) ?? other);
    return {
      network: Math.min(cap, fastest),
      read: moves === undefined || moves.readPerSecond === 0 ? Infinity : moves.readPerSecond,
      write: moves === undefined || moves.writePerSecond === 0 ? Infinity : moves.writePerSecond,
    };
  };
}

interface Change {
  readonly nodes: readonly PlannedNode[];
  /** Of one copy of a group. */
  readonly groupBytes: number;
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
export function measuredTimes({ nodes, groupBytes, copies }: Change, ratesOf: (node: NodeId) => Rates): MeasuredTimes {
  const shares = nodes.map(([node, before, after]): NodeShare => {
    return { before: before * groupBytes, after: after * groupBytes, rates: ratesOf(asNodeId(node)) };
  });
  const bounds = [unequalBound(shares, copies), uniformBound(shares, copies)].filter((bound) => bound !== undefined);
  const bound = bounds.reduce((a, b) => (b.seconds > a.seconds ? b : a));
  const paces = nodes.map(([node, , , receive, send, read]): Pace => {
    const usage = {
      receive: receive * groupBytes,
      send: send * groupBytes,
      read: read * groupBytes,
      write: receive * groupBytes,
    };
    return paceOf(asNodeId(node), usage, ratesOf(asNodeId(node)));
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
