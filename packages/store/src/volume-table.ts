import {
  assert,
  type Clock,
  codeOf,
  type Disk,
  type DiskFile,
  type Random,
  WebdfsError,
  writeFully,
} from '@webdfs/base';
import { packSeal, SEAL_BYTES } from './entry-format.ts';
import { MAX_OPEN_VOLUMES } from './limits.ts';
import type { Logged } from './logged.ts';
import type { VolumeState, VolumeValue } from './state-rows.ts';
import { LANE, type LaneNumber, packVolumeHead, VOLUME_HEAD_BYTES, volumeFileName } from './volume-format.ts';

/** One volume file: its facts (the `v` row), its descriptor, and who reads it. */
export class Volume {
  readonly id: number;
  readonly lane: LaneNumber;
  readonly salt: number;
  readonly path: string;
  state: VolumeState = 'open';
  /** Bytes of the file, and of those the stable ones. */
  size = VOLUME_HEAD_BYTES;
  durable = VOLUME_HEAD_BYTES;
  /** Entries are valid below; meaningful once sealed. */
  end = 0;
  live = 0;
  tombstones = 0;
  entries = 0;
  horizon = 0;
  /** Durable entries in order of place; the index holds all before the first that is not settled. */
  readonly unsettled: Logged[] = [];
  #reached = VOLUME_HEAD_BYTES;
  file: DiskFile | undefined;
  /** The same file once more, for direct writes, while a lane of blocks writes it and the file system takes them. */
  direct: DiskFile | undefined;
  opening: Promise<DiskFile> | undefined;
  references = 0;
  onFree: (() => void) | undefined;

  constructor(facts: { id: number; lane: LaneNumber; salt: number; path: string }) {
    this.id = facts.id;
    this.lane = facts.lane;
    this.salt = facts.salt;
    this.path = facts.path;
  }

  /** Below this place everything is in the index: where a scan would begin. */
  get applied(): number {
    let count = 0;
    while (count < this.unsettled.length && this.unsettled[count]!.settled) count++;
    if (count > 0) this.unsettled.splice(0, count);
    return this.unsettled[0]?.place ?? this.#reached;
  }

  async closeDirect(): Promise<void> {
    const direct = this.direct;
    this.direct = undefined;
    await direct?.close();
  }

  /** All durable bytes below `place` are in `unsettled` or settled. */
  reached(place: number): void {
    assert(place >= this.#reached, 'a volume is applied upwards');
    this.#reached = place;
  }

  /** Takes over what the index knows. */
  restore(row: VolumeValue): void {
    this.state = row.state;
    this.size = row.size;
    this.end = row.end;
    this.live = row.live;
    this.tombstones = row.tombstones;
    this.entries = row.entries;
    this.horizon = row.horizon;
    this.#reached = Math.max(VOLUME_HEAD_BYTES, row.applied);
  }

  row(): VolumeValue {
    const { state, lane, end, size, live, tombstones, entries, horizon, applied } = this;
    return { applied, state, lane, end, size, live, tombstones, entries, horizon };
  }
}

/**
 * All volumes of a store: ids, files, descriptors. At most `MAX_OPEN_VOLUMES` unused descriptors stay open, the least
 * recently used are closed; a volume in use is never closed nor unlinked.
 */
export class VolumeTable {
  readonly folder: string;
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #storeId: string;
  readonly #volumes = new Map<number, Volume>();
  /** Open descriptors, least recently used first. */
  readonly #open = new Set<Volume>();
  readonly #maxOpen: number;
  readonly #touched = new Set<Volume>();
  #highest = 0;

  constructor(options: {
    disk: Disk;
    clock: Clock;
    random: Random;
    folder: string;
    storeId: string;
    maxOpen?: number | undefined;
  }) {
    this.#disk = options.disk;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#storeId = options.storeId;
    this.#maxOpen = options.maxOpen ?? MAX_OPEN_VOLUMES;
    this.folder = options.folder;
  }

  /** The highest id ever given out. */
  get highest(): number {
    return this.#highest;
  }

  /** Ids up to here are taken. */
  reserve(id: number): void {
    this.#highest = Math.max(this.#highest, id);
  }

  get(id: number): Volume | undefined {
    return this.#volumes.get(id);
  }

  /** In no particular order. */
  all(): IterableIterator<Volume> {
    return this.#volumes.values();
  }

  /** The volume's `v` row goes with the next batch. */
  touch(volume: Volume): void {
    this.#touched.add(volume);
  }

  /** A row points to `bytes` more (or fewer) of a volume. */
  addLive(id: number, bytes: number): void {
    const volume = this.#volumes.get(id);
    if (volume === undefined) return;
    volume.live += bytes;
    this.#touched.add(volume);
  }

