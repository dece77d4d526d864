import { type Clock, EMPTY, type GroupKey, Reader } from '@webdfs/base';
import { closesOf, summaryOf } from './closes.ts';
import type { DamageTable } from './damage-table.ts';
import { addDigest, digestOf, subtractDigest } from './digest.ts';
import { BLOCK_ID_BYTES, FLAG, KIND } from './entry.ts';
import type { GroupState, GroupTable } from './group-table.ts';
import { unpackMark } from './group-mark.ts';
import {
  blockRowKey,
  blockState,
  type BlockValue,
  type EntryPlace,
  orderRowKey,
  packBlock,
  packBlockGone,
  packOrder,
  packPiece,
  packPieceKey,
  packRecord,
  packSequence,
  type PiecePlace,
  pieceRowKey,
  recordRowKey,
  type RecordValue,
  tombstoneRowKey,
  unpackBlock,
  unpackOrder,
  unpackPieceKey,
  unpackRecord,
  viewOf,
} from './index-rows.ts';
import { actsAsTombstone, authorFlags, type Logged } from './logged.ts';
import type { Overlay } from './overlay.ts';
import type { StagedBlock, StagedPiece, StagedTable } from './staged-table.ts';
import { noteRowKey, packNote, unpackNote } from './state-rows.ts';
import { align8 } from './entry-format.ts';
import type { VolumeTable } from './volume-table.ts';
import { copyOf } from './plain-bytes.ts';

/** The tables that an entry's application touches. */
export interface Tables {
  readonly overlay: Overlay;
  readonly groups: GroupTable;
  readonly volumes: VolumeTable;
  readonly damage: DamageTable;
  readonly staged: StagedTable;
  readonly clock: Clock;
}

/** What a removal takes away. */
interface Removal extends GroupKey {
  readonly key: Uint8Array;
  readonly hashHigh: number;
  readonly hashLow: number;
  readonly sequence: number;
  readonly timeMs: number;
}

/** The generation of the staging that a stored BLOCK names: it stands after the id in its key. */
export function generationOf(blockKey: Uint8Array): number {
  return viewOf(blockKey).readUInt32BE(BLOCK_ID_BYTES);
}

/** Size and sums in the body of a BLOCK. @throws CORRUPT if the body is no such thing */
export function unpackBlockBody(body: Uint8Array): { size: number; sums: Uint32Array } {
  const reader = new Reader(body);
  const size = reader.u32();
  const sums = new Uint32Array(Math.ceil(size / 65_536));
  for (let i = 0; i < sums.length; i++) sums[i] = reader.u32();
  reader.end();
  return { size, sums };
}

export function pieceBytes(piece: PiecePlace): number {
  return piece.headBytes + align8(piece.length);
}

/**
 * Turns committed entries into rows, by P7: for a key the higher sequence wins, whatever order entries are met in, and
 * meeting one twice changes nothing. Every call is one step on this thread, so a read sees all of an entry or none of it.
 */
export class Applier {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Applies an entry that is durable and committed (P6), and is not void. */
  apply(entry: Logged): void {
    const group = this.#tables.groups.need(entry);
    // of a block or a note nothing is left without its body; the damage is known
    if (entry.damaged && (entry.kind === KIND.BLOCK || entry.kind === KIND.GROUP_ENTRY)) return this.settle(entry);
    switch (entry.kind) {
      case KIND.RECORD:
        this.#record(group, entry);
        break;
      case KIND.TOMBSTONE:
        this.#remove(group, entry);
        break;
      case KIND.BLOCK:
        this.#block(group, entry);
        break;
      case KIND.BLOCK_GONE:
        this.#blockGone(group, entry);
        break;
      case KIND.GROUP_ENTRY:
        this.#note(group, entry);
        break;
    }
    if (actsAsTombstone(entry)) this.#countTombstone(entry);
    this.#tables.groups.touch(group);
    this.settle(entry);
  }

  /** The index knows all it must of this entry. */
  settle(entry: Logged): void {
    entry.settled = true;
    const volume = this.#tables.volumes.get(entry.volume);
    if (volume !== undefined) this.#tables.volumes.touch(volume);
    this.#tables.overlay.touch();
  }

