import { type Clock, codeOf, type ErrorCode, messageOf, type Random, type Revision, WebdfsError } from '@webdfs/base';
import type { LocalMap } from '@webdfs/cluster';

/** When to try again, and how long. */
export interface RetryLimits {
  /** From the first try to the last, milliseconds (protocol: `retryForMs`). */
  readonly retryForMs: number;
  /** One try; the transport bounds it too. */
  readonly attemptMs: number;
  /** Pause after the first failure; doubles up to `lastPauseMs`, each time a random half to whole of it. */
  readonly firstPauseMs: number;
  readonly lastPauseMs: number;
}

export const RETRY_LIMITS: RetryLimits = {
  retryForMs: 10_000,
  attemptMs: 5_000,
  firstPauseMs: 10,
  lastPauseMs: 400,
};

/** The receiver knew for sure that it did not do it, and why: our map, or its map, is behind. */
const MISDIRECTED: ReadonlySet<ErrorCode> = new Set(['NOT_PRIMARY', 'STALE_BALLOT']);
/** What may pass by itself. CONFLICT is not here: it answers a requirement of the caller. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'NOT_PRIMARY',
  'STALE_BALLOT',
  'NOT_SYNCED',
  'NO_QUORUM',
  'BUSY',
  'PEER_LOST',
  'TIMEOUT',
  'UNAVAILABLE',
]);

/** Whether the same call may succeed if nothing but time passes. */
export function passes(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && PASSING.has(code);
}

/** Whether the receiver refused before it did anything, because the caller asked the wrong node. */
export function misdirected(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && MISDIRECTED.has(code);
}

/** The map revision that a refusal names, 0 without one. */
export function refusedAt(error: unknown): Revision {
  const revision = error instanceof WebdfsError ? error.details['revision'] : undefined;
  return typeof revision === 'number' && Number.isSafeInteger(revision) ? revision : 0;
}

export interface RetrySeams {
  readonly clock: Clock;
  readonly random: Random;
  readonly map: LocalMap;
}

/** How long something has been going on, by the larger of both clocks: a suspended machine stops its monotonic one. */
export class Age {
  readonly #clock: Clock;
  readonly #wall: number;
  readonly #monotonic: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#wall = clock.now();
    this.#monotonic = clock.monotonic();
  }

  /** Milliseconds, never negative. */
  get ms(): number {
    return Math.max(0, this.#clock.now() - this.#wall, this.#clock.monotonic() - this.#monotonic);
  }
}

/** One call's budget of time, and the pauses between its tries. */
export class Retry {
  readonly age: Age;
  readonly #seams: RetrySeams;
  readonly #limits: RetryLimits;
  readonly #signal: AbortSignal | undefined;
  #pauseMs: number;
  #revision: Revision = 0;

  constructor(seams: RetrySeams, limits: RetryLimits, signal?: AbortSignal) {
    this.#seams = seams;
    this.#limits = limits;
    this.#signal = signal;
    this.#pauseMs = limits.firstPauseMs;
    this.age = new Age(seams.clock);
  }

  /** Milliseconds for the next try. */
  get attemptMs(): number {
    return Math.max(1, Math.min(this.#limits.attemptMs, this.#limits.retryForMs - this.age.ms));
  }

  /** Call before each try: what the map said when it was made decides whether a refusal is worth a pause. */
  begin(): Revision {
    if (this.#signal?.aborted) throw new WebdfsError('CANCELLED', 'the caller gave up', { cause: this.#signal.reason });
    this.#revision = this.#seams.map.view.revision;
    return this.#revision;
  }

  /**
   * After a failed try: returns when the next may begin.
   *
   * @throws the error itself if it does not pass by itself; UNAVAILABLE (with the error as cause) once the time is used up
   */
  async failed(error: unknown): Promise<void> {
    if (!passes(error)) throw codeOf(error) === 'TOO_LATE' ? unavailable('too late to tell', error) : error;
    if (this.age.ms >= this.#limits.retryForMs) throw this.#spent(error);
    if (misdirected(error) && (await this.#followed(refusedAt(error)))) return;
    const hint = error instanceof WebdfsError ? error.retryAfterMs : 0;
    const pause = this.#pauseMs * (0.5 + this.#seams.random.fraction() / 2);
    this.#pauseMs = Math.min(this.#limits.lastPauseMs, this.#pauseMs * 2);
    await mapMoves(this.#seams, this.#revision, Math.max(hint, pause), this.#signal);
    if (this.age.ms >= this.#limits.retryForMs) throw this.#spent(error);
  }

  /** True if the map is newer now than when the try was made. */
  async #followed(revision: Revision): Promise<boolean> {
    const { map } = this.#seams;
    if (revision > map.view.revision) {
      try {
        await map.readThrough(revision);
      } catch (error) {
        if (!passes(error)) throw error;
        return false;
      }
    }
    return map.view.revision > this.#revision;
  }

  #spent(error: unknown): WebdfsError {
    return unavailable(`gave up after ${Math.round(this.age.ms)} ms: ${messageOf(error)}`, error);
  }
}

/** What the doors answer with 503: try again, and whether it happened is unknown. */
export function unavailable(message: string, cause?: unknown): WebdfsError {
  return new WebdfsError('UNAVAILABLE', message, { cause, retryAfterMs: 1_000 });
}

/** Shortest pause, so that a map that changes with every try does not make a tight loop. */
const LEAST_PAUSE_MS = 2;

/**
 * Waits `ms`, or less if the map moves beyond `revision` meanwhile: the new primary is known then.
 *
 * @throws CANCELLED
 */
export function mapMoves(seams: RetrySeams, revision: Revision, ms: number, signal?: AbortSignal): Promise<void> {
  const { clock, map } = seams;
  return new Promise((resolve, reject) => {
    const done = (): void => {
      timer.cancel();
      stop();
      signal?.removeEventListener('abort', onAbort);
      resolve();
    };
    const onAbort = (): void => {
      done();
      reject(new WebdfsError('CANCELLED', 'the caller gave up', { cause: signal?.reason }));
    };
    let timer = clock.after(ms, done);
    const stop = map.onChange((view) => {
      if (view.revision <= revision) return;
      timer.cancel();
      timer = clock.after(Math.min(ms, LEAST_PAUSE_MS), done);
    });
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}
