import { codeOf, type Disk, WebdfsError } from '@webdfs/base';
import type { ProcessMark } from './map.ts';
import type { ProcessTable } from './process-table.ts';

const PATTERN = /^lock-(\d+)-([^-]*)-(.*)$/;

function nameOf(mark: ProcessMark): string {
  return `lock-${mark.pid}-${mark.start}-${mark.boot}`;
}

function markOf(name: string): ProcessMark | undefined {
  const match = PATTERN.exec(name);
  return match === null ? undefined : { pid: Number(match[1]), start: match[2] ?? '', boot: match[3] ?? '' };
}

/**
 * A folder's one owner. Each contender creates a file that names itself, exclusively, and only then looks for others: of
 * two at the same time at least one sees the other and gives way, and nobody ever takes over a name, so a slow contender
 * cannot remove a new owner's. Files of processes that are gone are removed.
 */
export class OwnerLock implements AsyncDisposable {
  readonly #disk: Disk;
  readonly #path: string;

  private constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.#path = path;
  }

  /** @throws LOCKED if another process that may still run holds it, or this one does already */
  static async take(disk: Disk, folder: string, processes: ProcessTable): Promise<OwnerLock> {
    const own = nameOf(await processes.own());
    await disk.makeFolder(folder);
    try {
      await (await disk.create(`${folder}/${own}`)).close();
    } catch (error) {
      if (codeOf(error) !== 'ALREADY_EXISTS') throw error;
      throw new WebdfsError('LOCKED', `${folder} is in use by this process`, { cause: error });
    }
    const lock = new OwnerLock(disk, `${folder}/${own}`);
    try {
      for (const name of await disk.list(folder)) {
        const mark = name === own ? undefined : markOf(name);
        if (mark === undefined) continue;
        if (!(await processes.gone(mark))) {
          throw new WebdfsError('LOCKED', `${folder} is in use by process ${mark.pid}`, { details: { pid: mark.pid } });
        }
        await disk.unlink(`${folder}/${name}`);
      }
      return lock;
    } catch (error) {
      await lock[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#disk.unlink(this.#path);
  }
}
