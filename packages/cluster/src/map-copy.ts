import {
  type Clock,
  codeOf,
  crc32c,
  fromUtf8,
  type Log,
  messageOf,
  type Revision,
  type Timer,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import type { FollowedMap } from './local-map.ts';
import { exportFrom, formatExport, type MapExport, parseExport } from './map-export.ts';
import type { MapContents } from './map-store.ts';

/**
 * The copy of the map that every node keeps beside its data: what `webdfs cluster rescue` goes by when the store is lost.
 * Text: eight hex digits, the CRC-32C of all that follows the first line; then an exported map.
 *
 * It may lag: whether it is too old for a group is told by the ballots of that group's entries, which are durable before
 * anything is acknowledged (see `planRescue`).
 */

/** A copy is written at most so often. */
const PACE_MS = 2_000;
const SUM_DIGITS = 8;

/** Without sessions, which mean nothing to another store. @throws NOT_FOUND if the contents are no cluster's */
export function packMapCopy(contents: MapContents): Uint8Array {
  const text = utf8(formatExport(exportFrom(contents)));
  const sum = utf8(`${crc32c(text).toString(16).padStart(SUM_DIGITS, '0')}\n`);
  return Buffer.concat([sum, text]);
}

/** @throws CORRUPT, NEWER_FORMAT, TOO_LARGE */
export function unpackMapCopy(bytes: Uint8Array): MapExport {
  const text = bytes.subarray(SUM_DIGITS + 1);
  const sum = Buffer.from(bytes.subarray(0, SUM_DIGITS)).toString('latin1');
  if (!/^[0-9a-f]{8}$/.test(sum) || Number.parseInt(sum, 16) !== crc32c(text)) {
    throw new WebdfsError('CORRUPT', `the node's copy of the map is damaged: its checksum is wrong`);
  }
  return parseExport(fromUtf8(text));
}

export interface MapCopyOptions {
  readonly map: FollowedMap;
  /** Replaces the copy whole and durably. */
  readonly save: (bytes: Uint8Array) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  readonly paceMs?: number;
}

/** Keeps a node's copy of the map up, until disposed of; then it is as new as the map. */
export class MapCopy implements AsyncDisposable {
  readonly #options: MapCopyOptions;
  readonly #stopListening: () => void;
  #saved: Revision = 0;
  #saving: Promise<void> | undefined;
  #timer: Timer | undefined;
  #closed = false;

  constructor(options: MapCopyOptions) {
    this.#options = options;
    this.#stopListening = options.map.onChange(() => this.#changed());
    this.#changed();
  }

  #changed(): void {
    if (this.#closed || this.#timer !== undefined || this.#saving !== undefined) return;
    this.#saving = this.#save().finally(() => {
      this.#saving = undefined;
      if (this.#closed) return;
      this.#timer = this.#options.clock.after(this.#options.paceMs ?? PACE_MS, () => {
        this.#timer = undefined;
        if (this.#options.map.view.revision > this.#saved) this.#changed();
      });
    });
  }

  async #save(): Promise<void> {
    const { map, save, log } = this.#options;
    const contents = map.view.contents();
    try {
      await save(packMapCopy(contents));
      this.#saved = contents.revision;
    } catch (error) {
      // a full or failing disk is the store's to judge: an older copy is still one
      if (codeOf(error) === undefined) throw error;
      log.warn('map.copy', { revision: contents.revision, error: messageOf(error) });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#stopListening();
    this.#timer?.cancel();
    await this.#saving;
    if (this.#options.map.view.revision > this.#saved) await this.#save();
  }
}
