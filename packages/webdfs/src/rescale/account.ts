import type { NodeId } from '@webdfs/base';
import { type MapView, type NodeMeter, progressOf, type RescaleRecord, wantedCopies } from '@webdfs/cluster';
import type { NodeStatus } from '@webdfs/replica';
import type { GroupSizes } from '../group-sizes.ts';
import { groupsLeft } from './group-moves.ts';
import { measuredRates, measuredTimes } from './measured-times.ts';
import { plannedRescale } from './planned-rescale.ts';

/** What is seen of a cluster at one time. */
export interface Sight {
  readonly view: MapView;
  readonly statuses: ReadonlyMap<NodeId, NodeStatus>;
  readonly sizes: GroupSizes;
  readonly nowMs: number;
}

/** What meters show. @param before  empty: what they show is where they begin; a node that comes later began at nothing */
export function metersAfter(
  before: readonly NodeMeter[],
  { view, statuses }: Pick<Sight, 'view' | 'statuses'>,
): NodeMeter[] {
  const known = new Map(before.map((meter) => [meter[0], meter]));
  for (const [node, { moves }] of statuses) {
    const session = view.live(node)?.session ?? 0;
    const shown = moves?.receivedBytes ?? 0;
    const began: NodeMeter = [node, session, before.length === 0 ? shown : 0, 0];
    known.set(node, meterAfter(known.get(node) ?? began, session, shown));
  }
  return [...known.values()];
}

/** A meter begins at nothing with each session; what a node moved between its last look and its end is not known. */
function meterAfter([node, lastSession, lastShown, moved]: NodeMeter, session: number, shown: number): NodeMeter {
  const from = lastSession === session ? Math.min(lastShown, shown) : 0;
  return [node, session, shown, moved + shown - from];
}

/** A change that was begun when no node could say what it holds is planned when they can. */
function plannedAgain(record: RescaleRecord, { view, sizes, nowMs }: Sight): Pick<RescaleRecord, 'planned' | 'open'> {
  const { planned, open, command } = record;
  if (planned.bytes !== undefined || open === undefined || !sizes.isWhole) return record;
  const copiesOf = (policy: Parameters<MapView['policy']>[0]): number => wantedCopies(view.policy(policy));
  const again = plannedRescale(view, view.map.target ?? view.map.settled, { copiesOf, sizes, command, nowMs });
  return {
    planned: { ...planned, ...again.planned, groups: planned.groups, copies: planned.copies },
    open: { ...open, nodes: again.open!.nodes },
  };
}

/** The account of a change that goes on, as it stands now; as it was, if it is over. */
export function accountAfter(record: RescaleRecord, sight: Sight): RescaleRecord {
  const { planned, open } = plannedAgain(record, sight);
  if (open === undefined) return record;
  const { view, statuses, nowMs } = sight;
  const meters = metersAfter(open.meters, sight);
  const groups = Math.max(record.moved.groups, planned.groups - groupsLeft(view));
  const stood = view.map.paused === true ? Math.max(0, nowMs - open.lookedMs) : 0;
  const ratesOf = measuredRates(statuses, view.map.moveLimits?.bytesPerSecond);
  const copies = Math.max(...view.map.policies.map((policy) => policy.copies));
  const { nodes } = open;
  return {
    ...record,
    planned,
    moved: { bytes: meters.reduce((sum, [, , , moved]) => sum + moved, 0), groups },
    pausedMs: record.pausedMs + stood,
    ...(ratesOf === undefined || nodes.length === 0 ? {} : { figures: measuredTimes({ nodes, copies }, ratesOf) }),
    open: { nodes, meters, lookedMs: nowMs },
  };
}

/** The target of a change is reached; one that was given up is over when all groups are back. */
export function isOver({ command }: RescaleRecord, view: MapView): boolean {
  if (view.map.target !== undefined) return false;
  if (command !== ABORT_COMMAND) return true;
  const { groups, atGoal } = progressOf(view);
  return groups === atGoal;
}

/** How groups that go back are called. */
export const ABORT_COMMAND = 'cluster rescale abort';
