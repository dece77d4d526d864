import type { NodeId } from '@webdfs/base';
import { type MapContents, openRescale, type RescaleRecord, rescalesIn } from '@webdfs/cluster';
import { type NodeProgress, type Pace, timeLeft, type Usage } from '@webdfs/rescale';
import type { RescaleProgress } from '../reports.ts';
import { accountAfter, type Sight } from './account.ts';
import { groupsLeft, movesLeft } from './group-moves.ts';
import { measuredRates } from './measured-times.ts';
import { rescaleSummary } from './rescale-summary.ts';

/** Of what seems to be there already but is no member yet, so much is still to come at least. */
const LEAST_LEFT = 0.02;

/** What is left to do for one node, in bytes, and in seconds at the rates of this moment. */
interface NodeLeft {
  readonly node: NodeId;
  readonly bytes: Usage;
  readonly seconds: Usage;
}

/**
 * Of the bytes of groups that have not come, those that have not arrived: a node takes in many groups at once, and what it has of
 * them counts though none of them is done.
 */
function toReceive(node: NodeId, whole: number, record: RescaleRecord | undefined): number {
  const planned = record?.open?.nodes.find(([id]) => id === node)?.[3];
  if (planned === undefined) return whole;
  const moved = record?.open?.meters.find(([id]) => id === node)?.[3] ?? 0;
  return Math.min(whole, Math.max(planned - moved, whole * LEAST_LEFT));
}

function leftOf(
  node: NodeId,
  usage: Usage,
  { sight, receive, arrived }: { readonly sight: Sight; readonly receive: number; readonly arrived: number },
): NodeLeft {
  const { statuses, view } = sight;
  const rates = measuredRates(statuses, view.map.moveLimits?.bytesPerSecond)?.(node);
  const { network = Infinity, read = Infinity, write = Infinity } = rates ?? {};
  const lately = statuses.get(node)?.moves?.receivePerSecond ?? 0;
  const left = 1 - arrived;
  const bytes: Usage = { receive, send: usage.send * left, read: usage.read * left, write: receive };
  return {
    node,
    bytes,
    seconds: {
      // a receiver asks for all it can get; a sender that is slow may only not be asked
      receive: secondsOf(receive, lately > 0 ? Math.min(lately, network) : network),
      send: secondsOf(bytes.send, network),
      read: secondsOf(bytes.read, read),
      write: secondsOf(bytes.write, write),
    },
  };
}

function secondsOf(bytes: number, rate: number): number {
  return bytes === 0 ? 0 : bytes / rate;
}

/** The node that needs longest for what it has to do, with what it waits for; undefined while nothing is known. */
function slowestOf(left: readonly NodeLeft[]): Pace | undefined {
  const unit = { network: 1, read: 1, write: 1 } as const;
  const progress = left.map(({ node, seconds }): [NodeId, NodeProgress] => [node, { left: seconds, rates: unit }]);
  const pace = timeLeft(new Map(progress));
  return pace === undefined || pace.seconds === 0 ? undefined : pace;
}

/** What moves now, why, how fast, and how long it will take. Undefined while every group is where it should be. */
export function rescaleProgress(contents: Pick<MapContents, 'entries'>, sight: Sight): RescaleProgress | undefined {
  const { view, statuses, sizes, nowMs } = sight;
  const kept = openRescale(rescalesIn(contents));
  const groups = groupsLeft(view);
  if (kept === undefined && groups === 0) return undefined;
  const record = kept && accountAfter(kept.record, sight);
  const { usage, bytes } = movesLeft(view, sizes);
  const receives = new Map(Array.from(usage, ([node, { receive }]) => [node, toReceive(node, receive, record)]));
  const bytesLeft = [...receives.values()].reduce((sum, receive) => sum + receive, 0);
  const arrived = bytes === 0 ? 0 : 1 - bytesLeft / bytes;
  const left = Array.from(usage, ([node, use]) => leftOf(node, use, { sight, receive: receives.get(node)!, arrived }));
  const pace = view.map.paused === true ? undefined : slowestOf(left);
  return {
    groupsLeft: groups,
    bytesLeft: Math.round(bytesLeft),
    bytesPerSecond: [...statuses.values()].reduce((sum, status) => sum + (status.moves?.receivePerSecond ?? 0), 0),
    ...(pace === undefined ? {} : { secondsLeft: pace.seconds, pace: { node: pace.node, resource: pace.resource } }),
    nodes: left.map((each) => nodeProgress(each, sight)),
    ...(record === undefined ? {} : { change: rescaleSummary(record, nowMs) }),
  };
}

function nodeProgress({ node, bytes, seconds }: NodeLeft, { statuses }: Sight): RescaleProgress['nodes'][number] {
  const { receivePerSecond = 0, sendPerSecond = 0 } = statuses.get(node)?.moves ?? {};
  const longest = Math.max(seconds.receive, seconds.send, seconds.read + seconds.write);
  return {
    node,
    receiveLeft: Math.round(bytes.receive),
    sendLeft: Math.round(bytes.send),
    receivePerSecond,
    sendPerSecond,
    ...(longest > 0 ? { secondsLeft: longest } : {}),
  };
}
