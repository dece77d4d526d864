import { assert, type DiskFile, writeFully } from '@webdfs/base';
import { stampHead } from './entry-format.ts';
import { FLAG } from './entry.ts';
import { LANE, VOLUME_HEAD_BYTES } from './volume-format.ts';
import type { Volume, VolumeTable } from './volume-table.ts';

/** Copies gather until there are so many bytes of them. */
const WRITE_BYTES = 1024 * 1024;

/**
 * The volume that a compaction writes: made when the first copy comes, sealed once all are durable.
 * Nothing names its entries before that, so it can be thrown away at any time.
 */
export class CopyTarget {
  readonly #volumes: VolumeTable;
  #volume: Volume | undefined;
  #file: DiskFile | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;

  constructor(volumes: VolumeTable) {
    this.#volumes = volumes;
  }

  /** The volume; undefined while nothing was copied. */
  get volume(): Volume | undefined {
    return this.#volume;
  }

  /**
   * Takes a copy of a whole entry (head, body, padding): flag MOVED and a new place, all else unchanged.
   *
   * @param tombstone  whether it is kept for what it takes away
   * @throws DISK_FULL, DISK_FAILED
   */
  async add(raw: Uint8Array, headBytes: number, tombstone: boolean): Promise<void> {
    const volume = await this.#need();
    const bytes = Buffer.from(raw);
    bytes.writeUInt16LE(bytes.readUInt16LE(10) | FLAG.MOVED, 10);
    const place = volume.size + this.#waitingBytes;
    stampHead(bytes, 0, headBytes, { salt: volume.salt, volume: volume.id, place, durable: volume.durable });
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    volume.entries += 1;
    if (tombstone) volume.tombstones += bytes.length;
    if (this.#waitingBytes >= WRITE_BYTES) await this.#write();
  }

  async #need(): Promise<Volume> {
    if (this.#volume === undefined) {
      this.#volume = await this.#volumes.create(LANE.COMPACTED);
      this.#file = this.#volume.file;
    }
    return this.#volume;
  }

  async #write(): Promise<void> {
    const volume = this.#volume;
    assert(volume !== undefined, 'copies wait only for a volume that was made');
    const waiting = this.#waiting;
    this.#waiting = [];
    await writeFully(this.#file!, waiting, volume.size);
    volume.size += this.#waitingBytes;
    this.#waitingBytes = 0;
  }

  /** Makes all copies durable and seals the volume; undefined if there were none. Its reference stays with the caller. */
  async finish(horizon: number): Promise<Volume | undefined> {
    const volume = this.#volume;
    if (volume === undefined) return undefined;
    if (this.#waitingBytes > 0) await this.#write();
    await this.#file!.datasync();
    volume.durable = volume.size;
    volume.horizon = horizon;
    const end = volume.size;
    await this.#volumes.seal(volume, end);
    volume.reached(end);
    return volume;
  }

  /** Throws the volume away. Should it come back after a crash, recovery finds nothing that points into it. */
  async discard(): Promise<void> {
    const volume = this.#volume;
    if (volume === undefined) return;
    assert(volume.live === 0, 'a volume that is thrown away is named by no row');
    assert(volume.size >= VOLUME_HEAD_BYTES, 'a volume has its head');
    this.#volumes.release(volume);
    await this.#volumes.remove(volume);
    await this.#volumes.syncFolder();
  }
}
