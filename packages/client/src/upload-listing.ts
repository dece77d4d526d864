import { compareBytes, EMPTY, toHex } from '@webdfs/base';
import type { ListPage } from '@webdfs/replica';
import { parseUploadId } from './ids.ts';
import { behind, type HiddenRow, next, readHiddenRow, uploadRange, uploadRow } from './keyspace.ts';
import { MAX_PAGE, SIDE_BY_SIDE } from './limits.ts';
import { checkLimit, commonPrefixEnd, firstKey } from './listing.ts';
import type { Bucket, ListOptions, UploadInfo } from './object-store.ts';
import { eachSideBySide } from './side-by-side.ts';
import type { UploadRecords } from './upload-records.ts';

/** A page of open uploads. */
export interface UploadPage {
  readonly uploads: UploadInfo[];
  readonly prefixes: Uint8Array[];
  readonly next: { key: Uint8Array; uploadId: string } | undefined;
}

type UploadListOptions = ListOptions & { readonly afterUploadId?: string };

/** Walks the uploads of a bucket by key and id; common prefixes are made here, because the rows' keys are escaped. */
class UploadWalk {
  readonly #rows: UploadRecords;
  readonly #bucket: Bucket;
  readonly #options: UploadListOptions;
  readonly #found: HiddenRow[] = [];
  readonly #prefixes: Uint8Array[] = [];
  #last: { key: Uint8Array; uploadId: string } | undefined;

  constructor(rows: UploadRecords, bucket: Bucket, options: UploadListOptions) {
    this.#rows = rows;
    this.#bucket = bucket;
    this.#options = options;
  }

  async page(): Promise<UploadPage> {
    const { prefix = EMPTY, limit } = this.#options;
    const { groups, policy } = this.#rows.records.seams;
    const { before } = uploadRange(this.#bucket.id, prefix);
    let from = this.#start();
    while (from !== undefined && compareBytes(from, before) < 0) {
      const page: ListPage = await groups.list({ policy, from, before, take: Math.min(MAX_PAGE, limit + 1) });
      for (const row of page.rows) {
        if (!this.#take(readHiddenRow(row.key))) return await this.#result(this.#last);
      }
      from = page.next && (this.#behindPrefix(page) ?? page.next);
    }
    return await this.#result(undefined);
  }

  /** An upload that was closed since the page was made is not shown. */
  async #result(end: UploadPage['next']): Promise<UploadPage> {
    const uploads: (UploadInfo | undefined)[] = [];
    await eachSideBySide(this.#found.entries(), SIDE_BY_SIDE, async ([i, { key, uploadId }]) => {
      uploads[i] = (await this.#rows.find(this.#bucket, key, toHex(uploadId)))?.info;
    });
    return { uploads: uploads.filter((upload) => upload !== undefined), prefixes: this.#prefixes, next: end };
  }

  /** The first row wanted. An upload id counts only together with a key. */
  #start(): Uint8Array | undefined {
    const { after, afterUploadId = '', prefix = EMPTY, delimiter } = this.#options;
    const id = parseUploadId(afterUploadId);
    if (after !== undefined && id !== undefined && commonPrefixEnd(after, prefix.length, delimiter) < 0) {
      const row = next(uploadRow(this.#bucket.id, after, id));
      const { from } = uploadRange(this.#bucket.id, prefix);
      return compareBytes(row, from) < 0 ? from : row;
    }
    const first = firstKey(this.#options);
    return first && uploadRange(this.#bucket.id, first).from;
  }

  /** False: this row is more than the page may show. */
  #take(row: HiddenRow): boolean {
    const { prefix = EMPTY, delimiter, limit } = this.#options;
    const end = commonPrefixEnd(row.key, prefix.length, delimiter);
    const shared = end < 0 ? undefined : row.key.subarray(0, end);
    const before = this.#prefixes.at(-1);
    if (shared !== undefined && before !== undefined && compareBytes(shared, before) === 0) return true;
    if (this.#found.length + this.#prefixes.length === limit) return false;
    if (shared === undefined) this.#found.push(row);
    else this.#prefixes.push(shared);
    this.#last = { key: shared ?? row.key, uploadId: shared === undefined ? toHex(row.uploadId) : '' };
    return true;
  }

  /** Where to go on when a page ends inside a common prefix. */
  #behindPrefix(page: ListPage): Uint8Array | undefined {
    const last = page.rows.at(-1);
    if (last === undefined) return undefined;
    const { prefix = EMPTY, delimiter } = this.#options;
    const { key } = readHiddenRow(last.key);
    const end = commonPrefixEnd(key, prefix.length, delimiter);
    const first = end < 0 ? undefined : behind(key.subarray(0, end));
    return first && uploadRange(this.#bucket.id, first).from;
  }
}

/** A page of a bucket's open uploads, by the bytes of their keys, then by id. */
export async function listUploads(
  rows: UploadRecords,
  bucket: Bucket,
  options: UploadListOptions,
): Promise<UploadPage> {
  checkLimit(options.limit);
  if (options.limit === 0) return { uploads: [], prefixes: [], next: undefined };
  return await new UploadWalk(rows, bucket, options).page();
}
