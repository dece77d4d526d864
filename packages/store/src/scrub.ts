import { codeOf, messageOf } from '@webdfs/base';
import { SEAL_BYTES, unpackSeal } from './entry-format.ts';
import { KIND } from './entry.ts';
import { checkRow, rowBuffer, unpackPieceKey, viewOf } from './index-rows.ts';
import { type ScannedEntry, scanVolume } from './scanner.ts';
import { metaRowKey } from './state-rows.ts';
import type { Upkeep } from './upkeep.ts';
import { VOLUME_HEAD_BYTES } from './volume-format.ts';
import type { Volume } from './volume-table.ts';

/** Resolves when so many bytes may be read in the background. */
export interface Pace {
  take(bytes: number): Promise<void>;
}

export interface ScrubOptions {
  readonly pace: Pace;
  /** Ids of volumes that need not be read again; those that were read are added: with it a pass can be cut short and resumed. */
  readonly done?: Set<number>;
}

/** What a scrub looked at, and what it found. */
export interface ScrubOutcome {
  entries: number;
  damaged: number;
}

/**
 * Reads every entry of every volume once and verifies it: head, body, and that rows and entries agree. It begins after the
 * volume where the last one ended, so that one that is always cut short comes round all the same. What it finds is reported
 * as damage; it changes nothing itself.
 *
 * Bytes that the system has cached are not read from the disk: a pass proves as much as is larger than memory.
 *
 * @throws CANCELLED when its pace says so
 */
export async function scrub(upkeep: Upkeep, options: ScrubOptions): Promise<ScrubOutcome> {
  const { volumes, overlay } = upkeep;
  const { pace, done = new Set<number>() } = options;
  const outcome: ScrubOutcome = { entries: 0, damaged: 0 };
  const after = unpackPosition(overlay.get(metaRowKey('scrub')));
  const ids = [...volumes.all()].map(({ id }) => id).sort((a, b) => a - b);
  for (const id of [...ids.filter((id) => id > after), ...ids.filter((id) => id <= after)]) {
    const volume = volumes.get(id);
    if (volume === undefined || volume.state === 'gone' || done.has(id)) continue;
    await new VolumeScrub(upkeep, volume, pace, outcome).run();
    overlay.put(metaRowKey('scrub'), packPosition(id));
    done.add(id);
  }
  return outcome;
}

function packPosition(volume: number): Uint8Array {
  const bytes = rowBuffer(4);
  bytes.writeUInt32LE(volume);
  return bytes;
}

function unpackPosition(row: Uint8Array | undefined): number {
  if (row === undefined) return 0;
  checkRow(row.length === 4, 'position of the scrub has a wrong length');
  return viewOf(row).readUInt32LE(0);
}

/** The volume went away while it was read: that is compaction's good right. */
class VolumeGone extends Error {}

class VolumeScrub {
  readonly #upkeep: Upkeep;
  readonly #volume: Volume;
  readonly #meter: Pace;
  readonly #outcome: ScrubOutcome;
  /** Bytes of entries that a row pointed to when they were met. */
  #pointed = 0;

  constructor(upkeep: Upkeep, volume: Volume, pace: Pace, outcome: ScrubOutcome) {
    this.#upkeep = upkeep;
    this.#volume = volume;
    this.#meter = pace;
    this.#outcome = outcome;
  }

  async run(): Promise<void> {
    const { volumes } = this.#upkeep;
    const volume = this.#volume;
    // A volume that is open is read as far as it was durable when the scrub came by.
    const sealed = volume.state === 'sealed';
    const until = sealed ? volume.end : volume.durable;
    const live = volume.live;
    let file;
    try {
      file = await volumes.acquire(volume);
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') throw error;
      return this.#found({ place: 0, length: volume.size, what: 'file is missing', headLost: true });
    }
    try {
      if (sealed) await this.#checkSeal();
      const range = { from: VOLUME_HEAD_BYTES, until, sealed: true, pace: (bytes: number) => this.#pace(bytes) };
      await scanVolume({ file, volume: volume.id, salt: volume.salt }, range, (step) => {
        if (step.type === 'entry') return this.#entry(step);
        const { place } = step;
        this.#found({ place, length: step.until - place, what: 'unreadable', headLost: true });
      });
      if (sealed && volume.live === live) this.#compareLive();
    } catch (error) {
      if (codeOf(error) === 'DISK_FAILED') {
        this.#found({ place: 0, length: until, what: `cannot be read: ${messageOf(error)}`, headLost: true });
      } else if (!(error instanceof VolumeGone)) throw error;
    } finally {
      volumes.release(volume);
    }
  }

  async #pace(bytes: number): Promise<void> {
    await this.#meter.take(bytes);
    if (this.#volume.state === 'gone') throw new VolumeGone();
  }

  #entry(entry: ScannedEntry): void {
    this.#outcome.entries += 1;
    const points = this.#upkeep.pointers.points(entry);
    if (points) this.#pointed += entry.entryBytes;
    // Garbage may rot: compaction asks only for its head, which is whole.
    if (entry.whole || !points) return;
    const { head, entryBytes } = entry;
    const key = head.kind === KIND.PIECE ? unpackPieceKey(entry.key)?.id : entry.key.slice();
    const what = 'body does not fit its checksum';
    this.#found({ place: head.place, length: entryBytes, what, ...(key === undefined ? {} : { key }), group: head });
  }

  async #checkSeal(): Promise<void> {
    const { id, salt, size, end } = this.#volume;
    const file = this.#volume.file!;
    const place = size - SEAL_BYTES;
    const bytes = new Uint8Array(SEAL_BYTES);
    const count = await file.read(bytes, place);
    const read = count === SEAL_BYTES ? unpackSeal(bytes, { volume: id, salt, place }) : undefined;
    if (read !== end) this.#found({ place, length: SEAL_BYTES, what: 'seal is unreadable' });
  }

  /** Both directions at once: rows that point into the volume point to entries in it, and none is counted that is not there. */
  #compareLive(): void {
    const { live, size } = this.#volume;
    if (this.#pointed === live) return;
    const what = `rows point to ${live} bytes, entries found for ${this.#pointed}: rebuild the index`;
    this.#found({ place: 0, length: size, what });
  }

  #found(damage: Omit<Parameters<Upkeep['damage']['report']>[0], 'volume'>): void {
    this.#outcome.damaged += 1;
    this.#upkeep.damage.report({ volume: this.#volume.id, ...damage });
  }
}
