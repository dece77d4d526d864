import { compareBytes, EMPTY, WebdfsError } from '@webdfs/base';
import { etagOf, type ListPage, type ListRequest, type ListRow, unpackSummary } from '@webdfs/replica';
import type { Groups } from './groups.ts';
import { behind, keyOf, next, objectKey, startsWith } from './keyspace.ts';
import { MAX_PAGE } from './limits.ts';
import type { Bucket, ListedObject, Listing, ListOptions } from './object-store.ts';
import type { RecordStore } from './record-store.ts';

/** @throws INVALID */
export function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit >= 0 && limit <= MAX_PAGE) return;
  throw new WebdfsError('INVALID', `a page has 0 to ${MAX_PAGE} rows, not ${limit}`, { details: { what: 'limit' } });
}

/** The end of the common prefix that a key falls into: behind the first delimiter after the prefix. −1 without one. */
export function commonPrefixEnd(key: Uint8Array, prefixLength: number, delimiter: Uint8Array | undefined): number {
  if (delimiter === undefined || delimiter.length === 0) return -1;
  const at = Buffer.from(key.buffer, key.byteOffset, key.byteLength).indexOf(delimiter, prefixLength);
  return at < 0 ? -1 : at + delimiter.length;
}

/**
 * The first key that a listing may show: behind `after`, and behind everything that shares a common prefix with it, because
 * that prefix is not after it. Undefined: none.
 */
export function firstKey({ prefix = EMPTY, delimiter, after }: ListOptions): Uint8Array | undefined {
  if (after === undefined || compareBytes(after, prefix) < 0) return prefix;
  if (!startsWith(after, prefix)) return undefined;
  const end = commonPrefixEnd(after, prefix.length, delimiter);
  return end < 0 ? next(after) : behind(after.subarray(0, end));
}

/** All pages of a range, one after another, until `enough` rows have come. */
export async function rowsOf(groups: Groups, request: ListRequest): Promise<ListPage> {
  const rows: ListRow[] = [];
  let from: Uint8Array | undefined = request.from;
  while (from !== undefined && rows.length < request.take) {
    const page: ListPage = await groups.list({ ...request, from, take: request.take - rows.length });
    rows.push(...page.rows);
    from = page.next;
  }
  return { rows, next: from };
}

function listed(row: ListRow): ListedObject {
  return {
    key: keyOf(row.key),
    size: unpackSummary(row.summary).size,
    etag: etagOf(row.summary),
    modifiedMs: row.modifiedMs,
  };
}

/** A page of a bucket's objects, by the bytes of their keys. */
export async function listObjects(records: RecordStore, bucket: Bucket, options: ListOptions): Promise<Listing> {
  checkLimit(options.limit);
  const { prefix = EMPTY, delimiter, limit } = options;
  const first = firstKey(options);
  if (limit === 0 || first === undefined) return { objects: [], prefixes: [], next: undefined };
  const whole = objectKey(bucket.id, prefix);
  const { groups, policy } = records.seams;
  const from = objectKey(bucket.id, first);
  const before = behind(whole)!;
  if (compareBytes(from, before) >= 0) return { objects: [], prefixes: [], next: undefined };
  const page = await rowsOf(groups, {
    policy,
    from,
    before,
    take: limit,
    ...(delimiter !== undefined && delimiter.length > 0 && { collapse: { prefixLength: whole.length, delimiter } }),
  });
  const last = page.rows.at(-1);
  return {
    objects: page.rows.filter((row) => !row.prefix).map(listed),
    prefixes: page.rows.filter((row) => row.prefix).map((row) => keyOf(row.key)),
    next: page.next === undefined || last === undefined ? undefined : keyOf(last.key),
  };
}

/** Whether a bucket holds no object. */
export async function isEmpty(records: RecordStore, bucket: Bucket): Promise<boolean> {
  const { groups, policy } = records.seams;
  const from = objectKey(bucket.id, EMPTY);
  const page = await rowsOf(groups, { policy, from, before: behind(from)!, take: 1 });
  return page.rows.length === 0;
}
