import { COMMISSION_LIMITS, DECOMMISSION_LIMITS, hdfsDispatcher } from './dispatchers/hdfs.ts';
import { orderedPull } from './dispatchers/ordered-pull.ts';
import { UNIFORM } from './distribution/uniform.ts';
import { filesOfOneSize } from './file-sizes.ts';
import type { DataTransferScheduler } from './parts.ts';
import type { Scenario } from './scenario.ts';
import { HDFS } from './schedulers/hdfs.ts';
import { LEAVING_ONLY, MIN_MAX } from './schedulers/min-max.ts';
import { RANDOM_HOLDER } from './schedulers/random-holder.ts';
import type { RunParts } from './simulated/simulated-run.ts';

/** Pieces that a receiver may have asked for at a time. */
const WINDOW_PIECES = 32;
/** Pieces that a node keeps in memory for a second destination. */
const KEPT_PIECES = 4 * WINDOW_PIECES;
/** HDFS's chunks: 128 MiB. */
const CHUNK_BYTES = 134_217_728;

/** A way to move data, that can be set to any scenario. */
export interface Contestant {
  readonly name: string;
  partsFor(scenario: Scenario): RunParts;
}

function pulling(scheduler: DataTransferScheduler, piecesPerNode: number): Contestant {
  return {
    name: scheduler.name,
    partsFor({ bytesPerNode }) {
      const bytes = bytesPerNode / piecesPerNode;
      const limits = { windowBytes: WINDOW_PIECES * bytes, keepBytes: KEPT_PIECES * bytes, depth: 1 };
      return { metadata: filesOfOneSize(bytes), distribution: UNIFORM, scheduler, dispatcher: orderedPull(limits) };
    },
  };
}

export function webdfs(piecesPerNode: number): Contestant {
  return pulling(MIN_MAX, piecesPerNode);
}

/** Schedulers that are known to be bad: a measure that they pass measures nothing. */
export function randomHolder(piecesPerNode: number): Contestant {
  return pulling(RANDOM_HOLDER, piecesPerNode);
}

export function leavingOnly(piecesPerNode: number): Contestant {
  return pulling(LEAVING_ONLY, piecesPerNode);
}

/** HDFS as its documentation and defaults describe it, not as it was measured: chunks of 128 MiB, three copies at random places. */
export const HDFS_LIKE: Contestant = {
  name: HDFS.name,
  partsFor: ({ change }) => ({
    metadata: filesOfOneSize(CHUNK_BYTES),
    distribution: UNIFORM,
    scheduler: HDFS,
    dispatcher: hdfsDispatcher(change > 0 ? COMMISSION_LIMITS : DECOMMISSION_LIMITS),
  }),
};
