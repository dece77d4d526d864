import type { NodeId } from '@webdfs/base';
import { type MapContents, openRescale, rescalesIn } from '@webdfs/cluster';
import { type NodeProgress, type Pace, timeLeft, type Usage } from '@webdfs/rescale';
import type { RescaleProgress } from '../reports.ts';
import { accountAfter, bytesOfCopy, type Sight } from './account.ts';
import { measuredRates } from './measured-times.ts';
import { movesLeft } from './group-moves.ts';
import { rescaleSummary } from './rescale-summary.ts';

/** Of what seems to be there already but is no member yet, so much is still to come at least. */
const LEAST_LEFT = 0.02;

/** What is left to do for one node, in bytes and in seconds at the rates of this moment. */
interface NodeLeft {
  readonly node: NodeId;
  readonly bytes: Usage;
  readonly seconds: Usage;
}

function secondsOf(bytes: number, lately: number, known: number): number {
  const rate = lately > 0 ? Math.min(lately, known) : known;
  return bytes === 0 ? 0 : bytes / rate;
}

function leftOf(node: NodeId, usage: Usage, options: { sight: Sight; copyBytes: number; gone: number }): NodeLeft {
  const { sight, copyBytes, gone } = options;
  const { moves } = sight.statuses.get(node) ?? {};
  const rates = measuredRates(sight.statuses, sight.view.map.moveLimits?.bytesPerSecond)?.(node);
  const { network = Infinity, read = Infinity, write = Infinity } = rates ?? {};
  const bytes: Usage = {
    receive: usage.receive * copyBytes * gone,
    send: usage.send * copyBytes * gone,
    read: usage.read * copyBytes * gone,
    write: usage.receive * copyBytes * gone,
  };
  return {
    node,
    bytes,
    seconds: {
      receive: secondsOf(bytes.receive, moves?.receivePerSecond ?? 0, network),
      send: secondsOf(bytes.send, moves?.sendPerSecond ?? 0, network),
      read: secondsOf(bytes.read, 0, read),
      write: secondsOf(bytes.write, 0, write),
    },
  };
}

/** The node that needs longest for what it has to do, with what it waits for; undefined while nothing is known. */
function slowestOf(left: readonly NodeLeft[]): Pace | undefined {
  const unit = { network: 1, read: 1, write: 1 } as const;
  const pace = timeLeft(
    new Map(left.map(({ node, seconds }): [NodeId, NodeProgress] => [node, { left: seconds, rates: unit }])),
  );
  return pace === undefined || !Number.isFinite(pace.seconds) || pace.seconds === 0 ? undefined : pace;
}

/** What moves now, why, how fast, and how long it will take. Undefined while every group is where it should be. */
export function rescaleProgress(contents: Pick<MapContents, 'entries'>, sight: Sight): RescaleProgress | undefined {
  const { view, statuses, nowMs } = sight;
  const kept = openRescale(rescalesIn(contents));
  const moves = movesLeft(view);
  if (kept === undefined && moves.groups === 0) return undefined;
  const record = kept && accountAfter(kept.record, sight);
  const copyBytes = (record === undefined ? undefined : bytesOfCopy(record, sight)) ?? 0;
  const whole = moves.copies * copyBytes;
  const toCome =
    record?.planned.bytes === undefined
      ? whole
      : Math.min(whole, Math.max(0, record.planned.bytes - record.moved.bytes));
  const bytesLeft = Math.max(toCome, whole * LEAST_LEFT);
  const gone = whole === 0 ? 0 : bytesLeft / whole;
  const left = Array.from(moves.usage, ([node, usage]) => leftOf(node, usage, { sight, copyBytes, gone }));
  const pace = view.map.paused === true ? undefined : slowestOf(left);
  return {
    groupsLeft: moves.groups,
    bytesLeft: Math.round(bytesLeft),
    bytesPerSecond: [...statuses.values()].reduce((sum, status) => sum + (status.moves?.receivePerSecond ?? 0), 0),
    ...(pace === undefined ? {} : { secondsLeft: pace.seconds, pace: { node: pace.node, resource: pace.resource } }),
    nodes: left.map(({ node, bytes, seconds }) => ({
      node,
      receiveLeft: Math.round(bytes.receive),
      sendLeft: Math.round(bytes.send),
      receivePerSecond: statuses.get(node)?.moves?.receivePerSecond ?? 0,
      sendPerSecond: statuses.get(node)?.moves?.sendPerSecond ?? 0,
      ...finiteSeconds(Math.max(seconds.receive, seconds.send, seconds.read + seconds.write)),
    })),
    ...(record === undefined ? {} : { change: rescaleSummary(record, nowMs) }),
  };
}

function finiteSeconds(seconds: number): { secondsLeft?: number } {
  return Number.isFinite(seconds) ? { secondsLeft: seconds } : {};
}
