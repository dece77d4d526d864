/**
 * The seam to the disk: what the store, the embedded map store and nothing else may ask of a file system.
 * Two houses: `NodeDisk` (the machine's), `SimulatedDisk` (in memory, loses what was not synced).
 */

/** What direct writes are multiples of: page of the system, block of the file system, sector of any drive. */
export const PAGE_BYTES = 4_096;

/** How a file is opened; `direct` writes past the system's page cache. */
export type OpenMode = 'read' | 'write' | 'direct';

/** Space of the file system that holds a folder, bytes. */
export interface DiskSpace {
  readonly free: number;
  readonly total: number;
}

/**
 * An open file. Writes reach stable storage only with `datasync` or `sync`.
 * Errors: WebdfsError DISK_FULL (ENOSPC, EDQUOT) or DISK_FAILED (any other), with the system's error as cause.
 */
export interface DiskFile {
  readonly path: string;
  /**
   * Writes all buffers one after another from `offset`; returns how many bytes were written, which may be fewer. In a file
   * that is open for direct writes, `offset` and the lengths are multiples of `PAGE_BYTES`, and all buffers are parts of
   * `Disk.pages` that begin at such a multiple. @throws UNSUPPORTED if the file system will not write them so after all
   */
  writev(buffers: readonly Uint8Array[], offset: number): Promise<number>;
  /** The same, on this thread. */
  writevSync(buffers: readonly Uint8Array[], offset: number): number;
  /** Fills `target` from `offset`; returns how many bytes were read, fewer only at the end of the file. */
  read(target: Uint8Array, offset: number): Promise<number>;
  /** The same, on this thread: only for bytes that are surely cached. */
  readSync(target: Uint8Array, offset: number): number;
  /** fdatasync: bytes and length. After it failed the file must not be synced again: the kernel may lie. */
  datasync(): Promise<void>;
  /** fsync: bytes, length and the file's other facts. */
  sync(): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

export interface Disk {
  /**
   * Opens a file that exists, for reading, for reading and writing, or for direct writes, beside which others may have it
   * open otherwise: all see and sync the same bytes. @throws NOT_FOUND; UNSUPPORTED where there are no direct writes
   */
  open(path: string, mode: OpenMode): Promise<DiskFile>;
  /** Zeroed memory that direct writes may come from. */
  pages(bytes: number): Uint8Array;
  /** Creates a file that does not exist yet, for reading and writing. @throws ALREADY_EXISTS */
  create(path: string): Promise<DiskFile>;
  /** Makes a folder and its parents; no error if it is there. */
  makeFolder(path: string): Promise<void>;
  /** Names in a folder, sorted; empty if the folder does not exist. */
  list(path: string): Promise<string[]>;
  exists(path: string): Promise<boolean>;
  /** Replaces `target` if it exists. Durable only after `syncFolder`. */
  rename(source: string, target: string): Promise<void>;
  /** No error if it does not exist. */
  unlink(path: string): Promise<void>;
  /** Removes a folder and all in it; no error if it does not exist. */
  removeFolder(path: string): Promise<void>;
  /** Makes creations, renames and removals in the folder durable. */
  syncFolder(path: string): Promise<void>;
  space(path: string): Promise<DiskSpace>;
}

/** A whole small file. @throws NOT_FOUND */
export async function readWhole(disk: Disk, path: string): Promise<Uint8Array> {
  const file = await disk.open(path, 'read');
  try {
    const bytes = new Uint8Array(await file.size());
    const count = await file.read(bytes, 0);
    return bytes.subarray(0, count);
  } finally {
    await file.close();
  }
}

/** Writes all buffers at `offset`, going on after short writes. */
export async function writeFully(file: DiskFile, buffers: readonly Uint8Array[], offset: number): Promise<void> {
  let left = buffers;
  let at = offset;
  while (left.length > 0) {
    let written = await file.writev(left, at);
    at += written;
    const next: Uint8Array[] = [];
    for (const buffer of left) {
      if (written >= buffer.length) written -= buffer.length;
      else {
        next.push(written > 0 ? buffer.subarray(written) : buffer);
        written = 0;
      }
    }
    left = next;
  }
}

/** Replaces a small file so that after a crash it is whole, old or new: temporary name, fsync, rename, fsync of the folder. */
export async function replaceWhole(disk: Disk, folder: string, name: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${folder}/${name}.new`;
  await disk.unlink(temporary);
  const file = await disk.create(temporary);
  try {
    await writeFully(file, [bytes], 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await disk.rename(temporary, `${folder}/${name}`);
  await disk.syncFolder(folder);
}
