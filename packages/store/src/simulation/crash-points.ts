import type { Crash, DiskOperation, SimulatedDisk } from '@webdfs/base/testing';
import { SEAL_BYTES } from '../entry-format.ts';
import { LANE, VOLUME_HEAD_BYTES } from '../volume-format.ts';

/** A commit of nothing but the mark of an idle lane. */
const SYNC_MARK_BYTES = 96;

/** Where a store is when its machine stops: the operation of the disk at which it does, and what went before. */
interface Moment {
  readonly phase: 'life' | 'recovery';
  readonly action: DiskOperation['action'];
  readonly file: 'volume' | 'volumes' | 'index' | 'index.new' | 'ballast' | 'other';
  /** A new volume, its head not synced yet. */
  readonly fresh: boolean;
  readonly lane: number | undefined;
  readonly head: boolean;
  readonly seal: boolean;
  readonly mark: boolean;
  readonly direct: boolean;
  /** A volume was unlinked, and how far that got. */
  readonly unlinked: 'no' | 'yes' | 'synced';
  readonly compacting: boolean;
}

const isLife = ({ phase }: Moment): boolean => phase === 'life';
const isRecovery = ({ phase }: Moment): boolean => phase === 'recovery';
const isCommit = (at: Moment): boolean => at.file === 'volume' && !at.head && !at.seal && at.lane !== LANE.COMPACTED;
const isCopy = (at: Moment): boolean => at.file === 'volume' && !at.head && at.lane === LANE.COMPACTED;

/** The crash points of docs/internals/store-crashes.md that an operation of the disk tells; the others are told by who knows. */
const SEEN = {
  'C1 volume made, head not synced': (at: Moment) => isLife(at) && at.file === 'volume' && (at.head || at.fresh),
  'C2 head synced, folder not': (at: Moment) =>
    isLife(at) && at.file === 'volumes' && at.action === 'syncFolder' && at.unlinked !== 'yes',
  'C3 inside a write of a commit': (at: Moment) => isLife(at) && isCommit(at) && at.action === 'writev',
  'C3 inside a direct write of a commit': (at: Moment) => isLife(at) && isCommit(at) && at.direct,
  'C4 C5 before or after a sync of a commit, before its answer': (at: Moment) =>
    isLife(at) && isCommit(at) && at.action === 'datasync',
  'C6 answered, not in an index batch': (at: Moment) => isLife(at) && at.file === 'index' && at.action === 'writev',
  'C7 index batch written, not synced': (at: Moment) => isLife(at) && at.file === 'index' && at.action === 'datasync',
  'C8 before a seal': (at: Moment) => isLife(at) && at.file === 'volume' && at.action === 'size',
  'C9 inside a seal': (at: Moment) =>
    isLife(at) && at.file === 'volume' && at.lane !== LANE.COMPACTED && !at.fresh && (at.seal || at.action === 'sync'),
  'C10 between a seal and the next volume': (at: Moment) =>
    isLife(at) && at.file === 'volume' && at.action === 'create',
  'C11 among the pieces and the entry of a block': (at: Moment) => isLife(at) && isCommit(at) && at.lane === LANE.BULK,
  'C12 mark of an idle lane under way': (at: Moment) => isLife(at) && isCommit(at) && at.mark,
  'C13 recovery, step 2: files without use are unlinked': (at: Moment) =>
    isRecovery(at) && at.file === 'volume' && at.action === 'unlink',
  'C13 recovery, step 5: the tail is written again': (at: Moment) =>
    isRecovery(at) && isCommit(at) && (at.action === 'writev' || at.action === 'datasync'),
  'C13 recovery, step 6: rows go to the index': (at: Moment) =>
    isRecovery(at) && at.file === 'index' && at.action === 'writev',
  'C13 recovery, step 7: the index is synced': (at: Moment) =>
    isRecovery(at) && at.file === 'index' && at.action === 'datasync',
  'C13 recovery, step 8: old files are sealed': (at: Moment) => isRecovery(at) && at.file === 'volume' && at.seal,
  'C14 index is being rebuilt': (at: Moment) => at.file === 'index.new' && at.action !== 'rename',
  'C14 rebuilt index is being renamed': (at: Moment) => at.file === 'index.new' && at.action === 'rename',
  'C15 compaction copies': (at: Moment) => isLife(at) && isCopy(at) && !at.seal && at.action === 'writev',
  'C15 compaction seals its copies': (at: Moment) =>
    isLife(at) && isCopy(at) && (at.seal || at.action === 'sync' || at.action === 'datasync'),
  'C15 compaction, before the rows are durable': (at: Moment) =>
    isLife(at) && at.compacting && at.file === 'index' && at.action === 'datasync',
  'C15 compaction unlinks its source': (at: Moment) => isLife(at) && at.file === 'volume' && at.action === 'unlink',
  'C15 compaction, before the folder is synced': (at: Moment) =>
    isLife(at) && at.file === 'volumes' && at.action === 'syncFolder' && at.unlinked === 'yes',
  'C15 compaction, before the volume row goes': (at: Moment) =>
    isLife(at) && at.unlinked === 'synced' && at.file === 'index' && at.action === 'writev',
  'C16 ballast is given up or written': (at: Moment) => at.file === 'ballast' && at.action !== 'exists',
} as const;

