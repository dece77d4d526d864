import { assert, type Revision, WebdfsError } from '@webdfs/base';
import type { Change } from './map-store.ts';

const MAX_CHANGES = 4_096;
const MAX_BYTES = 8 * 1024 * 1024;

function sizeOf(change: Change): number {
  let size = 64;
  for (const { key, entry } of change.changes) size += 64 + key.length + (entry?.value.length ?? 0);
  return size;
}

/**
 * The latest changes, for those who watch. Watchers keep nothing but their position: one that is slow holds no memory,
 * and one that is too slow is told to read again.
 */
export class ChangeHistory {
  readonly #limits: { readonly changes: number; readonly bytes: number };
  #changes: Change[] = [];
  #bytes = 0;
  #newest: Revision = 0;
  /** Changes after this revision are all here. */
  #since: Revision = 0;
  readonly #waiting = new Set<() => void>();

  constructor(limits: { changes?: number; bytes?: number } = {}) {
    this.#limits = { changes: limits.changes ?? MAX_CHANGES, bytes: limits.bytes ?? MAX_BYTES };
  }

  /** Forgets everything: the next change follows `revision`. */
  restart(revision: Revision): void {
    this.#changes = [];
    this.#bytes = 0;
    this.#since = revision;
    this.#newest = revision;
  }

  push(change: Change): void {
    assert(change.revision > this.#newest, 'history grows');
    this.#changes.push(change);
    this.#bytes += sizeOf(change);
    this.#newest = change.revision;
    let dropped = 0;
    while (this.#changes.length - dropped > this.#limits.changes || this.#bytes > this.#limits.bytes) {
      const oldest = this.#changes[dropped]!;
      this.#bytes -= sizeOf(oldest);
      this.#since = oldest.revision;
      dropped++;
    }
    if (dropped > 0) this.#changes.splice(0, dropped);
    this.wake();
  }

  /** Makes all who wait look again. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  /**
   * @throws COMPACTED if changes after `revision` are no longer here, OLD_STORE if `revision` is yet to come: then this
   *   store is an older copy of the one it was seen in
   */
  after(revision: Revision): readonly Change[] {
    if (revision > this.#newest) {
      throw new WebdfsError('OLD_STORE', `the map store is at revision ${this.#newest}, revision ${revision} was seen`);
    }
    if (revision < this.#since) {
      throw new WebdfsError(
        'COMPACTED',
        `changes after revision ${revision} are gone, the oldest kept follow ${this.#since}`,
      );
    }
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#changes[middle]!.revision > revision) high = middle;
      else low = middle + 1;
    }
    return this.#changes.slice(low);
  }

  /** Resolves once there is something after `revision`, the signal aborts, or `wake` was called. */
  grown(revision: Revision, signal: AbortSignal): Promise<void> {
    if (this.#newest > revision || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
