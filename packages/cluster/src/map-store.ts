import type { Revision } from '@webdfs/base';

/** A key of the map store with the revisions at which it was created and last written. `value` is JSON text. */
export interface MapEntry {
  readonly key: string;
  readonly value: string;
  readonly createRevision: Revision;
  readonly modRevision: Revision;
}

/** A condition of a transaction. An absent key, or an empty range, compares as revision 0. */
export type Compare =
  | { readonly type: 'modified'; readonly key: string; readonly is: Revision }
  | { readonly type: 'created'; readonly key: string; readonly is: Revision }
  /** No key that begins with `prefix` was last written after `notAfter` (0: there is none). */
  | { readonly type: 'range'; readonly prefix: string; readonly notAfter: Revision };

export type Write =
  | { readonly type: 'put'; readonly key: string; readonly value: string; readonly lease?: number }
  | { readonly type: 'delete'; readonly key: string };

export interface Transaction {
  readonly compare: readonly Compare[];
  readonly write: readonly Write[];
}

/** All that one revision changed. `entry` undefined: the key was deleted. */
export interface Change {
  readonly revision: Revision;
  readonly changes: readonly { readonly key: string; readonly entry: MapEntry | undefined }[];
}

export interface MapContents {
  readonly revision: Revision;
  readonly entries: readonly MapEntry[];
}

/** A lease: keys put with its id disappear when it ends. */
export interface Lease {
  readonly id: number;
  /** The time it was granted for, ms; may be more than was asked. */
  readonly ttlMs: number;
  /** @throws NOT_FOUND if it is gone, UNAVAILABLE if the store does not answer */
  renew(): Promise<void>;
  end(): Promise<void>;
}

/**
 * Where the cluster map lives: the only consensus in WebDFS. Two houses so far: memory, and embedded (a file owned by the
 * supervisor, reached over a Unix socket); etcd later. All promise what `conformance.ts` tests: transactions are atomic
 * and linearizable, revisions count writing transactions, watches are ordered and whole.
 *
 * Errors: UNAVAILABLE (unknown whether it happened), COMPACTED (watch from too old a revision: read again).
 */
export interface MapStore extends AsyncDisposable {
  /** All keys at one revision; linearizable. */
  read(): Promise<MapContents>;
  transact(transaction: Transaction): Promise<{ readonly done: boolean; readonly revision: Revision }>;
  /** Changes after a revision, in order, until the signal aborts. */
  watch(after: Revision, signal: AbortSignal): AsyncIterable<Change>;
  /** Linearizable: resolves to a revision such that nothing newer than `seen` up to it is missing once the watch has given it. */
  fresh(seen: Revision): Promise<Revision>;
  lease(ttlMs: number): Promise<Lease>;
}
