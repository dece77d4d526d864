import type { BlockMemory } from '../block-memory.ts';
import type { Field } from '../field.ts';
import type { Matrix } from '../matrix.ts';
import { TABLE_BYTES } from './layout.ts';

export interface TableOwner {
  readonly field: Field;
  readonly matrix: Matrix;
}

interface Entry {
  readonly block: Uint8Array;
  usedAt: number;
}

/**
 * Tables of matrices in the memory of the program. There is room for a bounded number; the one that was not used for longest makes
 * room and is written again when it is asked for.
 */
export class TableCache {
  readonly #memory: BlockMemory;
  readonly #entries = new Map<TableOwner, Entry>();
  #uses = 0;

  constructor(memory: BlockMemory) {
    this.#memory = memory;
  }

  /** Where the tables of a matrix lie, now and until the next call. */
  addressOf(owner: TableOwner): number {
    const entry = this.#entries.get(owner) ?? this.#write(owner);
    entry.usedAt = ++this.#uses;
    return entry.block.byteOffset;
  }

  #write(owner: TableOwner): Entry {
    const { field, matrix } = owner;
    const columns = matrix[0]!.length;
    const size = TABLE_BYTES[field.bits];
    const block = this.#room(columns * matrix.length * size);
    for (let column = 0; column < columns; column++) {
      for (const [row, entries] of matrix.entries()) {
        const at = (column * matrix.length + row) * size;
        writeTables(field, entries[column]!, block.subarray(at, at + size));
      }
    }
    const entry = { block, usedAt: 0 };
    this.#entries.set(owner, entry);
    return entry;
  }

  #room(bytes: number): Uint8Array {
    for (;;) {
      try {
        return this.#memory.allocate(bytes);
      } catch (error) {
        if (this.#entries.size === 0) throw error;
        this.#forgetOldest();
      }
    }
  }

  #forgetOldest(): void {
    const [oldest] = [...this.#entries].toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    const [owner, { block }] = oldest!;
    this.#entries.delete(owner);
    this.#memory.free(block);
  }
}

/** Nibble by nibble: the low bytes of its sixteen products, and in GF(2^16) the high bytes behind them. */
function writeTables(field: Field, coefficient: number, tables: Uint8Array): void {
  for (let at = 0; at < tables.length; at++) {
    const table = at >> 4;
    const nibble = Math.floor(table / field.symbolBytes);
    const product = field.multiply(coefficient, (at & 15) << (4 * nibble));
    tables[at] = product >> (8 * (table % field.symbolBytes));
  }
}
