import type { Applier, Tables } from './applier.ts';
import type { GroupState } from './group-table.ts';
import { groupPrefix, ROW, unpackBlockKey, unpackOrder, unpackOrderKey } from './index-rows.ts';
import type { Row, RowIndex } from './row-index.ts';
import { rowPages } from './row-pages.ts';
import { nameOfNoteRow } from './state-rows.ts';

/**
 * Deletes all rows of a group whose tenure has ended, page by page; the entries they named become garbage. Nothing may
 * be appended to the group meanwhile. Begun again after a crash, it goes on where the rows end.
 */
export async function dropRows(tables: Tables, applier: Applier, index: RowIndex, group: GroupState): Promise<void> {
  group.dropping = true;
  tables.groups.touch(group);
  await eachRow(tables, index, groupPrefix(ROW.ORDER, group), (row) => {
    const order = unpackOrderKey(row.key);
    if (!unpackOrder(row.value).tombstone) applier.eraseRecord(group, order.key);
    tables.overlay.put(row.key, undefined);
  });
  await eachRow(tables, index, groupPrefix(ROW.BLOCK, group), (row) => {
    applier.eraseBlock(group, unpackBlockKey(row.key).id);
  });
  await eachRow(tables, index, groupPrefix(ROW.NOTE, group), (row) => applier.eraseNote(group, nameOfNoteRow(row.key)));
  await eachRow(tables, index, groupPrefix(ROW.PENDING, group), (row) => tables.overlay.put(row.key, undefined));
  for (const entry of group.pending) applier.settle(entry);
  group.clear();
  group.dropping = false;
  tables.groups.touch(group);
  tables.overlay.touch();
}

async function eachRow(tables: Tables, index: RowIndex, prefix: Uint8Array, visit: (row: Row) => void): Promise<void> {
  await tables.overlay.settled();
  for await (const rows of rowPages(index, prefix)) {
    for (const row of rows) visit(row);
    await tables.overlay.settled();
  }
}