/** What no single operation shows. */
const TOLD = {
  'C17 disk full at a write': true,
  'C17 disk full at a sync': true,
  'C18 group is being dropped': true,
  'C19 restart after restart, nothing written': true,
} as const;

export type CrashPoint = keyof typeof SEEN | keyof typeof TOLD;

/** Counts where the crashes of many histories happened. */
export class CrashPoints {
  readonly counts = new Map<CrashPoint, number>();
  readonly totals = {
    histories: 0,
    operations: 0,
    kill: 0,
    power: 0,
    inRecovery: 0,
    failedSyncs: 0,
    rebuilds: 0,
    compactions: 0,
    flips: 0,
    damaged: 0,
  };
  /** Compactions under way. */
  compacting = 0;
  #disk: SimulatedDisk | undefined;
  #phase: 'life' | 'recovery' = 'life';
  #last: DiskOperation | undefined;
  /** The last commit was a mark. */
  #marked = false;
  /** New volumes whose heads are not synced. */
  readonly #fresh = new Set<string>();
  #unlinked: 'no' | 'yes' | 'synced' = 'no';

  watch(disk: SimulatedDisk, phase: 'life' | 'recovery'): void {
    this.#disk = disk;
    this.#phase = phase;
    this.#last = undefined;
    this.#fresh.clear();
    this.#unlinked = 'no';
    if (phase === 'recovery') this.compacting = 0;
  }

  reached(point: CrashPoint): void {
    this.counts.set(point, (this.counts.get(point) ?? 0) + 1);
  }

  /** Points where no crash has been yet. */
  missing(): string[] {
    return [...Object.keys(SEEN), ...Object.keys(TOLD)].filter((point) => !this.counts.has(point as CrashPoint));
  }

  saw(operation: DiskOperation): void {
    this.totals.operations += 1;
    if (this.#last !== undefined) this.#passed(this.#last);
    this.#last = operation;
  }

  /** The operation before was done: what that means for the next ones. */
  #passed({ action, path, bytes }: DiskOperation): void {
    const file = fileOf(path);
    if (file === 'volume') {
      if (action === 'create') this.#fresh.add(path);
      if (action === 'sync') this.#fresh.delete(path);
      if (action === 'unlink') this.#unlinked = 'yes';
      if (action === 'writev') this.#marked = bytes === SYNC_MARK_BYTES;
    }
    if (file === 'volumes' && action === 'syncFolder' && this.#unlinked === 'yes') this.#unlinked = 'synced';
    else if (file === 'index' && action === 'writev' && this.#unlinked === 'synced') this.#unlinked = 'no';
  }

  /** A life ends here. */
  crashed(crash: Crash): void {
    this.totals[crash] += 1;
    if (this.#phase === 'recovery') this.totals.inRecovery += 1;
    const last = this.#last;
    if (last === undefined) return;
    const moment = this.#momentOf(last);
    for (const [point, isHere] of Object.entries(SEEN)) if (isHere(moment)) this.reached(point as CrashPoint);
  }

  #momentOf({ action, path, bytes, offset, direct }: DiskOperation): Moment {
    const isWrite = action === 'writev';
    return {
      phase: this.#phase,
      action,
      file: fileOf(path),
      fresh: this.#fresh.has(path),
      lane: this.#laneOf(path),
      head: isWrite && offset === 0 && bytes === VOLUME_HEAD_BYTES,
      seal: isWrite && bytes === SEAL_BYTES,
      mark: isWrite ? bytes === SYNC_MARK_BYTES : action === 'datasync' && this.#marked,
      unlinked: this.#unlinked,
      direct,
      compacting: this.compacting > 0,
    };
  }

  #laneOf(path: string): number | undefined {
    if (fileOf(path) !== 'volume' || this.#disk === undefined) return undefined;
    for (const [name, inode] of this.#disk.files()) {
      if (name !== path) continue;
      const head = new Uint8Array(11);
      return inode.read(head, 0) === head.length ? head[10] : undefined;
    }
    return undefined;
  }
}

function fileOf(path: string): Moment['file'] {
  if (path.endsWith('.vol')) return 'volume';
  if (path.endsWith('/volumes')) return 'volumes';
  if (path.includes('/index.new')) return 'index.new';
  if (path.includes('/index')) return 'index';
  return path.endsWith('/ballast') ? 'ballast' : 'other';
}
