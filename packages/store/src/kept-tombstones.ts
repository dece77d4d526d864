import { assert, EMPTY } from '@webdfs/base';
import { closesOf } from './closes.ts';
import { entryBytesOf, headBytesOf, STORED_FLAG, writeHead } from './entry-format.ts';
import { KIND, REQUEST_ID_BYTES } from './entry.ts';
import { blockRowKey, blockState, orderRowKey, unpackOrder } from './index-rows.ts';
import { NO_SUMS } from './logged.ts';
import type { Overlay } from './overlay.ts';
import type { ScannedEntry } from './scanner.ts';
import { noteRowKey, unpackNote } from './state-rows.ts';

/**
 * Whether something newer says what has become of the key that this entry takes away: then it need not be kept. Rows of
 * tombstones are forgotten after a while, so that "not superseded" may also mean "not known".
 */
export function isSuperseded(entry: ScannedEntry, overlay: Overlay): boolean {
  const { head, key } = entry;
  switch (head.kind) {
    case KIND.TOMBSTONE:
      return newestOfRecord(entry, key, overlay) > head.sequence;
    case KIND.RECORD:
      return newestOfRecord(entry, closedBy(entry), overlay) > head.sequence;
    case KIND.BLOCK_GONE: {
      const row = overlay.get(blockRowKey(head, key));
      return row !== undefined && blockState(row).sequence > head.sequence;
    }
    case KIND.GROUP_ENTRY: {
      const row = overlay.get(noteRowKey(head, key));
      return row !== undefined && unpackNote(row).sequence > head.sequence;
    }
    default:
      return false;
  }
}

function newestOfRecord({ head }: ScannedEntry, key: Uint8Array, overlay: Overlay): number {
  const row = overlay.get(orderRowKey({ ...head, key }));
  return row === undefined ? -1 : unpackOrder(row).sequence;
}

function closedBy({ head, meta }: ScannedEntry): Uint8Array {
  const closed = closesOf({ kind: head.kind, flags: head.flags, meta });
  assert(closed !== undefined, 'the entry closes a key');
  return closed;
}

/**
 * The tombstone that stands for a record which is dead itself but closed another key: same sequence, ballot, time, request,
 * and placement hash (rows beside an object have the object's, or they would not be of one group). Its place and checksum are the copier's to add.
 */
export function entryToTombstone(entry: ScannedEntry): { raw: Uint8Array; headBytes: number } {
  const { head, meta } = entry;
  const key = closedBy(entry);
  const parts = { key, meta: meta.subarray(0, REQUEST_ID_BYTES), sums: NO_SUMS, bodyBytes: EMPTY.length };
  const headBytes = headBytesOf(key.length, parts.meta.length, 0);
  const raw = Buffer.alloc(entryBytesOf({ headBytes, bodyBytes: 0 }));
  writeHead(raw, 0, { ...head, kind: KIND.TOMBSTONE, flags: head.flags & STORED_FLAG.INSTALLED }, parts);
  return { raw, headBytes };
}
