import { WebdfsError } from '@webdfs/base';
import {
  type MapContents,
  type MapView,
  type MoveLimits,
  proposeMoveLimits,
  proposeOutAfter,
  proposePause,
  type Transaction,
} from '@webdfs/cluster';
import type { ClusterAccess } from './cluster-access.ts';
import type { TopologyReport } from './reports.ts';
import { abortTransaction, changeTransaction } from './rescale/begin-rescale.ts';
import { topologyReport } from './topology-report.ts';

type Parameter = (name: string) => string | undefined;

/** The account of the change under way may be written meanwhile, which is no reason to look again. */
const TRIES = 8;

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

async function transactionOf(access: ClusterAccess, contents: MapContents, parameter: Parameter): Promise<Transaction> {
  const { view } = access.map;
  const action = parameter('action') ?? '';
  switch (action) {
    case 'abort':
      return await abortTransaction(access, contents);
    case 'pause':
    case 'resume':
      return proposePause(view, action === 'pause');
    case 'limit':
      return proposeMoveLimits(view, moveLimitsOf(view, parameter));
    case 'out-after':
      return proposeOutAfter(view, Number(parameter('ms') ?? Number.NaN));
    case 'change':
      return await changeTransaction(access, contents, parameter);
    default:
      throw new WebdfsError('INVALID', `action ${action} is none of change, abort, pause, resume, limit, out-after`);
  }
}

/**
 * Has groups move: `action` is `change` (with `changes`, the words of `webdfs plan`, `min-copies`, `folders`, ids of those that
 * wait, and `command`, its name in the history),
 * `abort`, `pause`, `resume`, `limit` (with `rate`, bytes per second, and `share`; `none` lifts one) or `out-after` (with `ms`);
 * `revision` that of the topology which the caller has seen.
 *
 * @throws INVALID, NOT_FOUND, CONFLICT when the topology is no longer the one seen
 */
export async function changeTopology(access: ClusterAccess, parameter: Parameter): Promise<TopologyReport> {
  const { map, mapStore } = access;
  const seen = Number(parameter('revision'));
  for (let tries = 0; tries < TRIES; tries++) {
    // who asks may have seen what this node has not heard of yet
    const contents = await mapStore.read();
    const view = await map.readThrough(contents.revision);
    if (seen !== view.mapRevision) break;
    const { done, revision } = await map.transact(await transactionOf(access, contents, parameter));
    await map.readThrough(revision);
    if (done) return await topologyReport(access);
  }
  throw new WebdfsError('CONFLICT', 'the topology was changed since this was planned: look at it again');
}
