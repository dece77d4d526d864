import { assert } from './assert.ts';
import type { Clock } from './clock.ts';
import type { Disk, DiskFile, DiskSpace, OpenMode } from './disk.ts';
import { SeededRandom } from './random.ts';
import {
  type DiskFate,
  type DiskOperation,
  failed,
  type FileAccess,
  MachineStopped,
  type Request,
  SimulatedFile,
  type Step,
} from './simulated-file.ts';
import { SimulatedFolder, type SimulatedNode } from './simulated-folder.ts';
import { SimulatedInode } from './simulated-inode.ts';

/** What ends when a machine dies: `kill` only the process, `power` also what was not on stable storage. */
export type Crash = 'kill' | 'power';

export interface SimulatedDiskOptions {
  readonly seed: number;
  /** Size of the disk; 2^40 bytes if missing. */
  readonly totalBytes?: number;
  /** If given, operations take some turns of its loop, or up to what `latencyMs` says; without, a few microtasks. */
  readonly clock?: Clock;
  /** Asked for each operation. */
  readonly latencyMs?: () => number;
  /** Direct writes: they work (if missing), files are not opened for them, or they are and then every write is refused. */
  readonly direct?: 'work' | 'none' | 'refused';
}

/** A new one for each who waits: one for all would hold on to everything that ever waited. */
function never(): Promise<never> {
  return new Promise(() => undefined);
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

function parentOf(path: string): string {
  return partsOf(path).slice(0, -1).join('/');
}

function nameOf(path: string): string {
  const name = partsOf(path).at(-1);
  assert(name !== undefined, 'the root folder is neither made nor renamed nor removed');
  return name;
}

/** What outlives a crash. */
interface Medium {
  readonly random: SeededRandom;
  readonly root: SimulatedFolder;
  totalBytes: number;
  operations: number;
}

/**
 * A disk in memory that forgets what was not synced, and fails when told to: the second house of `Disk`.
 *
 * One object is one life of the machine. In it, operations take effect one after another in an order that only the seed
 * decides; when it stops, every operation under way is left half done and none answers any more; `crash` gives the disk
 * that the next life finds. The model is described in docs/decisions/0004-simulated-disk.md.
 */
export class SimulatedDisk implements Disk {
  readonly #options: SimulatedDiskOptions;
  readonly #medium: Medium;
  readonly #random: SeededRandom;
  readonly #halves = new Set<() => void>();
  readonly #stopped = Promise.withResolvers<void>();
  #running = true;
  /** Asked before every operation. */
  onOperation: ((operation: DiskOperation) => DiskFate) | undefined;

  constructor(options: SimulatedDiskOptions, medium?: Medium) {
    this.#options = options;
    this.#random = medium?.random ?? new SeededRandom(options.seed);
    this.#medium = medium ?? {
      random: this.#random,
      root: new SimulatedFolder(),
      totalBytes: options.totalBytes ?? 2 ** 40,
      operations: 0,
    };
  }

  // ---- what a test does to the machine ----

  /** Resolves when this life is over. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  get running(): boolean {
    return this.#running;
  }

  /** Operations of all lives. */
  get operations(): number {
    return this.#medium.operations;
  }

  /** Sets the size of the disk, bytes: what is on it stays. */
  limit(totalBytes: number): void {
    this.#medium.totalBytes = totalBytes;
  }

  /** Ends this life. Operations under way are left half done. */
  stop(): void {
    if (!this.#running) return;
    this.#running = false;
    for (const half of this.#halves) half();
    this.#halves.clear();
    this.#stopped.resolve();
  }

  /** Ends this life, if it has not ended, and begins the next: `power` loses what was not synced, as the seed wills. */
  crash(crash: Crash): SimulatedDisk {
    this.stop();
    if (crash === 'power') this.#medium.root.cut(this.#random, (count) => this.#filler(count));
    else for (const [, inode] of this.files()) if (this.#random.below(2) === 0) inode.evict();
    return new SimulatedDisk(this.#options, this.#medium);
  }

  /** Another disk with what programs see on this one now: a snapshot that somebody may put back later. */
  copy(seed: number): SimulatedDisk {
    const { root, totalBytes } = this.#medium;
    const medium = { random: new SeededRandom(seed), root: root.copy(), totalBytes, operations: 0 };
    return new SimulatedDisk({ ...this.#options, seed }, medium);
  }

  /** All files, with their absolute paths: what a test may look at, or turn bits of, behind everybody's back. */
  files(): Generator<[path: string, inode: SimulatedInode]> {
    return this.#medium.root.files('');
  }

  // ---- Disk ----

  open(path: string, mode: OpenMode): Promise<DiskFile> {
    const request: Request = { action: 'open', path };
    const finish = (): DiskFile => {
      const inode = this.#file(request);
      if (mode === 'direct' && this.#options.direct === 'none') throw failed(request, 'UNSUPPORTED', 'EINVAL');
      return new SimulatedFile(this.#access, path, inode, mode);
    };
    return this.#later(request, { finish });
  }

  pages(bytes: number): Uint8Array {
    return new Uint8Array(bytes);
  }

  create(path: string): Promise<DiskFile> {
    const request: Request = { action: 'create', path };
    const make = (): SimulatedInode => {
      const folder = this.#folderAbove(request);
      if (folder.entries.has(nameOf(path))) throw failed(request, 'ALREADY_EXISTS', 'file exists');
      const inode = new SimulatedInode();
      folder.change([[nameOf(path), inode]]);
      return inode;
    };
    return this.#later(request, {
      finish: () => new SimulatedFile(this.#access, path, make(), 'write'),
      half: this.#perhaps(make),
    });
  }

  makeFolder(path: string): Promise<void> {
    const make = (): void => {
      let folder = this.#medium.root;
      for (const name of partsOf(path)) {
        const next = folder.entries.get(name) ?? new SimulatedFolder();
        if (!(next instanceof SimulatedFolder)) throw failed({ action: 'makeFolder', path }, 'DISK_FAILED', 'a file');
        if (!folder.entries.has(name)) folder.change([[name, next]]);
        folder = next;
      }
    };
    return this.#later({ action: 'makeFolder', path }, { finish: make, half: this.#perhaps(make) });
  }

  list(path: string): Promise<string[]> {
    return this.#later(
      { action: 'list', path },
      {
        finish: () => {
          const node = this.#find(path);
          return node instanceof SimulatedFolder ? [...node.entries.keys()].toSorted() : [];
        },
      },
    );
  }

  exists(path: string): Promise<boolean> {
    return this.#later({ action: 'exists', path }, { finish: () => this.#find(path) !== undefined });
  }

  rename(source: string, target: string): Promise<void> {
    const request: Request = { action: 'rename', path: source };
    const move = (): void => {
      // A prefix of changes is kept per folder, so a move between two could lose the file: no file system does that.
      assert(parentOf(source) === parentOf(target), 'a simulated disk renames within one folder');
      const folder = this.#folderAbove(request);
      const node = folder.entries.get(nameOf(source));
      if (node === undefined) throw failed(request, 'NOT_FOUND', 'no such file');
      folder.change([
        [nameOf(source), undefined],
        [nameOf(target), node],
      ]);
    };
    return this.#later(request, { finish: move, half: this.#perhaps(move) });
  }

  unlink(path: string): Promise<void> {
    const remove = (): void => {
      const folder = this.#find(parentOf(path));
      if (folder instanceof SimulatedFolder && folder.entries.has(nameOf(path))) {
        folder.change([[nameOf(path), undefined]]);
      }
    };
    return this.#later({ action: 'unlink', path }, { finish: remove, half: this.#perhaps(remove) });
  }

  removeFolder(path: string): Promise<void> {
    const remove = (at: string): void => {
      const node = this.#find(at);
      if (node === undefined) return;
      if (node instanceof SimulatedFolder) {
        for (const name of node.entries.keys()) {
          if (!this.#running && this.#random.below(8) === 0) return;
          remove(`${at}/${name}`);
        }
      }
      const above = this.#find(parentOf(at));
      if (above instanceof SimulatedFolder) above.change([[nameOf(at), undefined]]);
    };
    const whole = (): void => remove(path);
    return this.#later({ action: 'removeFolder', path }, { finish: whole, half: this.#perhaps(whole) });
  }

  syncFolder(path: string): Promise<void> {
    const request: Request = { action: 'syncFolder', path };
    const folder = this.#find(path);
    const marked = folder instanceof SimulatedFolder ? folder.mark() : [];
    const settle = (): void => {
      if (!(folder instanceof SimulatedFolder)) throw failed(request, 'NOT_FOUND', 'no such folder');
      folder.settle(marked);
    };
    const troubled = (fate: DiskFate): void => {
      if (fate === 'fail' || fate === 'full') throw failed(request, 'DISK_FAILED', 'EIO');
      if (fate !== 'lie') settle();
    };
    return this.#later(request, { finish: settle, half: this.#perhaps(settle) }, troubled);
  }

  space(path: string): Promise<DiskSpace> {
    return this.#later(
      { action: 'space', path },
      { finish: () => ({ free: this.#free(), total: this.#medium.totalBytes }) },
    );
  }

  // ---- the machine ----

  #find(path: string): SimulatedNode | undefined {
    let node: SimulatedNode | undefined = this.#medium.root;
    for (const name of partsOf(path)) {
      if (!(node instanceof SimulatedFolder)) return undefined;
      node = node.entries.get(name);
    }
    return node;
  }

  #file(request: Request): SimulatedInode {
    const node = this.#find(request.path);
    if (node instanceof SimulatedInode) return node;
    throw failed(request, 'NOT_FOUND', 'no such file');
  }

  #folderAbove(request: Request): SimulatedFolder {
    const node = this.#find(parentOf(request.path));
    if (node instanceof SimulatedFolder) return node;
    throw failed(request, 'NOT_FOUND', 'no such folder');
  }

  #free(): number {
    let used = 0;
    for (const [, inode] of this.files()) used += inode.size;
    return Math.max(0, this.#medium.totalBytes - used);
  }

  /** What a file's end may show after a power cut: zeros, noise, or what once stood in another file. */
  #filler(count: number): Uint8Array {
    const kind = this.#random.below(3);
    if (kind === 0) return new Uint8Array(count);
    if (kind === 1) return this.#random.bytes(count);
    const filler = new Uint8Array(count);
    const others = [...this.files()].map(([, inode]) => inode).filter((inode) => inode.durableSize > 0);
    const other = others[this.#random.below(Math.max(1, others.length))];
    if (other !== undefined) filler.set(other.durableBytes().subarray(0, count));
    return filler;
  }

  #perhaps(work: () => unknown): () => void {
    return () => {
      if (this.#random.below(2) === 0) return;
      try {
        work();
      } catch {
        // It would have failed: then nothing of it is done.
      }
    };
  }

  #fate(request: Request): DiskFate {
    this.#medium.operations += 1;
    const { action, path, bytes = 0, offset = 0, direct = false } = request;
    return this.onOperation?.({ number: this.#medium.operations, action, path, bytes, offset, direct });
  }

  async #pause(): Promise<void> {
    const { clock } = this.#options;
    const latencyMs = this.#options.latencyMs?.() ?? 0;
    const turns = this.#random.below(4);
    if (clock === undefined) for (let i = 0; i < turns; i++) await Promise.resolve();
    else if (latencyMs > 0) {
      await new Promise<void>((resolve) => void clock.after(this.#random.fraction() * latencyMs, resolve));
    } else for (let i = 0; i < turns; i++) await new Promise<void>((resolve) => clock.soon(resolve));
  }

  async #later<T>(request: Request, step: Step<T>, troubled?: (fate: DiskFate) => T): Promise<T> {
    if (!this.#running) return await never();
    const half = (): void => step.half?.();
    this.#halves.add(half);
    const fate = this.#fate(request);
    if (fate === 'stop') this.stop();
    await this.#pause();
    if (!this.#running) return await never();
    this.#halves.delete(half);
    return this.#settle(request, step, fate, troubled);
  }

  #settle<T>(request: Request, step: Step<T>, fate: DiskFate, troubled?: (fate: DiskFate) => T): T {
    if (fate === undefined || fate === 'stop') return step.finish();
    if (troubled !== undefined) return troubled(fate);
    if (fate === 'fail') throw failed(request, 'DISK_FAILED', 'EIO');
    if (fate === 'full') throw failed(request, 'DISK_FULL', 'ENOSPC');
    return step.finish();
  }

  readonly #access: FileAccess = {
    draw: (limit) => this.#random.below(limit),
    betray: (inode, mark) => inode.betray(mark, this.#random),
    free: () => this.#free(),
    takesDirect: () => this.#options.direct !== 'refused',
    later: (request, step, troubled) => this.#later(request, step, troubled),
    now: (request, step, troubled) => {
      if (!this.#running) throw new MachineStopped();
      const fate = this.#fate(request);
      if (fate !== 'stop') return this.#settle(request, step, fate, troubled);
      step.half?.();
      this.stop();
      throw new MachineStopped();
    },
  };
}
