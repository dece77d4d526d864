import { messageOf, WebdfsError } from '@webdfs/base';
import {
  type MapContents,
  type MapView,
  type MoveLimits,
  newNodesOf,
  proposeAbort,
  proposeMoveLimits,
  proposeOutAfter,
  proposePause,
  proposeTarget,
  type Transaction,
  type WaitingFolder,
  waitingFolders,
} from '@webdfs/cluster';
import { changeTopology as changed, PlacementError, type Topology } from '@webdfs/placement';
import { parseChange } from './change-words.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { TopologyReport } from './reports.ts';
import { topologyReport } from './topology-report.ts';

type Parameter = (name: string) => string | undefined;

const MAX_CHANGES = 64;

/** The topology that changes start from: where the groups are being led already. */
function presentOf({ map }: MapView): Topology {
  return map.target ?? map.settled;
}

function targetOf(view: MapView, words: readonly string[], parameter: Parameter): Topology {
  const balance = parameter('balance') === 'yes';
  const options = { groupBits: view.map.groupBits, keepFactors: parameter('keep-factors') === 'yes', balance };
  const changes = words.map(parseChange);
  if (changes.some(({ type }) => type === 'copies')) {
    throw new WebdfsError(
      'UNSUPPORTED',
      'a running cluster keeps its number of copies: another number is another policy',
    );
  }
  try {
    return changed(presentOf(view), changes, options);
  } catch (error) {
    if (error instanceof PlacementError) throw new WebdfsError('INVALID', messageOf(error), { cause: error });
    throw error;
  }
}

/** The folders that are to have the new nodes' places: those named, in that order. */
function foldersOf(waiting: readonly WaitingFolder[], named: readonly string[]): readonly WaitingFolder[] {
  return named.map((name) => {
    const folder = waiting.find(({ storeId }) => storeId === name);
    if (folder === undefined) throw new WebdfsError('NOT_FOUND', `no folder ${name} asks for a place any more`);
    return folder;
  });
}

/** A node without a folder would never come: its groups would wait for it for ever. */
function requireFolders(access: ClusterAccess, target: Topology, folders: readonly WaitingFolder[]): void {
  // on one machine the supervisor starts whatever the map has
  const nodes = newNodesOf(access.map.view, target).filter((node) => access.folderOf(node) === undefined);
  if (nodes.length <= folders.length) return;
  throw new WebdfsError(
    'INVALID',
    `nodes ${nodes.slice(folders.length).join(', ')} would have no folder: start them with "webdfs node --join" first`,
  );
}

/** What is not named stays as it is; `none` lifts it. */
function moveLimitsOf(view: MapView, parameter: Parameter): MoveLimits {
  const before = view.map.moveLimits ?? {};
  const limitOf = (word: string | undefined, present: number | undefined): number | undefined => {
    if (word === undefined) return present;
    return word === 'none' ? undefined : Number(word);
  };
  const bytesPerSecond = limitOf(parameter('rate'), before.bytesPerSecond);
  const share = limitOf(parameter('share'), before.share);
  return { ...(bytesPerSecond === undefined ? {} : { bytesPerSecond }), ...(share === undefined ? {} : { share }) };
}

function transactionOf(access: ClusterAccess, contents: MapContents, parameter: Parameter): Transaction {
  const { view } = access.map;
  const action = parameter('action') ?? '';
  switch (action) {
    case 'abort':
      return proposeAbort(view);
    case 'pause':
    case 'resume':
      return proposePause(view, action === 'pause');
    case 'limit':
      return proposeMoveLimits(view, moveLimitsOf(view, parameter));
    case 'out-after':
      return proposeOutAfter(view, Number(parameter('ms') ?? Number.NaN));
    case 'change': {
      const words = (parameter('changes') ?? '').split(' ').filter((word) => word !== '');
      if (words.length > MAX_CHANGES) throw new WebdfsError('TOO_LARGE', `at most ${MAX_CHANGES} changes at once`);
      const named = (parameter('folders') ?? '').split(',').filter((name) => name !== '');
      const target = targetOf(view, words, parameter);
      const folders = foldersOf(waitingFolders(contents), named);
      requireFolders(access, target, folders);
      return proposeTarget(view, target, { folders });
    }
    default:
      throw new WebdfsError('INVALID', `action ${action} is none of change, abort, pause, resume, limit, out-after`);
  }
}

/**
 * Has groups move: `action` is `change` (with `changes`, the words of `webdfs plan`, and `folders`, ids of those that wait),
 * `abort`, `pause`, `resume`, `limit` (with `rate`, bytes per second, and `share`; `none` lifts one) or `out-after` (with `ms`);
 * `revision` that of the topology which the caller has seen.
 *
 * @throws INVALID, NOT_FOUND, CONFLICT when the topology is no longer the one seen
 */
export async function changeTopology(access: ClusterAccess, parameter: Parameter): Promise<TopologyReport> {
  const { map, mapStore } = access;
  const seen = Number(parameter('revision'));
  // who asks may have seen what this node has not heard of yet
  const contents = await mapStore.read();
  const view = await map.readThrough(contents.revision);
  const conflict = new WebdfsError('CONFLICT', 'the topology was changed since this was planned: look at it again');
  if (seen !== view.mapRevision) throw conflict;
  const { done, revision } = await map.transact(transactionOf(access, contents, parameter));
  if (!done) throw conflict;
  await map.readThrough(revision);
  return await topologyReport(access);
}
