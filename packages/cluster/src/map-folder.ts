import {
  codeOf,
  concat,
  type Disk,
  type DiskFile,
  type Log,
  messageOf,
  readWhole,
  replaceWhole,
  type Revision,
  WebdfsError,
  writeFully,
} from '@webdfs/base';
import type { KeySpace } from './key-space.ts';
import { packEntries, packHeader, packWrites, unpackLog, unpackSnapshot } from './map-log.ts';
import type { Write } from './map-store.ts';

const LOG_BYTES = 4 * 1024 * 1024;
const DIGITS = 16;
const KEPT = 2;

const nameOf = (kind: 'log' | 'snapshot', revision: Revision): string =>
  `${kind}-${String(revision).padStart(DIGITS, '0')}`;

function revisionsOf(kind: 'log' | 'snapshot', names: readonly string[]): Revision[] {
  const pattern = new RegExp(`^${kind}-(\\d{${DIGITS}})$`);
  return names.flatMap((name) => {
    const digits = pattern.exec(name)?.[1];
    return digits === undefined ? [] : [Number(digits)];
  });
}

/**
 * The files of the embedded map store: a log, and a snapshot now and then. What was appended and synced is there after any
 * crash; what was only begun is there or not, never half.
 */
export class MapFolder implements AsyncDisposable {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #log: Log;
  readonly #logBytes: number;
  #file: DiskFile | undefined;
  #size = 0;

  constructor(options: { disk: Disk; folder: string; log: Log; logBytes?: number }) {
    this.#disk = options.disk;
    this.#folder = options.folder;
    this.#log = options.log;
    this.#logBytes = options.logBytes ?? LOG_BYTES;
  }

  /**
   * Fills an empty key space with what is stored, and begins a new log: nothing is ever appended to a file of an earlier
   * run, whose end may be in the system's cache only.
   *
   * @throws CORRUPT, NEWER_FORMAT
   */
  async load(space: KeySpace): Promise<void> {
    await this.#disk.makeFolder(this.#folder);
    // the folder itself must outlive a crash; that of the folder above it is its owner's care
    await this.#disk.syncFolder(this.#folder.slice(0, this.#folder.lastIndexOf('/')) || '/');
    const names = await this.#disk.list(this.#folder);
    const logs = revisionsOf('log', names);
    const snapshots = revisionsOf('snapshot', names);
    await this.#loadSnapshot(space, snapshots, logs.length > 0);
    for (const [i, base] of logs.entries()) {
      const next = logs[i + 1];
      // all that it holds is in the snapshot, or in a later log
      if (next !== undefined && next <= space.revision) continue;
      await this.#replay(space, base, next);
    }
    const newest = snapshots.at(-1) ?? 0;
    if (space.revision < newest) {
      throw new WebdfsError(
        'CORRUPT',
        `${this.#folder}: the map reaches revision ${space.revision} of at least ${newest}`,
      );
    }
    await this.rotate(space);
  }

  async #loadSnapshot(space: KeySpace, revisions: readonly Revision[], hasLogs: boolean): Promise<void> {
    for (const revision of revisions.toReversed()) {
      const name = nameOf('snapshot', revision);
      try {
        const snapshot = unpackSnapshot(await readWhole(this.#disk, `${this.#folder}/${name}`), name);
        for (const entry of snapshot.entries) space.put(entry);
        space.restart(snapshot.revision);
        return;
      } catch (error) {
        if (codeOf(error) !== 'CORRUPT') throw error;
        this.#log.error('map.snapshot.damaged', { name, error: messageOf(error) });
      }
    }
    if (revisions.length > 0) throw new WebdfsError('CORRUPT', `${this.#folder}: no snapshot of the map can be read`);
    if (hasLogs) throw new WebdfsError('CORRUPT', `${this.#folder}: the map's snapshots are missing`);
  }

  async #replay(space: KeySpace, base: Revision, next: Revision | undefined): Promise<void> {
    const name = nameOf('log', base);
    const contents = unpackLog(await readWhole(this.#disk, `${this.#folder}/${name}`), name);
    if (contents.base !== base) throw new WebdfsError('CORRUPT', `${name}: its header says ${contents.base}`);
    for (const { revision, writes } of contents.transactions) {
      if (revision <= space.revision) continue;
      if (revision !== space.revision + 1) {
        throw new WebdfsError('CORRUPT', `${name}: revision ${revision} follows ${space.revision}`);
      }
      space.apply(revision, writes);
    }
    if (contents.torn > 0) this.#log.warn('map.log.torn', { name, bytes: contents.torn, revision: space.revision });
    if (next !== undefined && space.revision < next) {
      throw new WebdfsError('CORRUPT', `${name} ends at revision ${space.revision}, the next begins after ${next}`);
    }
  }

  /** Stores what a key space holds, and begins a new log after it. The files before the last two pairs go. */
  async rotate(space: KeySpace): Promise<void> {
    const { revision } = space;
    const snapshot = concat([packHeader('snapshot', revision), packEntries(revision, space.entries())]);
    await replaceWhole(this.#disk, this.#folder, nameOf('snapshot', revision), snapshot);
    const header = packHeader('log', revision);
    await replaceWhole(this.#disk, this.#folder, nameOf('log', revision), header);
    await this.#file?.close();
    this.#file = await this.#disk.open(`${this.#folder}/${nameOf('log', revision)}`, 'write');
    this.#size = header.length;
    await this.#sweep();
  }

  async #sweep(): Promise<void> {
    const names = await this.#disk.list(this.#folder);
    for (const kind of ['log', 'snapshot'] as const) {
      for (const revision of revisionsOf(kind, names).slice(0, -KEPT)) {
        await this.#disk.unlink(`${this.#folder}/${nameOf(kind, revision)}`);
      }
    }
    for (const name of names) if (name.endsWith('.new')) await this.#disk.unlink(`${this.#folder}/${name}`);
  }

  /**
   * Makes one transaction durable; `space` is the state before it.
   *
   * @throws DISK_FULL if surely nothing was stored; anything else leaves that unknown
   */
  async append(space: KeySpace, revision: Revision, writes: readonly Write[]): Promise<void> {
    if (this.#size >= this.#logBytes) await this.#rotateIfRoom(space);
    const file = this.#file;
    if (file === undefined) throw new WebdfsError('UNAVAILABLE', 'the map folder is not open');
    const record = packWrites(revision, writes);
    // a write that failed half-way is written over: its place is known by what was synced
    await writeFully(file, [record], this.#size);
    try {
      await file.datasync();
    } catch (error) {
      throw new WebdfsError('DISK_FAILED', 'the map log could not be synced', { cause: error });
    }
    this.#size += record.length;
  }

  /** A full disk may still have room for a few records in the old log. */
  async #rotateIfRoom(space: KeySpace): Promise<void> {
    try {
      await this.rotate(space);
    } catch (error) {
      if (codeOf(error) !== 'DISK_FULL') throw error;
      this.#log.warn('map.rotate.full', { revision: space.revision });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }
}
