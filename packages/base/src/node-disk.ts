import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { Disk, DiskFile, DiskSpace, OpenMode } from './disk.ts';
import { WebdfsError } from './errors.ts';

const fsWritev = promisify(fs.writev);
const fsRead = promisify(fs.read);
const fsDatasync = promisify(fs.fdatasync);
const fsSync = promisify(fs.fsync);
const fsStat = promisify(fs.fstat);
const fsClose = promisify(fs.close);
const fsOpen = promisify(fs.open);

/** Turns a system error into one of ours, naming what was done to which path. */
function diskError(error: unknown, action: string, path: string): WebdfsError {
  const system = (error as NodeJS.ErrnoException).code ?? 'unknown';
  const message = `${action} ${path}`;
  if (system === 'ENOENT') return new WebdfsError('NOT_FOUND', message, { cause: error });
  if (system === 'EEXIST') return new WebdfsError('ALREADY_EXISTS', message, { cause: error });
  if (system === 'ENOSPC' || system === 'EDQUOT') return new WebdfsError('DISK_FULL', message, { cause: error });
  return new WebdfsError('DISK_FAILED', message, { cause: error });
}

async function guarded<T>(action: string, path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw diskError(error, action, path);
  }
}

/** A file system may open a file for direct writes and then refuse them, for what they are or where they come from. */
function directError(error: unknown, path: string): WebdfsError {
  if ((error as NodeJS.ErrnoException).code !== 'EINVAL') return diskError(error, 'write', path);
  return new WebdfsError('UNSUPPORTED', `no direct write to ${path}`, { cause: error });
}

class NodeDiskFile implements DiskFile {
  readonly path: string;
  readonly #descriptor: number;
  readonly #mode: OpenMode;

  constructor(path: string, descriptor: number, mode: OpenMode) {
    this.path = path;
    this.#descriptor = descriptor;
    this.#mode = mode;
  }

  async writev(buffers: readonly Uint8Array[], offset: number): Promise<number> {
    try {
      return (await fsWritev(this.#descriptor, buffers as Uint8Array[], offset)).bytesWritten;
    } catch (error) {
      throw this.#mode === 'direct' ? directError(error, this.path) : diskError(error, 'write', this.path);
    }
  }

  writevSync(buffers: readonly Uint8Array[], offset: number): number {
    try {
      return fs.writevSync(this.#descriptor, buffers, offset);
    } catch (error) {
      throw diskError(error, 'write', this.path);
    }
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    let done = 0;
    while (done < target.length) {
      const { bytesRead } = await guarded('read', this.path, () =>
        fsRead(this.#descriptor, target, done, target.length - done, offset + done),
      );
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return done;
  }

  readSync(target: Uint8Array, offset: number): number {
    try {
      let done = 0;
      while (done < target.length) {
        const count = fs.readSync(this.#descriptor, target, done, target.length - done, offset + done);
        if (count === 0) break;
        done += count;
      }
      return done;
    } catch (error) {
      throw diskError(error, 'read', this.path);
    }
  }

  datasync(): Promise<void> {
    return guarded('fdatasync', this.path, () => fsDatasync(this.#descriptor));
  }

  sync(): Promise<void> {
    return guarded('fsync', this.path, () => fsSync(this.#descriptor));
  }

  size(): Promise<number> {
    return guarded('stat', this.path, async () => (await fsStat(this.#descriptor)).size);
  }

  close(): Promise<void> {
    return guarded('close', this.path, () => fsClose(this.#descriptor));
  }
}

/**
 * Makes a folder, and those above it that are missing; one that is there stays as it is.
 *
 * Node's own `recursive` tries for ever where a folder cannot be made though the one above it is there, as in Linux's /proc.
 */
export async function makeFolders(path: string, mode = 0o777): Promise<void> {
  const above = dirname(path);
  try {
    return await makeFolder(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || above === path) throw error;
  }
  await makeFolders(above, mode);
  await makeFolder(path, mode);
}

async function makeFolder(path: string, mode: number): Promise<void> {
  try {
    await fs.promises.mkdir(path, { mode });
  } catch (error) {
    // systems have many names for "is there already"
    const isThere = await fs.promises.stat(path).then(
      (facts) => facts.isDirectory(),
      () => false,
    );
    if (!isThere) throw error;
  }
}

/** O_DIRECT, where the system has it (Linux). */
const DIRECT = (fs.constants as { readonly O_DIRECT?: number }).O_DIRECT;
const WASM_PAGE_BYTES = 65_536;
/** The part that is used here; Node's types leave it out. */
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

/** The machine's own file system. */
export class NodeDisk implements Disk {
  async open(path: string, mode: OpenMode): Promise<DiskFile> {
    if (mode === 'direct') return await this.#openDirect(path);
    const descriptor = await guarded('open', path, () => fsOpen(path, mode === 'read' ? 'r' : 'r+'));
    return new NodeDiskFile(path, descriptor, mode);
  }

  async #openDirect(path: string): Promise<DiskFile> {
    if (DIRECT === undefined) throw new WebdfsError('UNSUPPORTED', `no direct writes to ${path} on this system`);
    try {
      return new NodeDiskFile(path, await fsOpen(path, fs.constants.O_WRONLY | DIRECT), 'direct');
    } catch (error) {
      throw directError(error, path);
    }
  }

  /** The memory of a WebAssembly program begins on a page border; of other memory nobody says where it lies. */
  pages(bytes: number): Uint8Array {
    const size = Math.ceil(bytes / WASM_PAGE_BYTES);
    try {
      return new Uint8Array(new WebAssembly.Memory({ initial: size, maximum: size }).buffer, 0, bytes);
    } catch {
      // no address space for its guards: direct writes from here will be refused
      return new Uint8Array(bytes);
    }
  }

  async create(path: string): Promise<DiskFile> {
    const descriptor = await guarded('create', path, () => fsOpen(path, 'wx+', 0o600));
    return new NodeDiskFile(path, descriptor, 'write');
  }

  async makeFolder(path: string): Promise<void> {
    await guarded('make folder', path, () => makeFolders(path, 0o700));
  }

  async list(path: string): Promise<string[]> {
    try {
      return (await fs.promises.readdir(path)).toSorted();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw diskError(error, 'list', path);
    }
  }

  async exists(path: string): Promise<boolean> {
    return await fs.promises.access(path).then(
      () => true,
      () => false,
    );
  }

  async rename(source: string, target: string): Promise<void> {
    await guarded('rename', source, () => fs.promises.rename(source, target));
  }

  async unlink(path: string): Promise<void> {
    await guarded('unlink', path, () => fs.promises.rm(path, { force: true }));
  }

  async removeFolder(path: string): Promise<void> {
    await guarded('remove folder', path, () => fs.promises.rm(path, { force: true, recursive: true }));
  }

  async syncFolder(path: string): Promise<void> {
    await guarded('fsync folder', path, async () => {
      const handle = await fs.promises.open(path, 'r');
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    });
  }

  async space(path: string): Promise<DiskSpace> {
    const facts = await guarded('statfs', path, () => fs.promises.statfs(path));
    return { free: facts.bavail * facts.bsize, total: facts.blocks * facts.bsize };
  }
}
