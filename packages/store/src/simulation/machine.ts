import assert from 'node:assert/strict';
import { codeOf, ManualClock, messageOf, type SeededRandom, silentLog } from '@webdfs/base';
import { type Crash, type DiskFate, type DiskOperation, SimulatedDisk } from '@webdfs/base/testing';
import { MemoryLock } from '../folder-lock.ts';
import { openStore } from '../open-store.ts';
import { SortedIndexHouse } from '../sorted-index.ts';
import type { Store } from '../store.ts';
import type { CrashPoints } from './crash-points.ts';

export const FOLDER = '/data/store';

/** What a machine has come to in one life. */
interface Ongoing {
  readonly disk: SimulatedDisk;
  /** Its answers do not count any more. */
  over: boolean;
  /** The store has stopped by itself: its disk or its index failed. */
  failed: boolean;
}

export interface Life extends Ongoing {
  readonly store: Store;
}

export interface MachineOptions {
  readonly random: SeededRandom;
  readonly points: CrashPoints;
  /** A mutant: syncs that do nothing and report success. */
  readonly lies?: ((operation: DiskOperation) => boolean) | undefined;
  readonly trace?: ((line: string) => void) | undefined;
}

/** Follows what an operation of the store answers. */
export interface Outcome {
  readonly answered: () => void;
  /** Missing: it must not be refused, unless its disk fails. */
  readonly refused?: (code: string, message: string) => void;
}

export function isSync({ action }: DiskOperation): boolean {
  return action === 'datasync' || action === 'sync';
}

/** A machine with a disk and a clock on which a store is opened, used, and struck down; one random source decides all. */
export class Machine {
  readonly clock = new ManualClock();
  readonly #random: SeededRandom;
  readonly #options: MachineOptions;
  readonly #locks = new MemoryLock();
  readonly #maxVolumeBytes: number;
  readonly #reserveBytes: number;
  disk: SimulatedDisk;
  /** Operations of the store under way. */
  #open = 0;
  /** What an answer should not have been. */
  #wrong: { readonly error: unknown } | undefined;

  constructor(options: MachineOptions) {
    const { random } = options;
    this.#options = options;
    this.#random = random;
    this.#maxVolumeBytes = 6_000 + random.below(12_000);
    // large enough for a ballast of 1 MiB now and then
    this.#reserveBytes = random.below(8) === 0 ? 2 * 1024 * 1024 : 20_000;
    const direct = (['none', 'refused'] as const)[random.below(8)] ?? 'work';
    this.disk = new SimulatedDisk({ seed: random.uint32(), clock: this.clock, direct });
  }

  async format(): Promise<void> {
    await this.disk.makeFolder(FOLDER);
    await this.disk.syncFolder('/data');
    await this.disk.syncFolder('/');
  }

  trace(text: () => string): void {
    this.#options.trace?.(text());
  }

  // ---- lives ----

