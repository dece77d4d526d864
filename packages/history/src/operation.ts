/**
 * What clients asked of a store of keys and values, and what they were told. A value is a name for the bytes, such as an
 * ETag; no two writes of a history write the same one. A key that is not there has the value undefined.
 */

/** What must hold for a write or a delete to be done: no value there, or this one. */
export type Condition = { readonly type: 'absent' } | { readonly type: 'is'; readonly value: string };

export type Action =
  | { readonly type: 'read' }
  | { readonly type: 'write'; readonly value: string; readonly condition?: Condition }
  | { readonly type: 'delete'; readonly condition?: Condition };

/**
 * What the client was told: `read` with the value, `done`, or `refused` because the condition did not hold. A client that was
 * told nothing (a time-out, a lost connection, 503) knows nothing: `unknown`; what it asked for may happen at any time later.
 */
export type Result =
  | { readonly type: 'read'; readonly value: string | undefined }
  | { readonly type: 'done' }
  | { readonly type: 'refused' }
  | { readonly type: 'unknown' };

export interface Operation {
  readonly client: number;
  readonly key: string;
  readonly action: Action;
  readonly result: Result;
  /** When it was asked, and when it was answered (Infinity if unknown); by one clock, or as positions in one order. */
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** A listing told which keys of a range were there, and with what values. */
export interface ListingOperation {
  readonly client: number;
  /** Keys the listing speaks of: those that it does not name were not there. */
  readonly covered: readonly string[];
  readonly listed: ReadonlyMap<string, string>;
  readonly askedAt: number;
  readonly answeredAt: number;
}

/**
 * A listing as reads: every key that it covers was read, at some instant of its own between question and answer. A listing of
 * S3 is no snapshot, and promises no more.
 */
export function readsOf(listing: ListingOperation): Operation[] {
  const { client, covered, listed, askedAt, answeredAt } = listing;
  return covered.map((key) => ({
    client,
    key,
    action: { type: 'read' },
    result: { type: 'read', value: listed.get(key) },
    askedAt,
    answeredAt,
  }));
}
