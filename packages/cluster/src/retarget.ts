import { asNodeId, type NodeId, type PolicyId, type Revision, WebdfsError } from '@webdfs/base';
import { type Topology, validateTopology } from '@webdfs/placement';
import { formatDocument, LEAST_MOVE_BYTES, LEAST_MOVE_SHARE, MOST_MOVE_BYTES, MOST_OUT_AFTER_MS } from './documents.ts';
import { type Joining, parseJoining } from './founding.ts';
import { diskKey, JOIN_PREFIX, joinKey, MAP_KEY } from './keys.ts';
import type { ClusterMap, MoveLimits, Policy } from './map.ts';
import type { Compare, MapContents, Transaction, Write } from './map-store.ts';
import { allGroups } from './map-view.ts';
import { mostCopies, type PolicyNumbers, policyTowards, withoutTarget } from './policy-change.ts';
import { atGoal } from './propose.ts';
import type { MapView } from './view.ts';

/** What an operator changes of a cluster that runs: where groups are to lie, and whether they move now. */

/** A data folder that asks for a place in a cluster that is there. */
export interface WaitingFolder {
  readonly storeId: string;
  readonly joining: Joining;
  readonly revision: Revision;
}

/** Those that ask, in the order in which they came. @throws CORRUPT */
export function waitingFolders(contents: MapContents): readonly WaitingFolder[] {
  return contents.entries
    .filter(({ key }) => key.startsWith(JOIN_PREFIX))
    .toSorted((a, b) => a.createRevision - b.createRevision)
    .map(({ key, value, modRevision }) => ({
      storeId: key.slice(JOIN_PREFIX.length),
      joining: parseJoining(key, value),
      revision: modRevision,
    }));
}

/** How far a rescale is. */
export interface RescaleProgress {
  readonly groups: number;
  /** Groups whose members are those that they should have. */
  readonly atGoal: number;
}

export function progressOf(view: MapView): RescaleProgress {
  let groups = 0;
  let there = 0;
  for (const group of allGroups(view.map)) {
    groups++;
    if (atGoal(view.group(group))) there++;
  }
  return { groups, atGoal: there };
}

function mapIs(view: MapView): Compare {
  return { type: 'modified', key: MAP_KEY, is: view.mapRevision };
}

function mapWrite(map: ClusterMap): Write {
  return { type: 'put', key: MAP_KEY, value: formatDocument(map) };
}

function idsOf({ subclusters }: Topology): NodeId[] {
  return subclusters.flatMap(({ nodes }) => nodes.map(({ id }) => asNodeId(id)));
}

/**
 * Nodes of `target` that the map does not have yet, ascending. One that runs is none of them: it has a folder still, though the
 * target that brought it was given up, and another folder under its id could never start.
 */
export function newNodesOf(view: MapView, target: Topology): NodeId[] {
  const known = new Set(view.nodes());
  return idsOf(target)
    .filter((node) => !known.has(node) && view.live(node) === undefined)
    .toSorted((a, b) => a - b);
}

/** What comes with a target. */
export interface TargetOptions {
  /** They get the places of the new nodes, in order. */
  readonly folders?: readonly WaitingFolder[];
  /** Numbers of copies that policies are to have; of one that is not named they stay. */
  readonly policies?: ReadonlyMap<PolicyId, PolicyNumbers>;
}

function policiesTowards(
  view: MapView,
  wanted: TargetOptions['policies'],
): { readonly policies: readonly Policy[]; readonly compare: readonly Compare[] } {
  const changed = view.map.policies.map((policy) => {
    const numbers = wanted?.get(policy.id);
    return numbers === undefined ? { policy, compare: [] } : policyTowards(view, policy, numbers);
  });
  const [some = []] = changed.map(({ compare }) => compare).filter((compare) => compare.length > 0);
  return { policies: changed.map(({ policy }) => policy), compare: some };
}