  /** Opens the store with fates for what its disk does; undefined if the machine stops or the disk fails meanwhile. */
  async begin(fate: (operation: DiskOperation) => DiskFate, mayFail: boolean): Promise<Life | undefined> {
    const { disk } = this;
    this.#options.points.watch(disk, 'recovery');
    this.hook(disk, fate);
    const life: Ongoing = { disk, over: false, failed: false };
    try {
      const store = await this.drive(
        this.#openStore(disk, () => {
          life.failed = true;
        }),
        life,
      );
      if (store === undefined || !disk.running) return undefined;
      disk.onOperation = undefined;
      return Object.assign(life, { store });
    } catch (error) {
      // Nothing else can go wrong, and an index that fails is told as CORRUPT.
      assert.ok(mayFail && ['DISK_FAILED', 'DISK_FULL', 'CORRUPT'].includes(codeOf(error) ?? ''), messageOf(error));
      return undefined;
    }
  }

  #openStore(disk: SimulatedDisk, onFailed: () => void): Promise<Store> {
    return openStore({
      disk,
      index: new SortedIndexHouse({ disk, random: this.#random }),
      lock: this.#locks,
      folder: FOLDER,
      identity: { node: 1, cluster: 'simulated' },
      clock: this.clock,
      random: this.#random,
      log: silentLog,
      onFailed,
      options: {
        maxVolumeBytes: this.#maxVolumeBytes,
        reserveBytes: this.#reserveBytes,
        tombstoneKeepMs: 60_000,
        stagingBytes: 512 * 1024,
        // few, so that keys meet in them
        locationSlots: 16,
      },
    });
  }

  hook(disk: SimulatedDisk, fate: (operation: DiskOperation) => DiskFate): void {
    disk.onOperation = (operation) => {
      const { number, action, path, offset, bytes } = operation;
      this.#options.points.saw(operation);
      if (!action.startsWith('read')) this.trace(() => `  ${number} ${action} ${path} ${offset} ${bytes}`);
      return this.#options.lies?.(operation) === true ? 'lie' : fate(operation);
    };
  }

  /** Ends a life, and begins the next. */
  crash(crash: Crash, life?: Life): void {
    if (this.#wrong !== undefined) throw this.#wrong.error;
    if (life !== undefined) life.over = true;
    this.trace(() => `crash: ${crash}`);
    this.disk = this.disk.crash(crash);
    this.#locks.breakAll();
    this.#open = 0;
    this.#options.points.crashed(crash);
  }

  async loseIndex(): Promise<void> {
    this.trace(() => 'the index is lost');
    this.#options.points.totals.rebuilds += 1;
    await this.disk.removeFolder(`${FOLDER}/index`);
  }

  /** Names and inodes of the volumes. */
  volumes(): ReturnType<SimulatedDisk['files']> extends Generator<infer File> ? File[] : never {
    return [...this.disk.files()].filter(([path]) => path.endsWith('.vol'));
  }

  // ---- waiting ----

  async turns(life: Ongoing, count: number): Promise<void> {
    if (this.#wrong !== undefined) throw this.#wrong.error;
    for (let i = 0; i < count && life.disk.running; i++) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Waits until fewer than `limit` operations are under way; time goes on meanwhile. */
  async untilOpen(life: Life, limit: number): Promise<void> {
    for (let i = 0; this.#open >= limit && life.disk.running && !life.failed; i++) {
      assert.ok(i < 20_000, `${this.#open} operations are never answered`);
      await this.turns(life, 3);
      this.clock.advance(10);
    }
  }

  /** The result; undefined if the machine stops or the store fails before. Time goes on meanwhile. */
  async drive<T>(work: Promise<T>, life: Ongoing): Promise<T | undefined> {
    const outcome: { done: boolean } = { done: false };
    const settled = work.finally(() => (outcome.done = true));
    settled.catch(() => undefined);
    for (let i = 0; !outcome.done && life.disk.running; i++) {
      assert.ok(i < 100_000, 'the store answers in the end');
      await new Promise((resolve) => setImmediate(resolve));
      if (i % 10 === 9) this.clock.advance(10);
    }
    if (life.disk.running && !life.failed) return await settled;
    // What a dead machine throws on its way down is nobody's answer.
    return undefined;
  }

  /** Follows an operation of the store to its answer, unless its life ends before. */
  follow(life: Life, work: Promise<unknown>, outcome: Outcome): void {
    this.#open += 1;
    const settle = (act: () => void): void => {
      if (life.over || !life.disk.running) return;
      this.#open -= 1;
      try {
        act();
      } catch (error) {
        this.#wrong ??= { error };
      }
    };
    const refuse = (error: unknown): void => {
      const code = codeOf(error);
      if (code === undefined) throw error;
      // Whatever is refused after the disk or the index failed is refused for that.
      if (life.failed || code === 'DISK_FAILED') life.failed = true;
      else if (outcome.refused === undefined) throw error;
      else outcome.refused(code, messageOf(error));
    };
    work.then(
      () => settle(outcome.answered),
      (error: unknown) => settle(() => refuse(error)),
    );
  }
}
