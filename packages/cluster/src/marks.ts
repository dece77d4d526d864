import { assert, type NodeId, type Revision } from '@webdfs/base';
import { formatDocument, MAX_EARLIER_MARKS } from './documents.ts';
import { CONTROLLER_KEY, downKey, liveKey } from './keys.ts';
import type { DownInfo } from './map.ts';
import type { Compare, Transaction, Write } from './map-store.ts';
import { allGroups } from './map-view.ts';
import type { MapView } from './view.ts';

/**
 * The mark that follows a node's present one. It lists those before it: a group that has not taken the node back since an
 * earlier one was left then. Were it counted as left now, it would be eligible although the others went on without it.
 */
export function markAfter(map: MapView, node: NodeId, reason: string, session: Revision): DownInfo {
  const down = map.down(node);
  if (down === undefined) return { reason, session };
  const marks = [...(down.info.earlier ?? []), down.mark];
  const dropped = marks.slice(0, Math.max(0, marks.length - MAX_EARLIER_MARKS));
  const forgets = dropped.at(-1) ?? down.info.forgets;
  return {
    reason,
    session,
    earlier: marks.slice(dropped.length),
    ...(forgets === undefined ? {} : { forgets }),
  };
}

/** The compare and the write that mark a node, for whoever has the right to (see those who call it). */
export function markWrite(
  map: MapView,
  node: NodeId,
  reason: string,
  session: Revision,
): { readonly compare: Compare; readonly write: Write } {
  return {
    compare: { type: 'modified', key: downKey(node), is: map.down(node)?.mark ?? 0 },
    write: { type: 'put', key: downKey(node), value: formatDocument(markAfter(map, node, reason, session)) },
  };
}

/** By the controller: a node without a session. One write takes it out of all its groups. */
export function proposeLost(map: MapView, node: NodeId, controller: Revision): Transaction {
  assert(map.live(node) === undefined, 'a node is lost when it has no session');
  const mark = markWrite(map, node, 'lost', 0);
  return {
    compare: [
      { type: 'created', key: CONTROLLER_KEY, is: controller },
      { type: 'modified', key: liveKey(node), is: 0 },
      mark.compare,
    ],
    write: [mark.write],
  };
}

/** By the controller: a node that lives but is hung, cut off or accused. Its session goes into the fence of its groups. */
export function proposeAccused(map: MapView, node: NodeId, reason: string, controller: Revision): Transaction {
  const live = map.live(node);
  assert(live !== undefined, 'an accused node lives');
  const mark = markWrite(map, node, reason, live.session);
  return {
    compare: [
      { type: 'created', key: CONTROLLER_KEY, is: controller },
      { type: 'modified', key: liveKey(node), is: live.session },
      mark.compare,
    ],
    write: [mark.write],
  };
}

/** Whether a node counts as in sync somewhere: only then does marking it change anything. */
export function inSyncSomewhere(map: MapView, node: NodeId): boolean {
  for (const group of allGroups(map.map)) if (map.group(group).inSync.includes(node)) return true;
  return false;
}

/** A mark that no configuration needs any more: each that lists the node is newer. Stays true once it is. */
export function isSpent(map: MapView, node: NodeId): boolean {
  const down = map.down(node);
  if (down === undefined) return false;
  for (const group of allGroups(map.map)) {
    const view = map.group(group);
    const listed = view.members.includes(node) || map.override(group)?.value.eligible.includes(node) === true;
    if (listed && view.configRevision <= down.mark) return false;
  }
  return true;
}

export function proposeUnmark(map: MapView, node: NodeId, controller: Revision): Transaction {
  const down = map.down(node);
  assert(down !== undefined, 'a mark is there to be removed');
  return {
    compare: [
      { type: 'created', key: CONTROLLER_KEY, is: controller },
      { type: 'modified', key: downKey(node), is: down.mark },
    ],
    write: [{ type: 'delete', key: downKey(node) }],
  };
}
