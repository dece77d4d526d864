import { type Clock, codeOf, type Log, messageOf, type Timer, WebdfsError } from '@webdfs/base';

const IDLE_MS = 30_000;
/** After an error: doubled each time, up to an hour. */
const LEAST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 3_600_000;

export interface UpkeepLoopOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Rewrites one volume; true if there may be more to do at once. The signal is aborted when the loop is stopped. */
  readonly compact: (signal: AbortSignal) => Promise<boolean>;
  readonly idleMs?: number;
}

/**
 * Compacts in the background: volume after volume while any is worth it, then a look now and then. An error (a full disk,
 * damage) is logged and tried again later; it never ends the loop.
 */
export class UpkeepLoop {
  readonly #options: UpkeepLoopOptions;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;
  readonly #stopping = new AbortController();
  #failures = 0;

  constructor(options: UpkeepLoopOptions) {
    this.#options = options;
  }

  start(): void {
    this.#schedule(this.#options.idleMs ?? IDLE_MS);
  }

  /** Calls off the work under way, and resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#stopping.abort(new WebdfsError('CANCELLED', 'the upkeep ends'));
    this.#timer?.cancel();
    await this.#running;
  }

  #schedule(ms: number): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.after(ms, () => {
      this.#running = this.#round().then((pauseMs) => this.#schedule(pauseMs));
    });
  }

  async #round(): Promise<number> {
    const idleMs = this.#options.idleMs ?? IDLE_MS;
    try {
      while (!this.#stopped && (await this.#options.compact(this.#stopping.signal)));
      this.#failures = 0;
      return idleMs;
    } catch (error) {
      if (codeOf(error) === 'CANCELLED') return idleMs;
      this.#options.log.warn('compaction failed', { code: codeOf(error), error: messageOf(error) });
      const pauseMs = Math.min(LONGEST_PAUSE_MS, LEAST_PAUSE_MS * 2 ** this.#failures);
      this.#failures += 1;
      return pauseMs;
    }
  }
}
