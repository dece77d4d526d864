import type { Revision } from '@webdfs/base';

/** One moment by both clocks. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

interface Attempt {
  readonly id: number;
  readonly from: Instant;
  /** The store has prolonged the lease for so long; 0: not yet. */
  readonly ttlMs: number;
  /** The map must reach this revision to be proved complete; undefined: not known yet. */
  readonly complete: Revision | undefined;
}

/** What a node knows of its own lease. */
export interface LeaseState {
  /** The lease runs from here: before the renewal that prolonged it was sent. */
  readonly from: Instant | undefined;
  readonly ttlMs: number;
  readonly attempt: Attempt | undefined;
  readonly mapRevision: Revision;
  /** When the last durable write to the node's own disk was begun, of those that have ended; monotonic clock. */
  readonly durableMs: number;
}

export type LeaseEvent =
  /** A renewal is about to be sent. */
  | { readonly type: 'attempt'; readonly id: number; readonly at: Instant }
  /** The store prolonged the lease. */
  | { readonly type: 'kept'; readonly id: number; readonly ttlMs: number }
  /** The store's newest revision, read linearizably after the attempt began. */
  | { readonly type: 'fresh'; readonly id: number; readonly revision: Revision }
  | { readonly type: 'map'; readonly revision: Revision }
  | { readonly type: 'durable'; readonly beganMs: number }
  /** The lease is gone, or another session began. */
  | { readonly type: 'gone' };

export const NO_LEASE: LeaseState = {
  from: undefined,
  ttlMs: 0,
  attempt: undefined,
  mapRevision: 0,
  durableMs: Number.NEGATIVE_INFINITY,
};

/** An attempt counts once the store has answered both, the map is complete, and the disk has lately written. */
function settle(state: LeaseState): LeaseState {
  const { attempt } = state;
  if (attempt === undefined || attempt.ttlMs === 0 || attempt.complete === undefined) return state;
  if (state.mapRevision < attempt.complete) return state;
  if (state.durableMs < attempt.from.monotonicMs - attempt.ttlMs) return state;
  return { ...state, from: attempt.from, ttlMs: attempt.ttlMs, attempt: undefined };
}

/**
 * One step of a node's lease. Pure: the caller owns clocks, store and disk.
 *
 * A renewal counts only with all of: the store's answer, a proof that the map was complete after the renewal was begun,
 * and a durable write of the node's own. Without the proof, renewals of a node whose watch is stuck would keep a deposed
 * primary serving; without the write, a stalled disk would keep its groups.
 */
export function leaseStep(state: LeaseState, event: LeaseEvent): LeaseState {
  const { attempt } = state;
  switch (event.type) {
    case 'attempt':
      return { ...state, attempt: { id: event.id, from: event.at, ttlMs: 0, complete: undefined } };
    case 'kept':
      if (attempt?.id !== event.id) return state;
      return settle({ ...state, attempt: { ...attempt, ttlMs: event.ttlMs } });
    case 'fresh':
      if (attempt?.id !== event.id) return state;
      return settle({ ...state, attempt: { ...attempt, complete: event.revision } });
    case 'map':
      return settle({ ...state, mapRevision: Math.max(state.mapRevision, event.revision) });
    case 'durable':
      return settle({ ...state, durableMs: Math.max(state.durableMs, event.beganMs) });
    case 'gone':
      return { ...state, from: undefined, ttlMs: 0, attempt: undefined };
  }
}

/** Milliseconds since an instant by the clock that shows more: a suspended machine stops its monotonic clock. */
export function elapsedMs(since: Instant, now: Instant): number {
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}

/** Whether the node may still serve. */
export function leaseHolds(state: LeaseState, now: Instant, marginMs: number): boolean {
  return state.from !== undefined && elapsedMs(state.from, now) < state.ttlMs - marginMs;
}
