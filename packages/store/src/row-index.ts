/**
 * The seam to the index engine. An index is derived from the volumes: it may lose what was not synced, may be lost
 * whole, and is never ahead of them. Two houses: LevelDB, and a sorted map in memory that crashes the same way.
 *
 * The promise both make: a batch is atomic; after a crash the rows are those of a prefix of the batches, and that prefix
 * holds the last batch written with `sync` and all before it. Whatever an engine throws means that the index is lost,
 * never that data is: the store rebuilds it.
 */

export interface RowChange {
  readonly key: Uint8Array;
  /** undefined removes the row. The bytes belong to the index from now on. */
  readonly value?: Uint8Array | undefined;
}

/** An interval of keys in lexicographic order; a bound that is missing is open. */
export interface RowRange {
  readonly gte?: Uint8Array;
  readonly gt?: Uint8Array;
  readonly lt?: Uint8Array;
  /** At most this many rows, 1 or more. */
  readonly limit: number;
  /** From the end of the interval downwards. */
  readonly reverse?: boolean;
}

export interface Row {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

export interface RowIndex extends AsyncDisposable {
  /** The row's value, the caller's own; on this thread. */
  get(key: Uint8Array): Uint8Array | undefined;
  /** Applies all changes at once. Batches called one after another keep their order. */
  batch(changes: readonly RowChange[], options?: { readonly sync?: boolean }): Promise<void>;
  /** Rows of a range as of one moment at or after the call. */
  range(range: RowRange): Promise<Row[]>;
}

/** Opens, moves and removes whole indexes by path: `index` and, while one is rebuilt, `index.new`. */
export interface RowIndexHouse {
  /** Creates what is missing. Rejects if the engine finds what is there unusable. */
  open(path: string): Promise<RowIndex>;
  /** No error if there is none. */
  remove(path: string): Promise<void>;
  /** `target` does not exist; the folder above is synced by the caller. */
  rename(source: string, target: string): Promise<void>;
}
