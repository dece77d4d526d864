import { fromHex, type GroupKey, toHex, WebdfsError } from '@webdfs/base';
import type { Tables } from './applier.ts';
import {
  afterPrefix,
  groupPrefix,
  keyOfRecordRow,
  orderRowKey,
  recordRowKey,
  type RecordValue,
  ROW,
  unpackBlock,
  unpackBlockKey,
  unpackOrder,
  unpackOrderKey,
  unpackRecord,
} from './index-rows.ts';
import { rowPages } from './row-pages.ts';
import type { RowIndex } from './row-index.ts';
import { nameOfNoteRow, noteRowKey, unpackNote } from './state-rows.ts';
import type { BlockRow, RecordRow, WalkRow } from './store.ts';
import { copyOf } from './plain-bytes.ts';

/** Rows read from the index at a time. */
const PAGE_ROWS = 1_000;

export interface ListRange {
  readonly from: Uint8Array;
  readonly before: Uint8Array;
  readonly limit: number;
  readonly accept?: (row: RecordRow) => boolean;
  readonly take: number;
}

export function toRecordRow(key: Uint8Array, value: RecordValue): RecordRow {
  return {
    policy: value.policy,
    group: value.group,
    key,
    sequence: value.sequence,
    flags: value.flags,
    modifiedMs: value.timeMs,
    summary: copyOf(value.summary),
    volume: value.volume,
    place: value.place,
    entryBytes: value.entryBytes,
  };
}

/** Ordered walks over the index. What was put before a walk began is seen by it: it waits for the rows to arrive. */
export class Walks {
  readonly #tables: Tables;
  readonly #index: RowIndex;

  constructor(tables: Tables, index: RowIndex) {
    this.#tables = tables;
    this.#index = index;
  }

  async list(range: ListRange): Promise<{ rows: RecordRow[]; next: Uint8Array | undefined }> {
    await this.#tables.overlay.settled();
    const rows: RecordRow[] = [];
    const lt = recordRowKey(range.before);
    let gte: Uint8Array = recordRowKey(range.from);
    let looked = 0;
    for (;;) {
      const limit = Math.min(PAGE_ROWS, range.limit - looked);
      const page = await this.#index.range({ gte, lt, limit: Math.max(1, limit) });
      for (const row of page) {
        const key = keyOfRecordRow(row.key);
        if (looked === range.limit || rows.length === range.take) return { rows, next: copyOf(key) };
        looked += 1;
        const record = toRecordRow(copyOf(key), unpackRecord(row.value));
        if (range.accept === undefined || range.accept(record)) rows.push(record);
      }
      if (page.length < Math.max(1, limit)) return { rows, next: undefined };
      gte = successor(page.at(-1)!.key);
    }
  }

  /** The cursor is hash and key of the last row given, in hex. */
  async records(
    group: GroupKey,
    after: string | undefined,
    limit: number,
  ): Promise<{ rows: WalkRow[]; next: string | undefined }> {
    await this.#tables.overlay.settled();
    const prefix = groupPrefix(ROW.ORDER, group);
    const lt = afterPrefix(prefix);
    const found = await this.#index.range({
      gte: after === undefined ? prefix : successor(afterCursor(group, after)),
      ...(lt === undefined ? {} : { lt }),
      limit,
    });
    const rows = found.map((row): WalkRow => {
      const { hashHigh, hashLow, key } = unpackOrderKey(row.key);
      const { sequence, tombstone } = unpackOrder(row.value);
      return { hashHigh, hashLow, key: copyOf(key), sequence, tombstone };
    });
    const last = found.at(-1);
    return {
      rows,
      next: found.length < limit || last === undefined ? undefined : toHex(last.key.subarray(prefix.length)),
    };
  }

  async blocks(
    group: GroupKey,
    after: Uint8Array | undefined,
    limit: number,
  ): Promise<{ rows: BlockRow[]; next: Uint8Array | undefined }> {
    await this.#tables.overlay.settled();
    const prefix = groupPrefix(ROW.BLOCK, group);
    const lt = afterPrefix(prefix);
    const from = after === undefined ? prefix : successor(Buffer.concat([prefix, after]));
    const found = await this.#index.range({ gte: from, ...(lt === undefined ? {} : { lt }), limit });
    const rows: BlockRow[] = [];
    for (const row of found) {
      const block = blockRowOf(copyOf(unpackBlockKey(row.key).id), group, row.value);
      if (block !== undefined) rows.push(block);
    }
    const last = found.at(-1);
    return { rows, next: found.length < limit || last === undefined ? undefined : copyOf(unpackBlockKey(last.key).id) };
  }

  async notes(group: GroupKey, prefix: Uint8Array): Promise<{ name: Uint8Array; value: Uint8Array }[]> {
    await this.#tables.overlay.settled();
    const notes: { name: Uint8Array; value: Uint8Array }[] = [];
    for await (const rows of rowPages(this.#index, noteRowKey(group, prefix))) {
      for (const row of rows) {
        const note = unpackNote(row.value);
        if (!note.removed) notes.push({ name: copyOf(nameOfNoteRow(row.key)), value: copyOf(note.value) });
      }
    }
    return notes;
  }
}

export function blockRowOf(id: Uint8Array, group: GroupKey, row: Uint8Array): BlockRow | undefined {
  const block = unpackBlock(row);
  if (block === undefined) return undefined;
  const { policy, group: number } = group;
  const { size, sequence, sums, timeMs } = block;
  return { policy, group: number, id, size, sequence, sums, modifiedMs: timeMs };
}

/** The least key above `key`. */
function successor(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}

/** @throws INVALID if the cursor is none of ours */
function afterCursor(group: GroupKey, cursor: string): Uint8Array {
  const bytes = fromHex(cursor);
  if (bytes.length < 8) throw new WebdfsError('INVALID', 'no cursor of a walk');
  const view = new DataView(bytes.buffer, bytes.byteOffset, 8);
  return orderRowKey({ ...group, hashHigh: view.getUint32(0), hashLow: view.getUint32(4), key: bytes.subarray(8) });
}
