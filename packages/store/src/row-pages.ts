import { afterPrefix } from './index-rows.ts';
import type { Row, RowIndex } from './row-index.ts';

const PAGE_ROWS = 1_000;

/** All rows whose keys begin with `prefix`, in order, in pages of bounded size. */
export async function* rowPages(index: RowIndex, prefix: Uint8Array): AsyncGenerator<Row[]> {
  const lt = afterPrefix(prefix);
  let after: Uint8Array | undefined;
  for (;;) {
    const rows = await index.range({
      ...(after === undefined ? { gte: prefix } : { gt: after }),
      ...(lt === undefined ? {} : { lt }),
      limit: PAGE_ROWS,
    });
    if (rows.length > 0) yield rows;
    if (rows.length < PAGE_ROWS) return;
    after = rows.at(-1)!.key;
  }
}
