import { CHUNK_BYTES, type Clock, crc32c, type DiskFile, equalBytes } from '@webdfs/base';
import type { Tables } from './applier.ts';
import { type LogEntry } from './entry.ts';
import { bodyFits, type EntryHead, keyOf, metaOf, readHead, sumsOf } from './entry-format.ts';
import type { BlockValue, EntryPlace, PiecePlace } from './index-rows.ts';
import { MAX_SYNC_READ_BYTES } from './limits.ts';
import { toLogEntry } from './logged.ts';
import type { Residency } from './residency.ts';
import { Slab } from './slab.ts';
import type { Volume } from './volume-table.ts';
import { viewPart } from './plain-bytes.ts';

/** A read found other bytes than the index promised. */
export interface Mismatch {
  readonly what: string;
  /** The head was whole, but of another entry: then the row is wrong, not the disk. */
  readonly foreign: boolean;
}

export interface FoundEntry {
  readonly entry: LogEntry;
  readonly head: EntryHead;
  /** The key as it is stored: a BLOCK's ends in its generation. */
  readonly storedKey: Uint8Array;
}

/** `rest`: the head is whole and right, of the entry only the body is not. */
export type EntryRead = FoundEntry | { readonly mismatch: Mismatch; readonly rest?: FoundEntry };

/**
 * Reads entries and ranges of blocks. P12: no byte leaves that was not verified in this read. Bytes that are surely
 * cached are read on this thread, the rest on the pool.
 */
export class VolumeReader {
  readonly #tables: Tables;
  readonly #residency: Residency;
  readonly #clock: Clock;
  readonly #slab = new Slab({ size: 256 * 1024, most: 16 * 1024, zeroed: false });
  readonly counters = { syncReads: 0, poolReads: 0 };

  constructor(tables: Tables, residency: Residency) {
    this.#tables = tables;
    this.#residency = residency;
    this.#clock = tables.clock;
  }

  /** The whole entry at a place, if it is what it should be. @throws DISK_FAILED; NOT_FOUND if the file has just gone */
  async readEntry(place: EntryPlace, expected: { key?: Uint8Array; sequence: number }): Promise<EntryRead> {
    const volume = this.#tables.volumes.get(place.volume);
    if (volume === undefined) return { mismatch: { what: `volume ${place.volume} is not here`, foreign: false } };
    const { entryBytes } = place;
    const bytes = this.#slab.take(entryBytes);
    if (!this.#readNow(volume, bytes, place.place)) await this.#readSoon(volume, bytes, place.place);
    return decode(bytes, volume, place.place, expected);
  }

  /** On this thread, if the bytes are cached; false if they may not be. */
  #readNow(volume: Volume, target: Uint8Array, place: number): boolean {
    if (target.length > MAX_SYNC_READ_BYTES) return false;
    if (!this.#residency.isCached(volume.id, place, target.length)) return false;
    const file: DiskFile | undefined = volume.file;
    if (file === undefined) return false;
    const began = this.#clock.monotonic();
    const count = file.readSync(target, place);
    this.#residency.readTook(this.#clock.monotonic() - began);
    this.counters.syncReads += 1;
    if (count < target.length) target.fill(0, count);
    return true;
  }

  async #readSoon(volume: Volume, target: Uint8Array, place: number): Promise<void> {
    const { volumes } = this.#tables;
    const file = await volumes.acquire(volume);
    try {
      const count = await file.read(target, place);
      if (count < target.length) target.fill(0, count);
    } finally {
      volumes.release(volume);
    }
    this.counters.poolReads += 1;
    this.#residency.touch(volume.id, place, target.length);
  }

  async #fill(volume: Volume, target: Uint8Array, place: number): Promise<void> {
    if (!this.#readNow(volume, target, place)) await this.#readSoon(volume, target, place);
  }

