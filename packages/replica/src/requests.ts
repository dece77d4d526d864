import type { Ballot, GroupKey, PolicyId, Sequence } from '@webdfs/base';

/** Conditions on the present version of the key, on its ETag as `etagOf(summary)` gives it. */
export interface Conditions {
  /** `If-Match`: `*` or ETags without quotes; one must be the present one. */
  readonly ifMatch?: readonly string[];
  /** `If-None-Match`: `*` (must not exist) or ETags; none may be the present one. */
  readonly ifNoneMatch?: readonly string[];
}

/** Another key of the same group that must be as said, checked in the same step. */
export interface Requirement {
  readonly key: Uint8Array;
  /** Its version must be this; 0: it must not exist; −1: it must exist. */
  readonly sequence: Sequence;
}

/** One linearizable write of one key, exactly once per request id. */
export interface WriteRequest extends GroupKey {
  /** 16 bytes, the same for every try. */
  readonly requestId: Uint8Array;
  /** Since the first try, by the larger of both clocks of whoever tries. */
  readonly ageMs: number;
  readonly kind: 'put' | 'delete';
  /** Bucket (u32 big-endian) and key bytes. */
  readonly key: Uint8Array;
  /** Of the key that decides placement (for rows beside an object, such as parts, the object's). */
  readonly hashHigh: number;
  readonly hashLow: number;
  readonly conditions: Conditions;
  readonly requires: readonly Requirement[];
  /** A key whose row goes in the same step (flag CLOSES). */
  readonly closes?: Uint8Array;
  /** `SUMMARY_BYTES`; see record.ts. Empty for a delete. */
  readonly summary: Uint8Array;
  /** The owner's own part of the meta: record.ts gives its head. */
  readonly owner: Uint8Array;
  readonly body: Uint8Array;
}

export interface WriteAnswer {
  readonly sequence: Sequence;
  readonly ballot: Ballot;
  readonly modifiedMs: number;
  /** What was there before, if anything (a delete tells by it whether the key existed). */
  readonly replaced: { readonly sequence: Sequence; readonly summary: Uint8Array } | undefined;
}

export interface ReadRequest extends GroupKey {
  readonly key: Uint8Array;
  /** False: the row alone (no bytes are read from disk; `owner` and `body` come back empty). */
  readonly entry: boolean;
}

/** A committed record, read at its primary. */
export interface ReadAnswer {
  readonly sequence: Sequence;
  readonly modifiedMs: number;
  readonly flags: number;
  readonly summary: Uint8Array;
  readonly owner: Uint8Array;
  readonly body: Uint8Array;
}

export interface ListRequest {
  readonly policy: PolicyId;
  /** First key, inclusive, and end, exclusive: whole keys, bucket and bytes. */
  readonly from: Uint8Array;
  readonly before: Uint8Array;
  /** At most so many rows and prefixes together, 1..1 000. */
  readonly take: number;
  /** Keys that share their bytes up to the first `delimiter` after `prefixLength` bytes come back as one prefix. */
  readonly collapse?: { readonly prefixLength: number; readonly delimiter: Uint8Array };
}

export interface ListRow {
  readonly key: Uint8Array;
  /** True: `key` is a common prefix (it ends with the delimiter); the rest is empty. */
  readonly prefix: boolean;
  readonly sequence: Sequence;
  readonly modifiedMs: number;
  readonly flags: number;
  readonly summary: Uint8Array;
}

/** Rows in the order of keys; `next` is the `from` of the page that follows, undefined at the end. */
export interface ListPage {
  readonly rows: readonly ListRow[];
  readonly next: Uint8Array | undefined;
}
