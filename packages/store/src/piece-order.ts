import { type DiskFile, toHex } from '@webdfs/base';
import { bodyFits, keyOf, readHead, sumsOf } from './entry-format.ts';
import { type PieceKey, unpackPieceKey } from './index-rows.ts';
import type { ScannedEntry } from './scanner.ts';

/** Pieces put off at once: where each lies, not its bytes. */
export const MAX_DEFERRED_PIECES = 16_384;

interface DeferredPiece {
  readonly block: string;
  readonly offset: number;
  readonly place: number;
  readonly headBytes: number;
  readonly entryBytes: number;
}

/**
 * Puts the pieces of one block together while a volume is copied. Streams that came in at the same time lie interleaved;
 * the first of them is copied as it is met, the others are put off and read again, block by block.
 */
export class PieceOrder {
  readonly volume: number;
  readonly #file: DiskFile;
  readonly #salt: number;
  /** The block that is being copied, and the offset of its next piece. */
  #current: { readonly block: string; next: number } | undefined;
  #deferred: DeferredPiece[] = [];

  constructor(source: { file: DiskFile; volume: number; salt: number }) {
    this.#file = source.file;
    this.volume = source.volume;
    this.#salt = source.salt;
  }

  /** Whether this piece is put off; if not, the caller copies it now. */
  defer(entry: ScannedEntry): boolean {
    const key = unpackPieceKey(entry.key);
    if (key === undefined) return false;
    const block = nameOf(key);
    const { head, entryBytes } = entry;
    const follows = this.#current?.block === block && this.#current.next === key.offset;
    if (follows || this.#current === undefined) {
      this.#current = { block, next: key.offset + head.bodyBytes };
      return false;
    }
    this.#deferred.push({ block, offset: key.offset, place: head.place, headBytes: head.headBytes, entryBytes });
    return true;
  }

  get full(): boolean {
    return this.#deferred.length >= MAX_DEFERRED_PIECES;
  }

  /** What was put off: blocks in the order in which they were met, the pieces of each in theirs. */
  take(): DeferredPiece[] {
    const met = new Map<string, number>();
    for (const { block } of this.#deferred) if (!met.has(block)) met.set(block, met.size);
    const taken = this.#deferred.sort((a, b) => met.get(a.block)! - met.get(b.block)! || a.offset - b.offset);
    this.#deferred = [];
    this.#current = undefined;
    return taken;
  }

  /** The whole entry again, verified; undefined if it does not read as it did. */
  async read(piece: DeferredPiece): Promise<Uint8Array | undefined> {
    const raw = Buffer.alloc(piece.entryBytes);
    if ((await this.#file.read(raw, piece.place)) < raw.length) return undefined;
    const head = readHead(raw, 0, { volume: this.volume, salt: this.#salt, place: piece.place });
    if (head === undefined) return undefined;
    const key = unpackPieceKey(keyOf(raw, 0, head));
    if (key === undefined || nameOf(key) !== piece.block) return undefined;
    const body = raw.subarray(head.headBytes, head.headBytes + head.bodyBytes);
    return bodyFits(body, sumsOf(raw, 0, head)) ? raw : undefined;
  }
}

function nameOf(key: PieceKey): string {
  return `${toHex(key.id)}.${key.generation}`;
}
