import type { NodeId } from '@webdfs/base';
import { type MapView, type NodeMeter, progressOf, type RescaleRecord } from '@webdfs/cluster';
import type { NodeStatus } from '@webdfs/replica';
import { groupBytes } from './group-bytes.ts';
import { copiesHeld, movesLeft } from './group-moves.ts';
import { measuredRates, measuredTimes } from './measured-times.ts';

/** What is seen of a cluster at one time. */
export interface Sight {
  readonly view: MapView;
  readonly statuses: ReadonlyMap<NodeId, NodeStatus>;
  readonly nowMs: number;
}

/** A meter begins at nothing with each session; what a node moved between its last look and its end is not known. */
function metersAfter(before: readonly NodeMeter[], { view, statuses }: Sight): { meters: NodeMeter[]; bytes: number } {
  const known = new Map(before.map((meter) => [meter[0], meter]));
  const isFirst = before.length === 0;
  let bytes = 0;
  for (const [node, { moves }] of statuses) {
    const session = view.live(node)?.session ?? 0;
    const shown = moves?.receivedBytes ?? 0;
    const last = known.get(node);
    // of the first look only the position counts; a node that comes later has moved all of it for this change
    if (last !== undefined || !isFirst) bytes += shown - (last?.[1] === session ? Math.min(last[2], shown) : 0);
    known.set(node, [node, session, shown]);
  }
  return { meters: [...known.values()], bytes };
}

/** Bytes of one copy of a group, as the change was planned with, else as they are now. */
export function bytesOfCopy({ planned }: RescaleRecord, { view, statuses }: Sight): number | undefined {
  if (planned.bytes !== undefined && planned.copies > 0) return planned.bytes / planned.copies;
  return groupBytes(copiesHeld(view), statuses);
}

/** The account of a change that goes on, as it stands now; as it was, if it is over. */
export function accountAfter(record: RescaleRecord, sight: Sight): RescaleRecord {
  const { open, planned } = record;
  if (open === undefined) return record;
  const { view, statuses, nowMs } = sight;
  const { meters, bytes } = metersAfter(open.meters, sight);
  const copyBytes = bytesOfCopy(record, sight);
  const groups = Math.max(0, planned.groups - movesLeft(view).groups);
  const stood = view.map.paused === true ? Math.max(0, nowMs - open.lookedMs) : 0;
  const ratesOf = measuredRates(statuses, view.map.moveLimits?.bytesPerSecond);
  const copies = Math.max(...view.map.policies.map((policy) => policy.copies));
  const isKnown = ratesOf !== undefined && copyBytes !== undefined && open.nodes.length > 0;
  return {
    ...record,
    planned: { ...planned, ...(copyBytes === undefined ? {} : { bytes: Math.round(copyBytes * planned.copies) }) },
    moved: { bytes: record.moved.bytes + bytes, groups: Math.max(record.moved.groups, groups) },
    pausedMs: record.pausedMs + stood,
    ...(isKnown ? { figures: measuredTimes({ nodes: open.nodes, groupBytes: copyBytes, copies }, ratesOf) } : {}),
    open: { ...open, meters, lookedMs: nowMs },
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
