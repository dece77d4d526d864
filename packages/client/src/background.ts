import { type Log, messageOf } from '@webdfs/base';

/** Work that an answer does not wait for. At most so many at once; what does not fit is left to the sweep. */
const MAX_RUNNING = 64;

/** Follow-up work of requests: failures are logged and left to housekeeping. */
export class Background {
  readonly #log: Log;
  readonly #running = new Set<Promise<void>>();

  constructor(log: Log) {
    this.#log = log;
  }

  start(what: string, work: () => Promise<void>): void {
    if (this.#running.size >= MAX_RUNNING) {
      this.#log.warn('left to housekeeping', { what, running: this.#running.size });
      return;
    }
    const task: Promise<void> = work()
      .catch((error: unknown) => this.#log.warn('left to housekeeping', { what, error: messageOf(error) }))
      .finally(() => this.#running.delete(task));
    this.#running.add(task);
  }

  /** Resolves when nothing that was started before is running. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
