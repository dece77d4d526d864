import type { Clock } from '@webdfs/base';
import type { Tables } from './applier.ts';
import { blockState, ROW, tombstoneRowKey, unpackOrder, unpackSequence, unpackTombstoneKey } from './index-rows.ts';
import type { RowIndex } from './row-index.ts';
import { unpackGroupKey, unpackNote } from './state-rows.ts';
import { copyOf } from './plain-bytes.ts';

/** Rows looked at in one go. */
const PURGE_ROWS = 1_000;

/** Learners ask for tombstones of the recent past only; see the protocol, rule J3. */
export const TOMBSTONE_KEEP_MS = 24 * 3_600_000;

/**
 * Forgets tombstones older than `keepMs`, oldest first; those of groups that are learning here stay. A `t` row whose key
 * has been written again since is stale, and goes alone. True if there may be more.
 */
export async function purgeTombstones(
  tables: Tables,
  index: RowIndex,
  options: { clock: Clock; keepMs: number; after?: Uint8Array | undefined },
): Promise<Uint8Array | undefined> {
  await tables.overlay.settled();
  const lt = tombstoneRowKey(Math.max(0, options.clock.now() - options.keepMs), new Uint8Array(0));
  const from = options.after === undefined ? { gte: Uint8Array.of(ROW.TOMBSTONE) } : { gt: options.after };
  const rows = await index.range({ ...from, lt, limit: PURGE_ROWS });
  for (const row of rows) {
    const { rowKey } = unpackTombstoneKey(row.key);
    if (tables.groups.get(unpackGroupKey(rowKey))?.isLearner === true) continue;
    const target = tables.overlay.get(rowKey);
    if (target !== undefined && goneAt(rowKey[0]!, target) === unpackSequence(row.value)) {
      tables.overlay.put(copyOf(rowKey), undefined);
    }
    tables.overlay.put(row.key, undefined);
  }
  return rows.length < PURGE_ROWS ? undefined : rows.at(-1)!.key;
}

/** The sequence at which a row says that its key went; −1 if it does not say so. */
function goneAt(letter: number, row: Uint8Array): number {
  if (letter === ROW.ORDER) {
    const { tombstone, sequence } = unpackOrder(row);
    return tombstone ? sequence : -1;
  }
  if (letter === ROW.BLOCK) {
    const { gone, sequence } = blockState(row);
    return gone ? sequence : -1;
  }
  const { removed, sequence } = unpackNote(row);
  return removed ? sequence : -1;
}
