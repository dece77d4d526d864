import { assert } from './assert.ts';
import { type Disk, type DiskFile, type OpenMode, PAGE_BYTES } from './disk.ts';
import { type ErrorCode, WebdfsError } from './errors.ts';
import type { SimulatedInode } from './simulated-inode.ts';

export type DiskAction = Exclude<keyof Disk, 'pages'> | Exclude<keyof DiskFile, 'path'>;

/** One request to the disk, as `onOperation` sees it before anything has happened. */
export interface DiskOperation {
  /** 1 for the first since the disk was made. */
  readonly number: number;
  readonly action: DiskAction;
  readonly path: string;
  /** What a write wants to write, and where; 0 for the others. */
  readonly bytes: number;
  readonly offset: number;
  /** A write past the cache. */
  readonly direct: boolean;
}

/**
 * What becomes of an operation; undefined: it works.
 *
 * - `stop`: the machine stops in the middle of it. What is half done stays half done; nothing of this life goes on.
 * - `fail`, `full`: DISK_FAILED or DISK_FULL; of a write a first part is done, of a sync some sectors, all count as clean.
 * - `short`: a write writes at least a byte, and not all.
 * - `lie`: a sync does nothing and reports success.
 */
export type DiskFate = 'stop' | 'fail' | 'full' | 'short' | 'lie' | undefined;

/** Thrown on the thread of a life that is over. Whoever catches it is dead: only the test around the machine goes on. */
export class MachineStopped extends Error {
  constructor() {
    super('the simulated machine stopped');
    this.name = 'MachineStopped';
  }
}

/** An operation that has begun: `finish` does it, `half` does what a machine that stops would have done of it. */
export interface Step<T> {
  readonly finish: () => T;
  readonly half?: () => void;
}

export interface Request {
  readonly action: DiskAction;
  readonly path: string;
  readonly bytes?: number;
  readonly offset?: number;
  readonly direct?: boolean;
}

export function failed(request: Request, code: ErrorCode, why: string): WebdfsError {
  return new WebdfsError(code, `${request.action} ${request.path}: ${why}`);
}

/** What an open file may ask of the machine it was opened in. */
export interface FileAccess {
  /** Uniform in 0..limit−1. */
  draw(limit: number): number;
  /** A sync that fails. */
  betray(inode: SimulatedInode, mark: number): void;
  later<T>(request: Request, step: Step<T>, troubled?: (fate: DiskFate) => T): Promise<T>;
  now<T>(request: Request, step: Step<T>, troubled?: (fate: DiskFate) => T): T;
  free(): number;
  /** Whether direct writes work, of a file that was opened for them. */
  takesDirect(): boolean;
}

/** An open file of a simulated disk. */
export class SimulatedFile implements DiskFile {
  readonly path: string;
  readonly #machine: FileAccess;
  readonly #inode: SimulatedInode;
  readonly #mode: OpenMode;

  constructor(machine: FileAccess, path: string, inode: SimulatedInode, mode: OpenMode) {
    this.path = path;
    this.#machine = machine;
    this.#inode = inode;
    this.#mode = mode;
  }

  #writing(buffers: readonly Uint8Array[], offset: number): [Request, Step<number>, (fate: DiskFate) => number] {
    assert(this.#mode !== 'read', `${this.path} is open for writing`);
    if (this.#mode === 'direct') checkPages(buffers, offset);
    const bytes = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
    const request: Request = { action: 'writev', path: this.path, bytes, offset, direct: this.#mode === 'direct' };
    const put = (count: number): number => {
      let done = 0;
      for (const buffer of buffers) {
        const part = buffer.subarray(0, Math.max(0, count - done));
        this.#inode.write(part, offset + done);
        done += part.length;
      }
      return done;
    };
    const finish = (): number => {
      if (request.direct === true && !this.#machine.takesDirect()) throw failed(request, 'UNSUPPORTED', 'EINVAL');
      const growth = Math.max(0, offset + bytes - this.#inode.size);
      const fits = bytes - Math.max(0, growth - this.#machine.free());
      if (fits <= 0 && bytes > 0) throw failed(request, 'DISK_FULL', 'ENOSPC');
      return put(fits);
    };
    const some = (): number => this.#machine.draw(bytes + 1);
    const troubled = (fate: DiskFate): number => {
      if (fate === 'short') return put(Math.min(bytes, 1 + some()));
      if (fate === 'lie') return finish();
      put(some());
      throw fate === 'full' ? failed(request, 'DISK_FULL', 'ENOSPC') : failed(request, 'DISK_FAILED', 'EIO');
    };
    return [request, { finish, half: () => put(some()) }, troubled];
  }

  writev(buffers: readonly Uint8Array[], offset: number): Promise<number> {
    return this.#machine.later(...this.#writing(buffers, offset));
  }

  writevSync(buffers: readonly Uint8Array[], offset: number): number {
    return this.#machine.now(...this.#writing(buffers, offset));
  }

  read(target: Uint8Array, offset: number): Promise<number> {
    const request: Request = { action: 'read', path: this.path };
    return this.#machine.later(request, { finish: () => this.#inode.read(target, offset) });
  }

  readSync(target: Uint8Array, offset: number): number {
    return this.#machine.now(
      { action: 'readSync', path: this.path },
      { finish: () => this.#inode.read(target, offset) },
    );
  }

  #synced(action: 'sync' | 'datasync'): Promise<void> {
    const request: Request = { action, path: this.path };
    const mark = this.#inode.mark();
    const troubled = (fate: DiskFate): void => {
      if (fate === 'lie') return;
      if (fate === 'short') return this.#inode.settle(mark);
      this.#machine.betray(this.#inode, mark);
      throw fate === 'full' ? failed(request, 'DISK_FULL', 'ENOSPC') : failed(request, 'DISK_FAILED', 'EIO');
    };
    const finish = (): void => this.#inode.settle(mark);
    // The machine may stop before the disk has done it, or before anybody hears that it has.
    const half = (): void => void (this.#machine.draw(2) === 0 && finish());
    return this.#machine.later(request, { finish, half }, troubled);
  }

  datasync(): Promise<void> {
    return this.#synced('datasync');
  }

  sync(): Promise<void> {
    return this.#synced('sync');
  }

  size(): Promise<number> {
    return this.#machine.later({ action: 'size', path: this.path }, { finish: () => this.#inode.size });
  }

  close(): Promise<void> {
    return this.#machine.later({ action: 'close', path: this.path }, { finish: () => undefined });
  }
}

/** What systems ask of direct writes; an address is known as far as its memory begins on a page. */
function checkPages(buffers: readonly Uint8Array[], offset: number): void {
  assert(offset % PAGE_BYTES === 0, 'a direct write begins on a page border');
  for (const { byteOffset, length } of buffers) {
    assert(byteOffset % PAGE_BYTES === 0, 'a direct write comes from a page border');
    assert(length % PAGE_BYTES === 0, 'a direct write is made of pages');
  }
}
