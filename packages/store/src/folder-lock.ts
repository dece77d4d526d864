import { DatabaseSync } from 'node:sqlite';
import { WebdfsError } from '@webdfs/base';

/** Sees to it that one store at a time has a folder open. */
export interface FolderLock {
  /** @throws LOCKED if another process, or another store of this one, holds it */
  hold(path: string): Promise<AsyncDisposable>;
}

const held = new Set<string>();

/**
 * A kernel lock, through a SQLite file held with `BEGIN EXCLUSIVE`: released by the kernel at any kind of death, and
 * effective between containers that share a disk. Nobody else in this process may open the file: closing any descriptor of
 * it would drop the lock, hence the list of paths.
 */
export const sqliteLock: FolderLock = {
  async hold(path) {
    if (held.has(path)) throw new WebdfsError('LOCKED', `${path} is open in this process`);
    held.add(path);
    let database: DatabaseSync | undefined;
    try {
      database = new DatabaseSync(path, { timeout: 0 });
      database.exec('BEGIN EXCLUSIVE');
    } catch (error) {
      database?.close();
      held.delete(path);
      throw new WebdfsError('LOCKED', `${path}: the folder is in use by another process`, { cause: error });
    }
    return {
      async [Symbol.asyncDispose]() {
        database.close();
        held.delete(path);
      },
    };
  },
};

/** A lock among the stores that share this object: for simulated disks. */
export class MemoryLock implements FolderLock {
  readonly #held = new Set<string>();

  async hold(path: string): Promise<AsyncDisposable> {
    if (this.#held.has(path)) throw new WebdfsError('LOCKED', `${path}: the folder is in use`);
    this.#held.add(path);
    const release = (): void => void this.#held.delete(path);
    return {
      async [Symbol.asyncDispose]() {
        release();
      },
    };
  }

  /** As the kernel does when the holder dies. */
  breakAll(): void {
    this.#held.clear();
  }
}
