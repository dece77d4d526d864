import type { Tables } from './applier.ts';
import type { DamagedPlace } from './damage-table.ts';
import { type EntryPlace, ROW, unpackBlock, unpackPiece, unpackRecord } from './index-rows.ts';
import type { RowIndex } from './row-index.ts';
import { rowPages } from './row-pages.ts';
import { unpackNote } from './state-rows.ts';

/** Letters whose rows name places in volumes, and the places that such a row names. */
const PLACES: readonly (readonly [number, (value: Uint8Array) => Iterable<EntryPlace>])[] = [
  [ROW.RECORD, (value) => [unpackRecord(value)]],
  [ROW.NOTE, (value) => [unpackNote(value)]],
  [ROW.PIECE, (value) => [unpackPiece(value)].map(spanOf)],
  [ROW.BLOCK, placesOfBlock],
];

function spanOf(piece: { volume: number; place: number; headBytes: number; length: number }): EntryPlace {
  return { volume: piece.volume, place: piece.place, entryBytes: piece.headBytes + piece.length };
}

function placesOfBlock(value: Uint8Array): EntryPlace[] {
  const block = unpackBlock(value);
  return block === undefined ? [] : [block, ...block.pieces.map(spanOf)];
}

/**
 * Settles damage in places that nothing here needs any more: no row, no pending entry and no mark of a group lies there.
 * The file keeps its damage, and stays for that reason; it is only no longer held against the node.
 *
 * The caller vouches that this node has all that it should have: what an unreadable place held, no row may tell.
 *
 * @returns places settled
 */
export async function settleDamage(tables: Tables, index: RowIndex): Promise<number> {
  const { damage, overlay, groups, volumes } = tables;
  const open = new Set(damage.unsettled());
  if (open.size === 0) return 0;
  const isWhole = (place: DamagedPlace): boolean => volumes.get(place.volume) === undefined;
  const needed = ({ volume, place, entryBytes }: EntryPlace): void => {
    for (const one of open) {
      if (one.volume !== volume) continue;
      if (isWhole(one) || (place < one.place + one.length && one.place < place + entryBytes)) open.delete(one);
    }
  };
  await overlay.settled();
  for (const [letter, placesOf] of PLACES) {
    for await (const rows of rowPages(index, Uint8Array.of(letter))) {
      for (const { value } of rows) for (const place of placesOf(value)) needed(place);
      if (open.size === 0) return 0;
    }
  }
  for (const group of groups.all()) {
    needed(group.markPlace);
    for (const entry of group.pending) needed(entry);
  }
  for (const place of open) damage.settle(place);
  return open.size;
}
