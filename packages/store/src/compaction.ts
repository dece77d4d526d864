import { WebdfsError } from '@webdfs/base';
import { entryToTombstone, isSuperseded } from './kept-tombstones.ts';
import { CopyTarget } from './copy-target.ts';
import { KIND } from './entry.ts';
import { type EntryPlace, unpackPieceKey } from './index-rows.ts';
import { actsAsTombstone, isInstalled } from './logged.ts';
import { PieceOrder } from './piece-order.ts';
import { type ScannedEntry, type ScannedRot, scanVolume } from './scanner.ts';
import { Throttle } from './throttle.ts';
import type { Upkeep } from './upkeep.ts';
import { chooseVolume, mustKeepTombstones } from './victim.ts';
import { VOLUME_HEAD_BYTES } from './volume-format.ts';
import type { Volume } from './volume-table.ts';

export interface CompactionOptions {
  /** A volume is worth rewriting when this share of it is garbage … */
  readonly garbageShare: number;
  /** … or this share, while the disk is short of space. */
  readonly shortShare: number;
  /** The disk is short when less than this share of it is free. */
  readonly shortFreeShare: number;
  /** Read plus written. */
  readonly bytesPerSecond: number;
  /** Compaction waits while the slowest percent of commits takes longer, ms. */
  readonly commitTargetMs: number;
}

export const COMPACTION: CompactionOptions = {
  garbageShare: 0.3,
  shortShare: 0.1,
  shortFreeShare: 0.1,
  bytesPerSecond: 20 * 1024 * 1024,
  commitTargetMs: 50,
};

/** Below this share of free space nothing holds compaction back. */
const URGENT_FREE_SHARE = 0.02;
/** Bytes between two looks at the throttle. */
const PACE_BYTES = 1024 * 1024;

/** What one rewriting did. */
export interface Compaction {
  readonly source: number;
  /** The new volume; undefined if nothing was left to copy. */
  readonly target: number | undefined;
  readonly sourceBytes: number;
  readonly targetBytes: number;
}

type Fate = 'copy' | 'tombstone' | 'drop';

/**
 * Rewrites volumes without their garbage. What no row points to is left behind, except tombstones that an older file may
 * still need; the rows of the copies are redirected; only when that is durable the source goes.
 *
 * Nothing unreadable is ever dropped: a source with damage stays until it was repaired from elsewhere.
 */
export class Compactor {
  readonly #upkeep: Upkeep;
  readonly #options: CompactionOptions;
  readonly #throttle: Throttle;

