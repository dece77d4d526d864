import { BLOCK_ID_BYTES, KIND } from './entry.ts';
import { generationOf, type Tables } from './applier.ts';
import type { EntryHead } from './entry-format.ts';
import {
  blockRowKey,
  type EntryPlace,
  packBlock,
  packPiece,
  packPieceKey,
  packRecord,
  type PieceKey,
  type PiecePlace,
  pieceRowKey,
  recordRowKey,
  unpackBlock,
  unpackPieceKey,
  unpackRecord,
} from './index-rows.ts';
import { noteRowKey, packNote, unpackNote } from './state-rows.ts';

type MetHead = Pick<EntryHead, 'kind' | 'policy' | 'group' | 'sequence' | 'volume' | 'place' | 'bodyBytes'>;

/** An entry met in a volume: what identifies it. Views suffice. */
export interface MetEntry {
  readonly head: MetHead;
  readonly key: Uint8Array;
  readonly entryBytes: number;
}

/**
 * Which row names an entry, and how to make it name another copy of the same. The same rule serves compaction (redirect
 * what was copied), recovery (entries with flag MOVED redirect, and never insert) and scrub (a live entry has its row).
 * All of it is one step on this thread: between the question and the answer nothing changes.
 */
export class Pointers {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Where the row of this very version lies now; undefined if no row has this version. */
  placeOf(entry: MetEntry): EntryPlace | undefined {
    const { head, key } = entry;
    switch (head.kind) {
      case KIND.RECORD:
        return this.#record(key, head.sequence);
      case KIND.GROUP_ENTRY:
        return this.#note(entry);
      case KIND.GROUP_MARK:
        return this.#mark(entry);
      case KIND.BLOCK:
        return this.#block(entry);
      case KIND.PIECE:
        return this.#piece(entry);
      default:
        return undefined;
    }
  }

  /** Whether the entry's row points to exactly this copy. */
  points(entry: MetEntry): boolean {
    const place = this.placeOf(entry);
    return place !== undefined && place.volume === entry.head.volume && place.place === entry.head.place;
  }

  /**
   * Makes the row of this version point to `target`, a durable copy of the same entry. False, and nothing changes, if no
   * row has this version any more: the copy is dead on arrival.
   */
  redirect(entry: MetEntry, target: EntryPlace): boolean {
    const from = this.placeOf(entry);
    if (from === undefined) return false;
    if (from.volume === target.volume && from.place === target.place) return true;
    this.#rewrite(entry, target);
    this.#tables.volumes.addLive(from.volume, -from.entryBytes);
    this.#tables.volumes.addLive(target.volume, target.entryBytes);
    this.#tables.damage.repaired(from.volume, from.place);
    return true;
  }

  #record(key: Uint8Array, sequence: number): EntryPlace | undefined {
    const row = this.#tables.overlay.get(recordRowKey(key));
    if (row === undefined) return undefined;
    const value = unpackRecord(row);
    return value.sequence === sequence ? value : undefined;
  }

  #note({ head, key }: MetEntry): EntryPlace | undefined {
    const row = this.#tables.overlay.get(noteRowKey(head, key));
    if (row === undefined) return undefined;
    const value = unpackNote(row);
    return value.sequence === head.sequence && !value.removed ? value : undefined;
  }

  #mark({ head, entryBytes }: MetEntry): EntryPlace | undefined {
    // the number of a mark is its sequence in the head
    const group = this.#tables.groups.get(head);
    if (group === undefined || group.markPlace.volume === 0 || group.written.number !== head.sequence) return undefined;
    return { ...group.markPlace, entryBytes };
  }

  #block({ head, key }: MetEntry): EntryPlace | undefined {
    const row = this.#tables.overlay.get(blockRowKey(head, key.subarray(0, BLOCK_ID_BYTES)));
    const value = row === undefined ? undefined : unpackBlock(row);
    return value?.sequence === head.sequence && value.generation === generationOf(key) ? value : undefined;
  }

  #piece({ head, key, entryBytes }: MetEntry): EntryPlace | undefined {
    const piece = unpackPieceKey(key);
    if (piece === undefined) return undefined;
    const found = this.#stagedPiece(piece) ?? this.#blockPiece(head, piece)?.piece;
    if (found === undefined || found.length !== head.bodyBytes) return undefined;
    return { volume: found.volume, place: found.place, entryBytes };
  }

  #stagedPiece(piece: PieceKey): PiecePlace | undefined {
    const block = this.#tables.staged.get(piece.id, piece.generation);
    return block?.pieces.find((other) => other.offset === piece.offset);
  }

  #blockPiece(head: MetHead, key: PieceKey): { index: number; piece: PiecePlace } | undefined {
    const row = this.#tables.overlay.get(blockRowKey(head, key.id));
    const value = row === undefined ? undefined : unpackBlock(row);
    if (value === undefined || value.generation !== key.generation) return undefined;
    let offset = 0;
    for (let index = 0; index < value.pieces.length && offset <= key.offset; index++) {
      const piece = value.pieces[index]!;
      if (offset === key.offset) return { index, piece };
      offset += piece.length;
    }
    return undefined;
  }

  #rewrite({ head, key }: MetEntry, target: EntryPlace): void {
    const { overlay, groups } = this.#tables;
    const { volume, place, entryBytes } = target;
    if (head.kind === KIND.RECORD) {
      const rowKey = recordRowKey(key);
      overlay.put(rowKey, packRecord({ ...unpackRecord(overlay.get(rowKey)!), volume, place, entryBytes }));
    } else if (head.kind === KIND.GROUP_ENTRY) {
      const rowKey = noteRowKey(head, key);
      overlay.put(rowKey, packNote({ ...unpackNote(overlay.get(rowKey)!), volume, place, entryBytes }));
    } else if (head.kind === KIND.GROUP_MARK) {
      const group = groups.need(head);
      group.setMark(group.written, target);
      groups.touch(group);
      overlay.touch();
    } else if (head.kind === KIND.BLOCK) {
      const rowKey = blockRowKey(head, key.subarray(0, BLOCK_ID_BYTES));
      overlay.put(rowKey, packBlock({ ...unpackBlock(overlay.get(rowKey)!)!, volume, place, entryBytes }));
    } else this.#rewritePiece(head, unpackPieceKey(key)!, target);
  }

  #rewritePiece(head: MetHead, key: PieceKey, target: EntryPlace): void {
    const { overlay, staged } = this.#tables;
    const { volume, place } = target;
    const block = staged.get(key.id, key.generation);
    const at = block?.pieces.findIndex((piece) => piece.offset === key.offset) ?? -1;
    if (block !== undefined && at >= 0) {
      const piece = { ...block.pieces[at]!, volume, place };
      block.pieces[at] = piece;
      overlay.put(pieceRowKey(packPieceKey(key)), packPiece(block.group, piece));
      return;
    }
    const rowKey = blockRowKey(head, key.id);
    const value = unpackBlock(overlay.get(rowKey)!)!;
    const { index } = this.#blockPiece(head, key)!;
    const pieces = value.pieces.map((piece, position) => (position === index ? { ...piece, volume, place } : piece));
    overlay.put(rowKey, packBlock({ ...value, pieces }));
  }
}
