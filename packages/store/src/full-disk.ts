import {
  type Clock,
  type Disk,
  type DiskSpace,
  type Log,
  messageOf,
  type Random,
  sleep,
  type Timer,
} from '@webdfs/base';
import { MAX_VOLUME_BYTES, MIN_VOLUME_BYTES } from './limits.ts';

const MIB = 1024 * 1024;
const LOOK_MS = 1_000;
/** The ballast is written at this pace, so that a first start is no burden. */
const BALLAST_STEP_BYTES = MIB;
const BALLAST_STEP_MS = 50;
/** More would only make first starts slow: half the reserve is still free when the ballast goes. */
const MAX_BALLAST_BYTES = 64 * MIB;

/** Space kept free for deletes, marks, compaction and the index, bytes. */
export function reserveOf(total: number): number {
  const least = Math.min(64 * MIB, total / 4);
  return Math.floor(Math.min(3 * 1024 * MIB, Math.max(least, total * 0.05)));
}

export function ballastOf(reserve: number): number {
  return Math.min(MAX_BALLAST_BYTES, Math.floor(reserve / 2 / MIB) * MIB);
}

/** Volumes are at most 1/32 of the disk, so that a small one has something to compact. */
export function volumeBytesOf(total: number): number {
  return Math.min(MAX_VOLUME_BYTES, Math.max(MIN_VOLUME_BYTES, Math.floor(total / 32)));
}

export interface FullState {
  /** Puts are refused. */
  readonly full: boolean;
  readonly ballast: 'kept' | 'given up';
}

/** What to do when so much is free. Pure; hysteresis keeps a disk at the brink from flapping. */
export function stepFull(state: FullState, free: number, reserve: number): FullState {
  const full = state.full ? free <= 1.25 * reserve : free < reserve;
  if (state.ballast === 'kept') return { full, ballast: free < reserve / 2 ? 'given up' : 'kept' };
  return { full, ballast: free > 2 * reserve ? 'kept' : 'given up' };
}

/** Watches the space of the store's file system, and keeps the ballast. */
export class FullDisk {
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #random: Random;
  readonly #folder: string;
  readonly #ballast: string;
  readonly #fixedReserve: number | undefined;
  readonly #keepsBallast: boolean;
  #state: FullState = { full: false, ballast: 'given up' };
  #space: DiskSpace = { free: 0, total: 0 };
  #timer: Timer | undefined;
  #closing = new AbortController();
  #writing: Promise<void> | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: {
    disk: Disk;
    clock: Clock;
    log: Log;
    random: Random;
    /** Any folder of the file system in question. */
    folder: string;
    ballast: string;
    reserveBytes?: number | undefined;
    keepsBallast?: boolean | undefined;
  }) {
    this.#disk = options.disk;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#random = options.random;
    this.#folder = options.folder;
    this.#ballast = options.ballast;
    this.#fixedReserve = options.reserveBytes;
    this.#keepsBallast = options.keepsBallast ?? true;
  }

  get full(): boolean {
    return this.#state.full;
  }

  get space(): DiskSpace {
    return this.#space;
  }

  get reserve(): number {
    return this.#fixedReserve ?? reserveOf(this.#space.total);
  }

  /** A first look, before anything is written. */
  async open(): Promise<void> {
    const ballast = (await this.#disk.exists(this.#ballast)) ? 'kept' : 'given up';
    this.#state = { full: false, ballast };
    await this.look();
  }

  /** Looks each second from now on. */
  watch(): void {
    this.#timer = this.#clock.after(LOOK_MS, () => {
      this.#looking = this.look()
        .catch((error: unknown) => this.#log.warn('space is unknown', { error: messageOf(error) }))
        .then(() => {
          this.#looking = undefined;
          if (!this.#closing.signal.aborted) this.watch();
        });
    });
  }

  async look(): Promise<void> {
    this.#space = await this.#disk.space(this.#folder);
    const before = this.#state;
    const next = stepFull(before, this.#space.free, this.reserve);
    const { free } = this.#space;
    if (next.full !== before.full) this.#log.warn(next.full ? 'disk is full' : 'disk has space again', { free });
    if (next.ballast === 'given up' && before.ballast === 'kept') {
      await this.#writing;
      await this.#disk.unlink(this.#ballast);
      this.#log.warn('ballast given up', { free });
    }
    this.#state = next;
    if (next.ballast === 'kept' && before.ballast === 'given up' && this.#keepsBallast) {
      this.#writing = this.#writeBallast();
    }
  }

  /** A write has found the disk full, whatever `space` says. */
  async foundFull(): Promise<void> {
    this.#state = { ...this.#state, full: true };
    if (this.#state.ballast === 'kept') {
      this.#state = { full: true, ballast: 'given up' };
      await this.#disk.unlink(this.#ballast);
    }
  }

  /** Really written, unlike a hole, and not compressible. */
  async #writeBallast(): Promise<void> {
    const bytes = ballastOf(this.reserve);
    const step = this.#random.bytes(BALLAST_STEP_BYTES);
    try {
      await this.#disk.unlink(this.#ballast);
      const file = await this.#disk.create(this.#ballast);
      try {
        for (let at = 0; at < bytes && this.#state.ballast === 'kept'; at += step.length) {
          await file.writev([step], at);
          await sleep(this.#clock, BALLAST_STEP_MS, this.#closing.signal);
        }
        await file.sync();
      } finally {
        await file.close();
      }
    } catch (error) {
      await this.#disk.unlink(this.#ballast);
      this.#state = { ...this.#state, ballast: 'given up' };
      if (!this.#closing.signal.aborted) this.#log.warn('no ballast', { error: messageOf(error) });
    }
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#closing.abort(new Error('closing'));
    await this.#looking;
    await this.#writing;
  }
}
