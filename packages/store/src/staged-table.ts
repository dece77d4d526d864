import { type GroupKey, toHex } from '@webdfs/base';
import type { PiecePlace } from './index-rows.ts';
import { MAX_STAGED_BLOCKS } from './limits.ts';

/** A piece and where in its block it begins. */
export interface StagedPiece extends PiecePlace {
  readonly offset: number;
}

/** A block whose bytes are here, or on their way, and that no applied BLOCK names. */
export interface StagedBlock {
  readonly group: GroupKey;
  readonly id: Uint8Array;
  readonly generation: number;
  /** Ascending by offset. */
  readonly pieces: StagedPiece[];
  /** Known once it is finished. */
  whole: { readonly size: number; readonly sums: Uint32Array } | undefined;
  /** How many BLOCK entries are appended and neither applied nor void: such a block is not forgotten. */
  named: number;
  readonly sinceMs: number;
}

/** Staged blocks by id and generation; the newest staging of an id is the one that counts. */
export class StagedTable {
  readonly #blocks = new Map<string, StagedBlock[]>();
  #count = 0;

  get size(): number {
    return this.#count;
  }

  add(block: StagedBlock): void {
    const name = toHex(block.id);
    const same = this.#blocks.get(name);
    if (same === undefined) this.#blocks.set(name, [block]);
    else same.push(block);
    this.#count += 1;
  }

  get(id: Uint8Array, generation: number): StagedBlock | undefined {
    return this.#blocks.get(toHex(id))?.find((block) => block.generation === generation);
  }

  /** The newest staging of this block that has all its bytes. */
  finished(id: Uint8Array): StagedBlock | undefined {
    return this.#blocks.get(toHex(id))?.findLast((block) => block.whole !== undefined);
  }

  remove(block: StagedBlock): boolean {
    const name = toHex(block.id);
    const same = this.#blocks.get(name);
    const at = same?.indexOf(block) ?? -1;
    if (at < 0) return false;
    same!.splice(at, 1);
    if (same!.length === 0) this.#blocks.delete(name);
    this.#count -= 1;
    return true;
  }

  all(): StagedBlock[] {
    return [...this.#blocks.values()].flat();
  }

  /** Finished blocks that nothing has named since `beforeMs`, and the oldest of too many. */
  stale(beforeMs: number): StagedBlock[] {
    const idle = this.all().filter((block) => block.named === 0 && block.whole !== undefined);
    const old = idle.filter((block) => block.sinceMs < beforeMs);
    if (this.#count - old.length <= MAX_STAGED_BLOCKS) return old;
    const order = idle.toSorted((a, b) => a.sinceMs - b.sinceMs);
    return order.slice(0, Math.max(old.length, this.#count - MAX_STAGED_BLOCKS));
  }
}

/** Bytes from the beginning of a block that its pieces cover without a gap. */
export function coveredBytes(block: StagedBlock | undefined): number {
  let covered = 0;
  for (const piece of block?.pieces ?? []) {
    if (piece.offset !== covered) break;
    covered += piece.length;
  }
  return covered;
}
