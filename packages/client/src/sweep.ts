import { codeOf, toHex } from '@webdfs/base';
import type { ListPage } from '@webdfs/replica';
import type { BucketRecords } from './bucket-records.ts';
import {
  allHidden,
  type HiddenRow,
  hiddenRange,
  type KeyRange,
  objectKey,
  readHiddenRow,
  uploadRow,
} from './keyspace.ts';
import { MAX_PAGE } from './limits.ts';
import type { Bucket } from './object-store.ts';
import type { RecordStore } from './record-store.ts';

export interface SweepResult {
  readonly uploads: number;
  readonly parts: number;
}

/**
 * Housekeeping of multipart uploads: removes parts whose upload is closed, and uploads of buckets that are gone. A part is
 * removed only in a step that proves that its upload does not exist.
 */
export class Sweep {
  readonly #records: RecordStore;
  readonly #signal: AbortSignal | undefined;
  #removed = { uploads: 0, parts: 0 };
  /** The upload looked at last, by its row: its parts stand together. */
  #last: { readonly name: string; readonly open: boolean } | undefined;

  constructor(records: RecordStore, signal?: AbortSignal) {
    this.#records = records;
    this.#signal = signal;
  }

  /** Everything that belongs to a bucket that is gone. Its id is never used again. */
  async bucket(bucket: Bucket): Promise<SweepResult> {
    await this.#walk(hiddenRange(bucket.id), () => false);
    return this.#removed;
  }

  /** All buckets. */
  async all(buckets: BucketRecords): Promise<SweepResult> {
    const known = new Map<number, boolean>();
    await this.#walk(allHidden(), async ({ bucket }) => {
      // asked after the row was seen: a bucket is older than its uploads
      if (!known.has(bucket)) {
        for (const { bucket: present } of await buckets.list()) known.set(present.id, true);
        known.set(bucket, known.get(bucket) ?? false);
      }
      return known.get(bucket)!;
    });
    return this.#removed;
  }

  async #walk(range: KeyRange, bucketIsThere: (row: HiddenRow) => Promise<boolean> | boolean): Promise<void> {
    const { groups, policy } = this.#records.seams;
    let from: Uint8Array | undefined = range.from;
    while (from !== undefined && this.#signal?.aborted !== true) {
      const page: ListPage = await groups.list({ policy, from, before: range.before, take: MAX_PAGE });
      for (const { key } of page.rows) {
        const row = readHiddenRow(key);
        if (row.number !== undefined) await this.#part(row, key);
        else if (!(await bucketIsThere(row))) await this.#upload(row, key);
      }
      from = page.next;
    }
  }

  async #upload(row: HiddenRow, key: Uint8Array): Promise<void> {
    const owner = this.#records.place(objectKey(row.bucket, row.key));
    await this.#records.remove(this.#records.beside(owner, key));
    this.#removed = { ...this.#removed, uploads: this.#removed.uploads + 1 };
  }

  async #part(row: HiddenRow, key: Uint8Array): Promise<void> {
    const owner = this.#records.place(objectKey(row.bucket, row.key));
    const upload = uploadRow(row.bucket, row.key, row.uploadId);
    const name = toHex(upload);
    if (this.#last?.name !== name) {
      const open = (await this.#records.row(this.#records.beside(owner, upload))) !== undefined;
      this.#last = { name, open };
    }
    if (this.#last.open) return;
    try {
      await this.#records.remove(this.#records.beside(owner, key), { requires: [{ key: upload, sequence: 0 }] });
      this.#removed = { ...this.#removed, parts: this.#removed.parts + 1 };
    } catch (error) {
      if (codeOf(error) !== 'CONFLICT') throw error;
    }
  }
}
