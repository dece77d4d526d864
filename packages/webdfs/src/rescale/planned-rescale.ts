import type { NodeId, PolicyId } from '@webdfs/base';
import type { MapView, NewRescale, PlannedNode } from '@webdfs/cluster';
import { fairShares, type Topology } from '@webdfs/placement';
import { copiesHeld, type GroupMoves, movesTowards } from './group-moves.ts';

/** Copies of groups that each node should hold by its weight. */
function shareOf(topology: Topology, copies: number, groups: number): ReadonlyMap<NodeId, number> {
  return new Map([...fairShares({ ...topology, copies })].map(([node, share]) => [node, share * groups]));
}

/** Fewer copies than that are what is left of halving. */
const NOTHING = 1e-6;

/**
 * A change, as it is remembered: what it is to move from where the groups are now, and the least that must be moved.
 *
 * @param copiesOf  the copies that each policy is to have
 * @param groupBytes  of one copy of a group; undefined: nobody could say
 */
export function plannedRescale(
  view: MapView,
  target: Topology,
  {
    copiesOf,
    groupBytes,
    command,
    nowMs,
  }: {
    readonly copiesOf: (policy: PolicyId) => number;
    readonly groupBytes: number | undefined;
    readonly command: string;
    readonly nowMs: number;
  },
): NewRescale {
  const moves = movesTowards(view, target, copiesOf);
  const groups = 2 ** view.map.groupBits;
  const policies = view.map.policies.map(({ id, copies }) => ({ before: copies, after: copiesOf(id) }));
  // where a change is under way, groups are somewhere in between
  const before =
    view.map.target === undefined
      ? summed(policies.map((policy) => shareOf(view.map.settled, policy.before, groups)))
      : copiesHeld(view);
  const after = summed(policies.map((policy) => shareOf(target, policy.after, groups)));
  const nodes = nodeRows(moves, before, after);
  const leastCopies = nodes.reduce((sum, [, held, wanted]) => sum + Math.max(0, wanted - held), 0);
  return {
    command,
    beganMs: nowMs,
    planned: {
      groups: moves.groups,
      copies: moves.copies,
      leastCopies: rounded(leastCopies < NOTHING ? 0 : leastCopies),
      ...(groupBytes === undefined ? {} : { bytes: Math.round(moves.copies * groupBytes) }),
    },
    open: { nodes, meters: [], lookedMs: nowMs },
  };
}

function summed(shares: readonly ReadonlyMap<NodeId, number>[]): Map<NodeId, number> {
  const sum = new Map<NodeId, number>();
  for (const share of shares) for (const [node, copies] of share) sum.set(node, (sum.get(node) ?? 0) + copies);
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
    return [node, rounded(before.get(node) ?? 0), rounded(after.get(node) ?? 0), receive, send, read];
  });
}

function rounded(copies: number): number {
  return Math.round(copies * 1_000) / 1_000;
}
