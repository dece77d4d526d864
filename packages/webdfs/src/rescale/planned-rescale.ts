import type { NodeId, PolicyId } from '@webdfs/base';
import type { MapView, NewRescale, PlannedNode } from '@webdfs/cluster';
import { fairShares, type Topology } from '@webdfs/placement';
import type { GroupSizes } from '../group-sizes.ts';
import { bytesHeld, type GroupMoves, movesTowards } from './group-moves.ts';

/** Bytes that each node should hold by its weight. @param bytes  of all groups, a copy each */
function shareOf(topology: Topology, copies: number, bytes: number): ReadonlyMap<NodeId, number> {
  return new Map([...fairShares({ ...topology, copies })].map(([node, share]) => [node, share * bytes]));
}

/** Where nothing can be asked yet. */
const UNKNOWN: GroupSizes = { bytesOf: () => 0, ofPolicy: () => new Float64Array(0), isWhole: false };

/**
 * A change, as it is remembered: what it is to move from where the groups are now, and the least that must be moved.
 *
 * @param copiesOf  the copies that each policy is to have
 * @param sizes  undefined: nobody could say
 */
export function plannedRescale(
  view: MapView,
  target: Topology,
  {
    copiesOf,
    sizes,
    command,
    nowMs,
  }: {
    readonly copiesOf: (policy: PolicyId) => number;
    readonly sizes: GroupSizes | undefined;
    readonly command: string;
    readonly nowMs: number;
  },
): NewRescale {
  const moves = movesTowards(view, target, { copiesOf, sizes: sizes ?? UNKNOWN });
  const { groups, copies, bytes } = moves;
  if (sizes === undefined) {
    return { command, beganMs: nowMs, planned: { groups, copies }, open: { nodes: [], meters: [], lookedMs: nowMs } };
  }
  const policies = view.map.policies.map(({ id, copies: before }) => {
    return { before, after: copiesOf(id), bytes: sizes.ofPolicy(id).reduce((sum, size) => sum + size, 0) };
  });
  // where a change is under way, groups are somewhere in between
  const before =
    view.map.target === undefined
      ? summed(policies.map((policy) => shareOf(view.map.settled, policy.before, policy.bytes)))
      : bytesHeld(view, sizes);
  const after = summed(policies.map((policy) => shareOf(target, policy.after, policy.bytes)));
  const nodes = nodeRows(moves, before, after);
  const leastBytes = nodes.reduce((sum, [, held, wanted]) => sum + Math.max(0, wanted - held), 0);
  return {
    command,
    beganMs: nowMs,
    planned: { groups, copies, bytes, leastBytes },
    open: { nodes, meters: [], lookedMs: nowMs },
  };
}

function summed(shares: readonly ReadonlyMap<NodeId, number>[]): Map<NodeId, number> {
  const sum = new Map<NodeId, number>();
  for (const share of shares) for (const [node, bytes] of share) sum.set(node, (sum.get(node) ?? 0) + bytes);
  return sum;
}

function nodeRows(
  { usage }: GroupMoves,
  before: ReadonlyMap<NodeId, number>,
  after: ReadonlyMap<NodeId, number>,
): PlannedNode[] {
  const nodes = [...new Set([...before.keys(), ...after.keys(), ...usage.keys()])].toSorted((a, b) => a - b);
  return nodes.map((node): PlannedNode => {
    const { receive = 0, send = 0, read = 0 } = usage.get(node) ?? {};
    return [node, Math.round(before.get(node) ?? 0), Math.round(after.get(node) ?? 0), receive, send, read];
  });
}
