import { compareBytes, type Sequence } from '@webdfs/base';
import type { WalkRow } from '@webdfs/store';

/** A thing as a row tells of it: which version, and whether it is gone. */
export interface Held {
  readonly sequence: Sequence;
  readonly tombstone: boolean;
}

/**
 * What a learner does about one key (protocol J3). The primary's state is the truth, as it was at some time after `asOf`:
 *
 * - same: both have this version
 * - fetch: it lacks the primary's version
 * - bury: the primary says that the key is gone
 * - remove: the primary has not even a tombstone, and what is here is no newer than the page
 * - leave: what is here came by the stream after the page was made
 * - diverged: what is here can be no part of the primary's history
 */
export type Verdict = 'same' | 'fetch' | 'bury' | 'remove' | 'leave' | 'diverged';

/** @param asOf  the primary's commit point before it made the page */
export function compareHeld(theirs: Held | undefined, ours: Held | undefined, asOf: Sequence): Verdict {
  if (theirs === undefined) {
    if (ours === undefined || ours.tombstone) return 'same';
    return ours.sequence > asOf ? 'leave' : 'remove';
  }
  if (ours === undefined || ours.sequence < theirs.sequence) return theirs.tombstone ? 'bury' : 'fetch';
  if (ours.sequence === theirs.sequence) return ours.tombstone === theirs.tombstone ? 'same' : 'diverged';
  return ours.sequence > asOf ? 'leave' : 'diverged';
}

/** The order of a walk: hash, then key. */
export function compareWalk(a: WalkRow, b: WalkRow): number {
  return a.hashHigh - b.hashHigh || a.hashLow - b.hashLow || compareBytes(a.key, b.key);
}

/** One key of either side, in order. */
export interface Pair<Row> {
  readonly theirs: Row | undefined;
  readonly ours: Row | undefined;
}

/**
 * Merges a page with this node's own rows of the same stretch, both in order. Own rows behind the page's last row stay
 * where they are unless it is the last page.
 */
export async function* pairs<Row>(
  page: { readonly rows: readonly Row[]; readonly isLast: boolean },
  own: { peek(): Promise<Row | undefined>; skip(): void },
  compare: (a: Row, b: Row) => number,
): AsyncGenerator<Pair<Row>, void, void> {
  let at = 0;
  for (;;) {
    const theirs = page.rows[at];
    if (theirs === undefined && !page.isLast) return;
    const ours = await own.peek();
    if (theirs === undefined && ours === undefined) return;
    const order = theirs === undefined ? 1 : ours === undefined ? -1 : compare(theirs, ours);
    if (order <= 0) at++;
    if (order >= 0) own.skip();
    yield { theirs: order <= 0 ? theirs : undefined, ours: order >= 0 ? ours : undefined };
  }
}

/** Rows that come in pages, one at a time. */
export class RowRun<Row, Cursor> {
  readonly #page: (after: Cursor | undefined) => Promise<{ rows: Row[]; next: Cursor | undefined }>;
  #rows: Row[] = [];
  #at = 0;
  #after: Cursor | undefined;
  #ended = false;

  constructor(page: (after: Cursor | undefined) => Promise<{ rows: Row[]; next: Cursor | undefined }>) {
    this.#page = page;
  }

  /** The next row, undefined at the end. */
  async peek(): Promise<Row | undefined> {
    while (this.#at === this.#rows.length && !this.#ended) {
      const { rows, next } = await this.#page(this.#after);
      this.#rows = rows;
      this.#at = 0;
      this.#after = next;
      this.#ended = next === undefined;
    }
    return this.#rows[this.#at];
  }

  skip(): void {
    this.#at++;
  }
}