/**
 * Another target, in the place of one that may be there (protocol, section 7, "Topology"): groups go to their new goals from
 * wherever they are. Each new node may be given to a folder that waits, in the same transaction.
 *
 * @throws INVALID for a topology that cannot place all copies
 */
export function proposeTarget(
  view: MapView,
  target: Topology,
  { folders = [], policies: wanted }: TargetOptions = {},
): Transaction {
  const { policies, compare } = policiesTowards(view, wanted);
  const copies = mostCopies(policies);
  const { errors } = validateTopology({ ...target, copies });
  if (errors.length > 0) throw new WebdfsError('INVALID', `there can be no such cluster: ${errors.join('; ')}`);
  const added = newNodesOf(view, target);
  if (folders.length > added.length) {
    throw new WebdfsError('INVALID', `${folders.length} folders for ${added.length} new nodes that do not run yet`);
  }
  const places = folders.map((folder, i) => ({ folder, node: added[i]! }));
  return {
    compare: [
      mapIs(view),
      ...compare,
      ...places.flatMap(({ folder, node }): Compare[] => [
        { type: 'modified', key: joinKey(folder.storeId), is: folder.revision },
        { type: 'modified', key: diskKey(node), is: view.disk(node)?.revision ?? 0 },
      ]),
    ],
    write: [
      mapWrite({ ...view.map, policies, target }),
      // it waits no more: the next change, a moment later, must not give it a second place
      ...places.flatMap(({ folder, node }): Write[] => [
        { type: 'put', key: diskKey(node), value: formatDocument({ id: folder.storeId, founding: false }) },
        { type: 'delete', key: joinKey(folder.storeId) },
      ]),
    ],
  };
}

/** No target: groups go back to where the settled topology has them. @throws NOT_FOUND if there is none */
export function proposeAbort(view: MapView): Transaction {
  if (view.map.target === undefined) throw new WebdfsError('NOT_FOUND', 'no change is under way');
  return { compare: [mapIs(view)], write: [mapWrite(withoutTarget(view.map))] };
}

/** Groups that have all their copies stay where they are, or move again. */
export function proposePause(view: MapView, paused: boolean): Transaction {
  const { paused: _, ...rest } = view.map;
  return { compare: [mapIs(view)], write: [mapWrite(paused ? { ...rest, paused } : rest)] };
}

/** From now on a node that is away for so long is written off, milliseconds; 0: none ever is. @throws INVALID */
export function proposeOutAfter(view: MapView, outAfterMs: number): Transaction {
  if (!(Number.isSafeInteger(outAfterMs) && outAfterMs >= 0 && outAfterMs <= MOST_OUT_AFTER_MS)) {
    throw new WebdfsError('INVALID', `nodes are written off after ${outAfterMs} ms, not a whole number of them`);
  }
  return { compare: [mapIs(view)], write: [mapWrite({ ...view.map, outAfterMs })] };
}

/** What moving may take from now on; nothing named: it is not limited. @throws INVALID */
export function proposeMoveLimits(view: MapView, limits: MoveLimits): Transaction {
  const { bytesPerSecond, share } = limits;
  const isRate = (rate: number): boolean =>
    Number.isSafeInteger(rate) && rate >= LEAST_MOVE_BYTES && rate <= MOST_MOVE_BYTES;
  if (bytesPerSecond !== undefined && !isRate(bytesPerSecond)) {
    const bounds = `${LEAST_MOVE_BYTES} to ${MOST_MOVE_BYTES}`;
    throw new WebdfsError('INVALID', `a rate of ${bytesPerSecond}, not a whole number of ${bounds} bytes per second`);
  }
  if (share !== undefined && !(share >= LEAST_MOVE_SHARE && share <= 1)) {
    throw new WebdfsError('INVALID', `a share of ${share}, ${LEAST_MOVE_SHARE} to 1 make sense`);
  }
  const { moveLimits: _, ...rest } = view.map;
  const isNone = bytesPerSecond === undefined && share === undefined;
  return { compare: [mapIs(view)], write: [mapWrite(isNone ? rest : { ...rest, moveLimits: limits })] };
}
