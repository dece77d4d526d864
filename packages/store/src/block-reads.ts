import { codeOf, type GroupKey, WebdfsError } from '@webdfs/base';
import type { Core } from './core.ts';
import type { LogEntry } from './entry.ts';
import { blockRowKey, type BlockValue, unpackBlock } from './index-rows.ts';
import type { PiecePlace } from './index-rows.ts';
import { coveredBytes } from './staged-table.ts';
import type { BlockRow } from './store.ts';
import { blockRowOf } from './walks.ts';
import { copyOf } from './plain-bytes.ts';

/** Compaction may move a block's pieces between the look at the index and the read: then look again, so many times. */
const MAX_MOVES = 3;

/** Reads of blocks, named and staged. */
export class BlockReads {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  find(group: GroupKey, id: Uint8Array): BlockRow | undefined {
    const row = this.#core.tables.overlay.get(blockRowKey(group, id));
    return row === undefined ? undefined : blockRowOf(copyOf(id), group, row);
  }

  #value(row: BlockRow): BlockValue {
    const bytes = this.#core.tables.overlay.get(blockRowKey(row, row.id));
    const value = bytes === undefined ? undefined : unpackBlock(bytes);
    if (value === undefined) throw new WebdfsError('NOT_FOUND', 'the block is gone');
    return value;
  }

  /** @throws CORRUPT, NOT_FOUND, INVALID if the range is not inside the block */
  async read(row: BlockRow, offset: number, target: Uint8Array): Promise<void> {
    checkRange(row.size, offset, target.length);
    let before: PiecePlace | undefined;
    for (let moves = 0; moves <= MAX_MOVES; moves++) {
      const value = this.#value(row);
      const bad = await this.#tryRead(value, offset, target);
      if (bad === undefined) return;
      if (before?.volume === bad.volume && before.place === bad.place) break;
      before = bad;
    }
    throw this.#damaged(row, before);
  }

  /** The piece that could not be read as it should be. */
  async #tryRead(value: BlockValue, offset: number, target: Uint8Array): Promise<PiecePlace | undefined> {
    try {
      return await this.#core.reader.readBlock(value, offset, target);
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') throw error;
      return { volume: 0, place: 0, headBytes: 0, length: 0 };
    }
  }

  #damaged(row: BlockRow, piece: PiecePlace | undefined): WebdfsError {
    const { volume, place, length } = piece ?? { volume: 0, place: 0, length: 0 };
    const what = volume === 0 ? 'a piece of the block is missing' : 'a chunk does not fit its checksum';
    this.#core.tables.damage.report({ volume, place, length, what, key: row.id, group: row });
    return new WebdfsError('CORRUPT', `block at ${volume}:${place}: ${what}`);
  }

  async readEntry(row: BlockRow): Promise<LogEntry> {
    let before = -1;
    for (let moves = 0; ; moves++) {
      const value = this.#value(row);
      if (value.sequence !== row.sequence) throw new WebdfsError('CONFLICT', 'the block has changed');
      const read = await this.#core.reader.readEntry(value, { sequence: row.sequence });
      if ('entry' in read) return read.entry;
      const { volume, place, entryBytes: length } = value;
      if (before === place || moves === MAX_MOVES) {
        const { what } = read.mismatch;
        this.#core.tables.damage.report({ volume, place, length, what, key: row.id, group: row });
        throw new WebdfsError('CORRUPT', `block entry at ${volume}:${place}: ${what}`);
      }
      before = place;
    }
  }

  /** @throws NOT_FOUND if the block is not staged whole, INVALID if the range is not inside it, CORRUPT */
  async readStaged(id: Uint8Array, offset: number, target: Uint8Array): Promise<void> {
    const block = this.#core.tables.staged.finished(id);
    if (block?.whole === undefined) throw new WebdfsError('NOT_FOUND', 'the block has not been staged here');
    const { size, sums } = block.whole;
    checkRange(size, offset, target.length);
    if (coveredBytes(block) < size) await this.#core.lanes.bulk.drain();
    const bad = await this.#core.reader.readBlock({ pieces: block.pieces, sums }, offset, target);
    if (bad === undefined && coveredBytes(block) >= size) return;
    // given up, or dropped with its group, while it was read
    if (this.#core.tables.staged.finished(id) !== block) throw new WebdfsError('NOT_FOUND', 'the block is gone');
    throw new WebdfsError('CORRUPT', 'the staged block cannot be read');
  }
}

function checkRange(size: number, offset: number, length: number): void {
  if (!Number.isSafeInteger(offset) || offset < 0 || offset + length > size) {
    throw new WebdfsError('INVALID', `bytes ${offset}..${offset + length} of a block of ${size}`);
  }
}