  #countTombstone(entry: Logged): void {
    const volume = this.#tables.volumes.get(entry.volume);
    if (volume === undefined) return;
    if (entry.kind !== KIND.RECORD) volume.tombstones += entry.entryBytes;
    volume.horizon = this.#tables.volumes.highest;
  }

  /** Bytes that no row points to any more. */
  #died(place: EntryPlace): void {
    this.#tables.volumes.addLive(place.volume, -place.entryBytes);
    this.#tables.damage.repaired(place.volume, place.place);
  }

  #record(group: GroupState, entry: Logged): void {
    const { overlay, volumes } = this.#tables;
    const rowKey = recordRowKey(entry.key);
    const before = overlay.get(rowKey);
    const old = before === undefined ? undefined : unpackRecord(before);
    const orderKey = orderRowKey(entry);
    if (old === undefined ? this.#orderSequence(orderKey) >= entry.sequence : stays(old, entry))
      return this.#close(group, entry);
    const value: RecordValue = {
      policy: entry.policy,
      group: entry.group,
      volume: entry.volume,
      place: entry.place,
      entryBytes: entry.entryBytes,
      sequence: entry.sequence,
      flags: authorFlags(entry.flags),
      timeMs: entry.timeMs,
      hashHigh: entry.hashHigh,
      hashLow: entry.hashLow,
      summary: summaryOf(entry.meta),
    };
    if (old !== undefined)
      this.#forgetRecord(
        group,
        old,
        entry.hashHigh !== old.hashHigh || entry.hashLow !== old.hashLow ? entry.key : undefined,
      );
    overlay.put(rowKey, packRecord(value));
    overlay.put(orderKey, packOrder({ sequence: entry.sequence, tombstone: false }));
    volumes.addLive(entry.volume, entry.entryBytes);
    group.objects += 1;
    group.bytes += entry.entryBytes;
    group.digest = addDigest(group.digest, digestOf(entry.hashHigh, entry.hashLow, entry.sequence));
    this.#close(group, entry);
  }

  /** Flag CLOSES: the record is a tombstone of another key too, at its own sequence. */
  #close(group: GroupState, entry: Logged): void {
    const closed = closesOf(entry);
    if (closed === undefined) return;
    const before = this.#tables.overlay.get(recordRowKey(closed));
    const { hashHigh, hashLow } = before === undefined ? entry : unpackRecord(before);
    const { policy, group: number, sequence, timeMs } = entry;
    this.#remove(group, { policy, group: number, key: copyOf(closed), hashHigh, hashLow, sequence, timeMs });
  }

  /** Takes a record out of the group's sums; its `h` row goes only if the new version's will not replace it (`key` given). */
  #forgetRecord(group: GroupState, old: RecordValue, key?: Uint8Array): void {
    this.#died(old);
    group.objects -= 1;
    group.bytes -= old.entryBytes;
    group.digest = subtractDigest(group.digest, digestOf(old.hashHigh, old.hashLow, old.sequence));
    if (key !== undefined) this.#tables.overlay.put(orderRowKey({ ...old, key }), undefined);
  }

  #orderSequence(orderKey: Uint8Array): number {
    const row = this.#tables.overlay.get(orderKey);
    return row === undefined ? -1 : unpackOrder(row).sequence;
  }

  #remove(group: GroupState, removal: Removal): void {
    const { overlay } = this.#tables;
    const rowKey = recordRowKey(removal.key);
    const before = overlay.get(rowKey);
    const orderKey = orderRowKey(removal);
    if (before === undefined) {
      if (this.#orderSequence(orderKey) >= removal.sequence) return;
    } else {
      const old = unpackRecord(before);
      if (old.sequence >= removal.sequence) return;
      this.#forgetRecord(group, old, removal.key);
      overlay.put(rowKey, undefined);
    }
    overlay.put(orderKey, packOrder({ sequence: removal.sequence, tombstone: true }));
    overlay.put(tombstoneRowKey(removal.timeMs, orderKey), packSequence(removal.sequence));
  }

  #block(group: GroupState, entry: Logged): void {
    const { overlay, volumes, staged } = this.#tables;
    const id = entry.key.subarray(0, BLOCK_ID_BYTES);
    const generation = generationOf(entry.key);
    const found = staged.get(id, generation);
    const rowKey = blockRowKey(entry, id);
    const before = overlay.get(rowKey);
    const { size, sums } = unpackBlockBody(entry.body);
    if (before !== undefined && !this.#takesPlace(before, entry, found)) {
      if (found !== undefined) this.dropStaged(found);
      return;
    }
    const old = before === undefined ? undefined : unpackBlock(before);
    if (old !== undefined) this.#forgetBlock(group, old);
    const pieces = this.#fold(entry, found, size);
    const value: BlockValue = {
      size,
      sums,
      pieces,
      generation,
      sequence: entry.sequence,
      flags: authorFlags(entry.flags),
      timeMs: entry.timeMs,
      hashHigh: entry.hashHigh,
      hashLow: entry.hashLow,
      volume: entry.volume,
      place: entry.place,
      entryBytes: entry.entryBytes,
    };
    overlay.put(rowKey, packBlock(value));
    volumes.addLive(entry.volume, entry.entryBytes);
    group.blocks += 1;
    group.bytes += size;
    group.digest = addDigest(group.digest, digestOf(entry.hashHigh, entry.hashLow, entry.sequence));
  }

  /** Whether a BLOCK replaces the row that is there: a newer one does, and a repair of the same one from other pieces. */
  #takesPlace(before: Uint8Array, entry: Logged, found: StagedBlock | undefined): boolean {
    const { sequence, gone } = blockState(before);
    if (sequence !== entry.sequence || gone) return entry.sequence > sequence;
    const old = unpackBlock(before)!;
    return old.generation !== generationOf(entry.key) && found?.whole !== undefined && !entry.damaged;
  }

  /** The block's pieces go from their `p` rows into its own row. What is missing is damage: a place in volume 0. */
  #fold(entry: Logged, found: StagedBlock | undefined, size: number): PiecePlace[] {
    const { overlay, staged, damage } = this.#tables;
    const pieces: PiecePlace[] = [];
    let offset = 0;
    for (const piece of found?.pieces ?? []) {
      overlay.put(pieceRowKey(packPieceKey({ ...found!, offset: piece.offset })), undefined);
      if (piece.offset > offset) pieces.push({ volume: 0, place: 0, headBytes: 0, length: piece.offset - offset });
      const { volume, place, headBytes, length } = piece;
      pieces.push({ volume, place, headBytes, length });
      offset = piece.offset + length;
    }
    if (offset < size) pieces.push({ volume: 0, place: 0, headBytes: 0, length: size - offset });
    if (pieces.some((piece) => piece.volume === 0)) {
      const { volume, place, entryBytes } = entry;
      const key = copyOf(entry.key, 0, BLOCK_ID_BYTES);
      damage.report({ volume, place, length: entryBytes, what: 'block lacks pieces', key, group: entry });
    }
    if (found !== undefined) staged.remove(found);
    return pieces;
  }

  #forgetBlock(group: GroupState, old: BlockValue): void {
    this.#died(old);
    for (const piece of old.pieces) {
      this.#died({ volume: piece.volume, place: piece.place, entryBytes: pieceBytes(piece) });
    }
    group.blocks -= 1;
    group.bytes -= old.size;
    group.digest = subtractDigest(group.digest, digestOf(old.hashHigh, old.hashLow, old.sequence));
  }

  #blockGone(group: GroupState, entry: Logged): void {
    const { overlay } = this.#tables;
    const rowKey = blockRowKey(entry, entry.key);
    const before = overlay.get(rowKey);
    if (before !== undefined) {
      if (blockState(before).sequence >= entry.sequence) return;
      const old = unpackBlock(before);
      if (old !== undefined) this.#forgetBlock(group, old);
    }
    overlay.put(rowKey, packBlockGone(entry));
    overlay.put(tombstoneRowKey(entry.timeMs, rowKey), packSequence(entry.sequence));
  }

  #note(group: GroupState, entry: Logged): void {
    const { overlay, volumes } = this.#tables;
    const rowKey = noteRowKey(group, entry.key);
    const before = overlay.get(rowKey);
    const old = before === undefined ? undefined : unpackNote(before);
    if (old !== undefined && stays(old, entry)) return;
    const removed = (entry.flags & FLAG.DELETE_MARKER) !== 0;
    if (old !== undefined && !old.removed) this.#died(old);
    const { volume, place, entryBytes, sequence } = entry;
    overlay.put(
      rowKey,
      packNote({ volume, place, entryBytes, sequence, removed, value: removed ? EMPTY : entry.body }),
    );
    if (removed) overlay.put(tombstoneRowKey(entry.timeMs, rowKey), packSequence(sequence));
    else volumes.addLive(volume, entryBytes);
  }

  /** A GROUP_MARK: the newest one counts, wherever it lies, unless the group was dropped since. */
  applyMark(entry: Logged): void {
    const { groups, volumes } = this.#tables;
    const group = groups.need(entry);
    if (entry.tenure < group.tenure) return this.settle(entry);
    const content = unpackMark(entry.meta);
    if (content.number > group.written.number || group.markPlace.volume === 0) {
      if (group.markPlace.volume !== 0) this.#died(group.markPlace);
      group.setMark(content, { volume: entry.volume, place: entry.place, entryBytes: entry.entryBytes });
      volumes.addLive(entry.volume, entry.entryBytes);
      groups.touch(group);
    }
    if (entry.tenure > group.tenure) {
      group.tenure = entry.tenure;
      group.dropping = true;
    }
    this.settle(entry);
  }

  /** A durable PIECE joins its staging, and gets a `p` row. */
  applyPiece(block: StagedBlock, entry: Logged): void {
    const { overlay, volumes } = this.#tables;
    const key = unpackPieceKey(entry.key)!;
    const { volume, place, headBytes, bodyBytes, entryBytes } = entry;
    const piece: StagedPiece = { offset: key.offset, volume, place, headBytes, length: bodyBytes };
    const at = block.pieces.findLastIndex((other) => other.offset <= piece.offset);
    const same = block.pieces[at];
    if (same?.offset === piece.offset) {
      if (same.volume === volume && same.place === place) return this.settle(entry);
      if (entry.damaged) return this.settle(entry);
      this.#died({ volume: same.volume, place: same.place, entryBytes: pieceBytes(same) });
      block.pieces[at] = piece;
    } else block.pieces.splice(at + 1, 0, piece);
    overlay.put(pieceRowKey(entry.key), packPiece(block.group, piece));
    volumes.addLive(volume, entryBytes);
    this.settle(entry);
  }

  // ---- rows of a group that ends here; no tombstones ----

  eraseRecord(group: GroupState, key: Uint8Array): void {
    const rowKey = recordRowKey(key);
    const row = this.#tables.overlay.get(rowKey);
    if (row === undefined) return;
    const old = unpackRecord(row);
    if (old.policy !== group.policy || old.group !== group.group) return;
    this.#forgetRecord(group, old, undefined);
    this.#tables.overlay.put(rowKey, undefined);
  }

  eraseBlock(group: GroupState, id: Uint8Array): void {
    const rowKey = blockRowKey(group, id);
    const row = this.#tables.overlay.get(rowKey);
    const old = row === undefined ? undefined : unpackBlock(row);
    if (old !== undefined) this.#forgetBlock(group, old);
    this.#tables.overlay.put(rowKey, undefined);
  }

  eraseNote(group: GroupState, name: Uint8Array): void {
    const rowKey = noteRowKey(group, name);
    const row = this.#tables.overlay.get(rowKey);
    if (row === undefined) return;
    const old = unpackNote(row);
    if (!old.removed) this.#died(old);
    this.#tables.overlay.put(rowKey, undefined);
  }

  /** A staging that nothing will name: its pieces are garbage. */
  dropStaged(block: StagedBlock): void {
    const { overlay, staged } = this.#tables;
    if (!staged.remove(block)) return;
    for (const piece of block.pieces) {
      overlay.put(pieceRowKey(packPieceKey({ ...block, offset: piece.offset })), undefined);
      this.#died({ volume: piece.volume, place: piece.place, entryBytes: pieceBytes(piece) });
    }
  }
}

/** P7: what is there stays if it is newer, or the very same; the same version elsewhere is a repair, unless it is damaged. */
function stays(old: EntryPlace & { sequence: number }, entry: Logged): boolean {
  if (old.sequence !== entry.sequence) return old.sequence > entry.sequence;
  return entry.damaged || (old.volume === entry.volume && old.place === entry.place);
}
