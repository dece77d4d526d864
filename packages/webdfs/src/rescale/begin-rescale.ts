import { messageOf, type PolicyId, WebdfsError } from '@webdfs/base';
import {
  type MapContents,
  type MapView,
  type NewRescale,
  newNodesOf,
  openRescale,
  type PolicyNumbers,
  proposeAbort,
  proposeTarget,
  type RescaleEnd,
  rescalesIn,
  type Transaction,
  usualMinCopies,
  wantedCopies,
  type WaitingFolder,
  waitingFolders,
  withRescale,
} from '@webdfs/cluster';
import { PlacementError, type Topology, type TopologyChange } from '@webdfs/placement';
import { changeEvenly } from '@webdfs/rescale';
import { parseChange } from '../change-words.ts';
import type { ClusterAccess } from '../cluster-access.ts';
import { ABORT_COMMAND, accountAfter, metersAfter, type Sight } from './account.ts';
import { plannedRescale } from './planned-rescale.ts';
import { sightOf } from './sight.ts';

type Parameter = (name: string) => string | undefined;

const MAX_CHANGES = 64;

/** What is to become of a cluster. */
interface Wanted {
  readonly target: Topology;
  /** The numbers of copies of the policy that objects are kept by; undefined: they stay. */
  readonly numbers: PolicyNumbers | undefined;
}

/** The topology that changes start from: where the groups are being led already. */
function presentOf(view: MapView, policy: PolicyId): Topology {
  return { ...(view.map.target ?? view.map.settled), copies: wantedCopies(view.policy(policy)) };
}

function numbersOf(
  view: MapView,
  policy: PolicyId,
  { changes, parameter }: { changes: readonly TopologyChange[]; parameter: Parameter },
): PolicyNumbers | undefined {
  const present = view.policy(policy);
  const { copies: now, minCopies: least } = present.next ?? present;
  const asked = changes.findLast((change) => change.type === 'copies');
  const given = parameter('min-copies');
  if (asked === undefined && given === undefined) return undefined;
  const copies = asked?.copies ?? now;
  const isUsual = least === usualMinCopies(now);
  const minCopies = given === undefined ? (isUsual ? usualMinCopies(copies) : Math.min(least, copies)) : Number(given);
  return { copies, minCopies };
}

function wantedOf(view: MapView, policy: PolicyId, parameter: Parameter): Wanted {
  const words = (parameter('changes') ?? '').split(' ').filter((word) => word !== '');
  if (words.length > MAX_CHANGES) throw new WebdfsError('TOO_LARGE', `at most ${MAX_CHANGES} changes at once`);
  const changes = words.map(parseChange);
  const balance = parameter('balance') === 'yes';
  const keepFactors = parameter('keep-factors') === 'yes' || changes.length === 0;
  const present = presentOf(view, policy);
  const numbers = numbersOf(view, policy, { changes, parameter });
  if (changes.length === 0 && !balance) return { target: present, numbers };
  try {
    return { target: changeEvenly(present, changes, { groupBits: view.map.groupBits, keepFactors, balance }), numbers };
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

/**
 * The transaction that has groups move to another target, with the account of it and of the one it replaces.
 *
 * @param parameter  `changes`, the words of `webdfs plan`; `min-copies`; `folders`, ids of those that wait; `command`, what the
 *   history is to call it
 * @throws INVALID, NOT_FOUND, TOO_LARGE
 */
export async function changeTransaction(
  access: ClusterAccess,
  contents: MapContents,
  parameter: Parameter,
): Promise<Transaction> {
  const { policy, map } = access;
  const { view } = map;
  const { target, numbers } = wantedOf(view, policy, parameter);
  const named = (parameter('folders') ?? '').split(',').filter((name) => name !== '');
  const folders = foldersOf(waitingFolders(contents), named);
  requireFolders(access, target, folders);
  const policies = new Map(numbers === undefined ? [] : [[policy, numbers]]);
  const transaction = proposeTarget(view, target, { folders, policies });
  const copiesOf = (id: PolicyId): number => policies.get(id)?.copies ?? wantedCopies(view.policy(id));
  const command = parameter('command') ?? `change ${parameter('changes') ?? ''}`.trim();
  return await accounted(access, { contents, transaction, outcome: 'replaced' }, ({ sizes, nowMs }) =>
    plannedRescale(view, target, { copiesOf, sizes, command, nowMs }),
  );
}

/** The transaction that has groups go back to where the settled topology has them. @throws NOT_FOUND if nothing is under way */
export async function abortTransaction(access: ClusterAccess, contents: MapContents): Promise<Transaction> {
  const { view } = access.map;
  const transaction = proposeAbort(view);
  const copiesOf = (id: PolicyId): number => view.policy(id).copies;
  return await accounted(access, { contents, transaction, outcome: 'aborted' }, ({ sizes, nowMs }) =>
    plannedRescale(view, view.map.settled, { copiesOf, sizes, command: ABORT_COMMAND, nowMs }),
  );
}

/** Only what moves from now on counts. */
function metered(rescale: NewRescale, sight: Sight): NewRescale {
  const { open } = rescale;
  return open === undefined ? rescale : { ...rescale, open: { ...open, meters: metersAfter([], sight) } };
}

async function accounted(
  access: ClusterAccess,
  {
    contents,
    transaction,
    outcome,
  }: { contents: MapContents; transaction: Transaction; outcome: RescaleEnd['outcome'] },
  begin: (sight: Sight) => NewRescale,
): Promise<Transaction> {
  const sight = await sightOf(access);
  const kept = rescalesIn(contents);
  const open = openRescale(kept);
  const counted = kept.map((each) => (each === open ? { ...each, record: accountAfter(each.record, sight) } : each));
  const groups = openRescale(counted)?.record.moved.groups ?? 0;
  return withRescale(transaction, counted, {
    end: { outcome, endedMs: sight.nowMs, groups },
    begin: metered(begin(sight), sight),
  });
}