  /**
   * Fills `target` with a block's bytes from `offset`; every chunk touched is checked against the block's sums.
   * Returns the piece that did not fit, or undefined if all is well. The caller has checked the range.
   */
  async readBlock(
    block: Pick<BlockValue, 'pieces' | 'sums'>,
    offset: number,
    target: Uint8Array,
  ): Promise<PiecePlace | undefined> {
    const end = offset + target.length;
    let pieceFrom = 0;
    for (const piece of block.pieces) {
      const pieceEnd = pieceFrom + piece.length;
      if (pieceEnd > offset && pieceFrom < end) {
        const from = Math.max(offset, pieceFrom);
        const until = Math.min(end, pieceEnd);
        const part = target.subarray(from - offset, until - offset);
        if (!(await this.#readPiece(block.sums, piece, pieceFrom, from, part))) return piece;
      }
      pieceFrom = pieceEnd;
      if (pieceFrom >= end) break;
    }
    return undefined;
  }

  /** Fills `part` with the bytes of a piece that begin at `from` of the block: whole chunks directly, edges through scratch. */
  async #readPiece(
    sums: Uint32Array,
    piece: PiecePlace,
    pieceFrom: number,
    from: number,
    part: Uint8Array,
  ): Promise<boolean> {
    const volume = this.#tables.volumes.get(piece.volume);
    if (volume === undefined) return false;
    const bodyAt = piece.place + piece.headBytes;
    const pieceEnd = pieceFrom + piece.length;
    const until = from + part.length;
    let at = from;
    while (at < until) {
      const chunkFrom = at - (at % CHUNK_BYTES);
      const wholeUntil = until === pieceEnd ? until : until - (until % CHUNK_BYTES);
      if (chunkFrom === at && wholeUntil > at) {
        const bytes = part.subarray(at - from, wholeUntil - from);
        await this.#fill(volume, bytes, bodyAt + at - pieceFrom);
        if (!fits(bytes, sums, at / CHUNK_BYTES)) return false;
        at = wholeUntil;
        continue;
      }
      const chunkEnd = Math.min(chunkFrom + CHUNK_BYTES, pieceEnd);
      const scratch = Buffer.allocUnsafeSlow(chunkEnd - chunkFrom);
      await this.#fill(volume, scratch, bodyAt + chunkFrom - pieceFrom);
      if (!fits(scratch, sums, chunkFrom / CHUNK_BYTES)) return false;
      const stop = Math.min(chunkEnd, until);
      part.set(scratch.subarray(at - chunkFrom, stop - chunkFrom), at - from);
      at = stop;
    }
    return true;
  }
}

function fits(bytes: Uint8Array, sums: Uint32Array, firstChunk: number): boolean {
  for (let at = 0, chunk = firstChunk; at < bytes.length; at += CHUNK_BYTES, chunk++) {
    if (crc32c(bytes.subarray(at, at + CHUNK_BYTES)) !== sums[chunk]) return false;
  }
  return true;
}

function decode(
  bytes: Buffer,
  volume: Volume,
  place: number,
  expected: { key?: Uint8Array; sequence: number },
): EntryRead {
  const head = readHead(bytes, 0, { volume: volume.id, salt: volume.salt, place });
  if (head === undefined) return { mismatch: { what: 'head does not fit its checksum', foreign: false } };
  const key = keyOf(bytes, 0, head);
  const isForeign =
    head.sequence !== expected.sequence || (expected.key !== undefined && !equalBytes(key, expected.key));
  if (isForeign || head.headBytes + head.bodyBytes > bytes.length) {
    return { mismatch: { what: 'the row names another entry', foreign: true } };
  }
  const sums = sumsOf(bytes, 0, head);
  const body = viewPart(bytes, head.headBytes, head.headBytes + head.bodyBytes);
  const entry = toLogEntry(head, { key, meta: metaOf(bytes, 0, head), body, sums });
  const found: FoundEntry = { entry, head, storedKey: key };
  if (bodyFits(body, sums)) return found;
  return { mismatch: { what: 'body does not fit its checksums', foreign: false }, rest: found };
}