  constructor(upkeep: Upkeep, options: CompactionOptions, signal?: AbortSignal) {
    this.#upkeep = upkeep;
    this.#options = options;
    this.#throttle = new Throttle({
      clock: upkeep.clock,
      bytesPerSecond: options.bytesPerSecond,
      busy: () => upkeep.pressure().commitMs > options.commitTargetMs,
      urgent: () => upkeep.pressure().freeShare < URGENT_FREE_SHARE,
      signal,
    });
  }

  /**
   * Rewrites the volume that is most worth it, if any is.
   *
   * @throws DISK_FULL, DISK_FAILED (the source stays, nothing is lost), CORRUPT (it is damaged, and reported), CANCELLED
   */
  compact(): Promise<Compaction | undefined> {
    return this.#upkeep.exclusive(async () => {
      const source = this.#choose();
      return source === undefined ? undefined : await this.#rewrite(source);
    });
  }

  #choose(): Volume | undefined {
    const upkeep = this.#upkeep;
    const short = upkeep.pressure().freeShare < this.#options.shortFreeShare;
    return chooseVolume([...upkeep.volumes.all()], {
      leastShare: short ? this.#options.shortShare : this.#options.garbageShare,
      highest: upkeep.volumes.highest,
      allowed: (volume) => volume.state === 'sealed' && upkeep.blocked(volume) === undefined,
    });
  }

  // ---- rewriting it ----

  async #rewrite(source: Volume): Promise<Compaction> {
    const { volumes, log, overlay } = this.#upkeep;
    const target = new CopyTarget(volumes);
    let sealed: Volume | undefined;
    try {
      await this.#copy(source, target);
      sealed = await target.finish(source.horizon);
    } catch (error) {
      await this.#giveUp(target);
      throw error;
    }
    const done: Compaction = {
      source: source.id,
      target: sealed?.id,
      sourceBytes: source.size,
      targetBytes: sealed?.size ?? 0,
    };
    try {
      if (sealed !== undefined) await this.#redirect(sealed);
    } finally {
      if (sealed !== undefined) volumes.release(sealed);
    }
    this.#checkNothingLeft(source);
    await overlay.sync();
    await this.#upkeep.retire(source);
    log.info('compacted', { ...done });
    return done;
  }

  /** Step 1: copies what a row points to, and tombstones that are still needed. */
  async #copy(source: Volume, target: CopyTarget): Promise<void> {
    const { volumes } = this.#upkeep;
    const keepTombstones = mustKeepTombstones(source, [...volumes.all()]);
    const file = await volumes.acquire(source);
    const order = new PieceOrder({ file, volume: source.id, salt: source.salt });
    try {
      const range = { from: VOLUME_HEAD_BYTES, until: source.end, sealed: true, pace: (n: number) => this.#pace(n) };
      await scanVolume({ file, volume: source.id, salt: source.salt }, range, async (step) => {
        if (step.type === 'rot') throw this.#rotten(source, step);
        const fate = this.#fateOf(step, keepTombstones);
        if (fate === 'drop') return;
        if (!step.whole && fate === 'copy') throw this.#damaged(step);
        if (fate === 'tombstone') {
          const made = entryToTombstone(step);
          await target.add(made.raw, made.headBytes, true);
        } else if (step.head.kind === KIND.PIECE && order.defer(step)) {
          if (order.full) await this.#copyDeferred(order, target);
        } else {
          await target.add(step.raw, step.head.headBytes, actsAsTombstone(step.head) && step.head.kind !== KIND.RECORD);
          await this.#pace(step.entryBytes);
        }
      });
      await this.#copyDeferred(order, target);
    } finally {
      volumes.release(source);
    }
  }

  async #pace(bytes: number): Promise<void> {
    // In one go with what came before: a pause for each small entry would cost more than its copy.
    this.#owed += bytes;
    if (this.#owed < PACE_BYTES) return;
    const owed = this.#owed;
    this.#owed = 0;
    await this.#throttle.take(owed);
  }

  #owed = 0;

  async #copyDeferred(order: PieceOrder, target: CopyTarget): Promise<void> {
    for (const piece of order.take()) {
      const raw = await order.read(piece);
      // It was whole a moment ago, and no row need point to it any more.
      if (raw === undefined) throw this.#unreadable(order.volume, piece);
      await target.add(raw, piece.headBytes, false);
      await this.#pace(2 * piece.entryBytes);
    }
  }

  #fateOf(entry: ScannedEntry, keepTombstones: boolean): Fate {
    const { pointers, groups } = this.#upkeep;
    const { head } = entry;
    if (pointers.points(entry)) return 'copy';
    if (!keepTombstones || !actsAsTombstone(head)) return 'drop';
    const group = groups.get(head);
    if (group === undefined || head.tenure !== group.tenure) return 'drop';
    // A copy says that its entry was applied. One that is not is pending, and lies elsewhere too: its own volume is blocked.
    if (!isInstalled(head) && head.sequence > group.commit) return 'drop';
    if (!isInstalled(head) && group.isVoid(head.sequence, head.ballot)) return 'drop';
    if (isSuperseded(entry, this.#upkeep.overlay)) return 'drop';
    return head.kind === KIND.RECORD ? 'tombstone' : 'copy';
  }

  /** Step 4: rows that still have the copied version point to the copy. */
  async #redirect(target: Volume): Promise<void> {
    const { volumes, pointers, overlay } = this.#upkeep;
    const file = await volumes.acquire(target);
    try {
      const range = { from: VOLUME_HEAD_BYTES, until: target.end, sealed: true, bodies: false };
      await scanVolume({ file, volume: target.id, salt: target.salt }, range, async (step) => {
        if (step.type === 'rot') throw this.#rotten(target, step);
        const place: EntryPlace = { volume: target.id, place: step.head.place, entryBytes: step.entryBytes };
        pointers.redirect(step, place);
        await overlay.pace();
      });
    } finally {
      volumes.release(target);
    }
  }

  // ---- when something is not as it should be ----

  /** P13: what was redirected and what died meanwhile are all that rows pointed to. */
  #checkNothingLeft(source: Volume): void {
    if (source.live === 0) return;
    const { damage } = this.#upkeep;
    const what = `rows point to ${source.live} bytes that compaction did not find`;
    damage.report({ volume: source.id, place: 0, length: source.live, what });
    throw new WebdfsError('CORRUPT', `volume ${source.id}: ${what}`);
  }

  #rotten(volume: Volume, { place, until }: ScannedRot): WebdfsError {
    this.#upkeep.damage.report({ volume: volume.id, place, length: until - place, what: 'unreadable', headLost: true });
    return new WebdfsError('CORRUPT', `volume ${volume.id} is unreadable at ${place}`);
  }

  #damaged({ head, key, entryBytes }: ScannedEntry): WebdfsError {
    const { volume, place } = head;
    const piece = head.kind === KIND.PIECE ? unpackPieceKey(key) : undefined;
    const what = 'body does not fit its checksum';
    this.#upkeep.damage.report({ volume, place, length: entryBytes, what, key: piece?.id ?? key.slice(), group: head });
    return new WebdfsError('CORRUPT', `volume ${volume} is damaged at ${place}`);
  }

  #unreadable(volume: number, { place, entryBytes }: { place: number; entryBytes: number }): WebdfsError {
    this.#upkeep.damage.report({ volume, place, length: entryBytes, what: 'unreadable', headLost: true });
    return new WebdfsError('CORRUPT', `volume ${volume} is unreadable at ${place}`);
  }

  async #giveUp(target: CopyTarget): Promise<void> {
    try {
      await target.discard();
    } catch (error) {
      // A file without rows: recovery or the next start removes it.
      this.#upkeep.log.warn('compaction left a file', { volume: target.volume?.id, error: String(error) });
    }
  }
}