  /** Volumes touched since the last call. */
  takeTouched(): Volume[] {
    const taken = [...this.#touched];
    this.#touched.clear();
    return taken;
  }

  pathOf(id: number): string {
    return `${this.folder}/${volumeFileName(id)}`;
  }

  add(volume: Volume): void {
    assert(!this.#volumes.has(volume.id), 'a volume is added once');
    this.#volumes.set(volume.id, volume);
    this.#touched.add(volume);
    this.reserve(volume.id);
  }

  /** Takes a volume of an earlier life, and its open file. */
  async adopt(volume: Volume, file: DiskFile): Promise<void> {
    volume.file = file;
    this.add(volume);
    this.#open.add(volume);
    await this.#closeOldest();
  }

  /**
   * Makes an empty volume whose head and name are on stable storage (4.3): only then may an entry be written to it.
   * The caller holds a reference to it.
   *
   * @throws DISK_FULL or DISK_FAILED; then nothing is left of it
   */
  async create(lane: LaneNumber): Promise<Volume> {
    this.#highest += 1;
    const id = this.#highest;
    const path = this.pathOf(id);
    const salt = new DataView(this.#random.bytes(4).buffer).getUint32(0);
    const head = packVolumeHead({ lane, volume: id, salt, storeId: this.#storeId, madeAtMs: this.#clock.now() });
    const file = await this.#disk.create(path);
    let direct: DiskFile | undefined;
    try {
      await writeFully(file, [head], 0);
      await file.sync();
      await this.#disk.syncFolder(this.folder);
      if (lane === LANE.BULK) direct = await this.#openDirect(path);
    } catch (error) {
      await file.close();
      await this.#disk.unlink(path);
      throw error;
    }
    const volume = new Volume({ id, lane, salt, path });
    volume.file = file;
    volume.direct = direct;
    volume.references = 1;
    this.#open.add(volume);
    this.add(volume);
    return volume;
  }

  async #openDirect(path: string): Promise<DiskFile | undefined> {
    try {
      return await this.#disk.open(path, 'direct');
    } catch (error) {
      if (codeOf(error) !== 'UNSUPPORTED') throw error;
      return undefined;
    }
  }

  /** Memory that direct writes may come from. */
  pages(bytes: number): Uint8Array {
    return this.#disk.pages(bytes);
  }

  /** A reference and the open file, if that needs no waiting. */
  acquireNow(volume: Volume): DiskFile | undefined {
    const file = volume.file;
    if (file === undefined) return undefined;
    volume.references += 1;
    return file;
  }

  /** A reference and the open file; every acquire is followed by one `release`. @throws NOT_FOUND if the file is gone */
  async acquire(volume: Volume): Promise<DiskFile> {
    volume.references += 1;
    try {
      if (volume.file === undefined) await this.#openFile(volume);
    } catch (error) {
      this.release(volume);
      throw error;
    }
    this.#open.delete(volume);
    this.#open.add(volume);
    return volume.file!;
  }

  release(volume: Volume): void {
    assert(volume.references > 0, 'a reference is given back once');
    volume.references -= 1;
    if (volume.references === 0) volume.onFree?.();
  }

  async #openFile(volume: Volume): Promise<void> {
    volume.opening ??= this.#disk.open(volume.path, 'write');
    try {
      volume.file = await volume.opening;
    } finally {
      volume.opening = undefined;
    }
    this.#open.add(volume);
    await this.#closeOldest();
  }

  async #closeOldest(): Promise<void> {
    for (const volume of this.#open) {
      if (this.#open.size <= this.#maxOpen) return;
      if (volume.references === 0) await this.#closeFile(volume);
    }
  }

  async #closeFile(volume: Volume): Promise<void> {
    const file = volume.file;
    volume.file = undefined;
    this.#open.delete(volume);
    await volume.closeDirect();
    await file?.close();
  }

  /**
   * Seals a volume: entries are valid below `end`, all of which is on stable storage already (P5). The seal stands at
   * the end of the file, whatever lies between.
   */
  async seal(volume: Volume, end: number): Promise<void> {
    await volume.closeDirect();
    const file = await this.acquire(volume);
    try {
      const size = await file.size();
      const place = Math.ceil(size / 8) * 8;
      assert(end <= place, 'a volume ends at or before its seal');
      await writeFully(file, [packSeal({ salt: volume.salt, volume: volume.id, place, end })], place);
      await syncOnce(file);
      volume.size = place + SEAL_BYTES;
      volume.end = end;
      volume.durable = end;
      volume.state = 'sealed';
      this.touch(volume);
    } finally {
      this.release(volume);
    }
  }

  /** Waits until nobody reads the volumes, unlinks their files and syncs the folder; until then `get` still finds them. */
  async remove(...gone: readonly Volume[]): Promise<void> {
    if (gone.length === 0) return;
    for (const volume of gone) {
      while (volume.references > 0) {
        await new Promise<void>((resolve) => {
          volume.onFree = resolve;
        });
      }
      volume.onFree = undefined;
      await this.#closeFile(volume);
      await this.#disk.unlink(volume.path);
    }
    await this.syncFolder();
    for (const volume of gone) {
      this.#volumes.delete(volume.id);
      this.#touched.delete(volume);
    }
  }

  syncFolder(): Promise<void> {
    return this.#disk.syncFolder(this.folder);
  }

  async close(): Promise<void> {
    for (const volume of this.#open) await this.#closeFile(volume);
  }

  /** The volume of a row. @throws CORRUPT if there is none: the row is wrong, or its file was lost */
  need(id: number): Volume {
    const volume = this.#volumes.get(id);
    if (volume === undefined) throw new WebdfsError('CORRUPT', `volume ${id} is not here`);
    return volume;
  }
}

/** A sync that fails, for whatever reason, is not tried again: the next would succeed and lie. @throws DISK_FAILED */
async function syncOnce(file: DiskFile): Promise<void> {
  try {
    await file.sync();
  } catch (error) {
    throw new WebdfsError('DISK_FAILED', `sync ${file.path} failed`, { cause: error });
  }
}
