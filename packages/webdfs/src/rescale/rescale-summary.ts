import { type MapContents, type RescaleRecord, rescalesIn } from '@webdfs/cluster';
import { rescaleRatios } from '@webdfs/rescale';
import type { RescaleHistory, RescaleSummary } from '../reports.ts';

/** A change, going on or over, with its ratios as far as they can be told. @param nowMs  of one that goes on */
export function rescaleSummary(record: RescaleRecord, nowMs: number): RescaleSummary {
  const { number, command, beganMs, endedMs, outcome, planned, moved, pausedMs } = record;
  const seconds = Math.max(0, (endedMs ?? nowMs) - beganMs - pausedMs) / 1_000;
  return {
    number,
    command,
    began: new Date(beganMs).toISOString(),
    ...(endedMs === undefined ? {} : { ended: new Date(endedMs).toISOString() }),
    outcome: outcome ?? 'under way',
    seconds,
    pausedSeconds: pausedMs / 1_000,
    planned,
    moved,
    ...timesOf(record, seconds),
  };
}

function timesOf(record: RescaleRecord, seconds: number): Pick<RescaleSummary, 'bound' | 'plan' | 'ratios'> {
  const { figures } = record;
  if (figures === undefined) return {};
  const { boundSeconds, boundBy, planSeconds, paceNode, paceBy } = figures;
  return {
    bound: { seconds: boundSeconds, by: boundBy },
    plan: { seconds: planSeconds, node: paceNode, by: paceBy },
    ratios: ratiosOf(record, { seconds, boundSeconds, planSeconds }),
  };
}

/** Of one that goes on, and of one that did not come to its end, only what does not depend on the end. */
function ratiosOf(
  record: RescaleRecord,
  times: { readonly seconds: number; readonly boundSeconds: number; readonly planSeconds: number },
): NonNullable<RescaleSummary['ratios']> {
  const { bytes = 0, leastBytes = 0 } = record.planned;
  const isSettled = record.outcome === 'settled';
  const movedBytes = isSettled ? record.moved.bytes : bytes;
  const { move, place, exec, total } = rescaleRatios({ ...times, movedBytes, leastBytes });
  return {
    ...(leastBytes > 0 ? { move } : {}),
    ...(times.boundSeconds > 0 ? { place } : {}),
    ...(isSettled && times.boundSeconds > 0 && times.planSeconds > 0 ? { exec, total } : {}),
  };
}

/** What was done to the shape of the cluster, the newest first. */
export function rescaleHistory(contents: Pick<MapContents, 'entries'>, nowMs: number): RescaleHistory {
  const kept = rescalesIn(contents).toReversed();
  return { rescales: kept.map(({ record }) => rescaleSummary(record, nowMs)) };
}
