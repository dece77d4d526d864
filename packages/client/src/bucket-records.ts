import { hash } from 'node:crypto';
import { codeOf, fromUtf8, type Sequence, utf8, WebdfsError } from '@webdfs/base';
import { etagOf } from '@webdfs/replica';
import { parseJson } from './facts.ts';
import { behind, keyOf, MAX_BUCKET_ID, objectKey, SYSTEM_BUCKET } from './keyspace.ts';
import { MAX_PAGE, SIDE_BY_SIDE, SWAP_TRIES } from './limits.ts';
import type { Bucket } from './object-store.ts';
import type { Place, RecordContent, RecordStore } from './record-store.ts';
import { eachSideBySide } from './side-by-side.ts';

/** A bucket as stored: with the version of its record, and since when it is being deleted, if it is. */
export interface BucketRecord {
  readonly bucket: Bucket;
  readonly sequence: Sequence;
  readonly deletingMs?: number;
}

const PREFIX = utf8('bucket/');
const COUNTER = objectKey(SYSTEM_BUCKET, utf8('bucket-ids'));

function bucketKey(name: string): Uint8Array {
  return objectKey(SYSTEM_BUCKET, utf8(`bucket/${name}`));
}

function content(value: unknown): RecordContent {
  const inline = utf8(JSON.stringify(value));
  const etag = new Uint8Array(hash('md5', inline, 'buffer'));
  return {
    summary: { size: inline.length, etag, parts: 0, flags: 0 },
    layout: { type: 'inline' },
    facts: '{}',
    inline,
  };
}

/** @throws CORRUPT */
function parseBucket(bytes: Uint8Array): Omit<BucketRecord, 'sequence'> {
  const { id, name, createdMs, owner, access, region, deletingMs } = parseJson(bytes);
  const sound =
    Number.isSafeInteger(id) &&
    typeof name === 'string' &&
    typeof createdMs === 'number' &&
    typeof owner === 'string' &&
    (access === 'private' || access === 'public-read') &&
    typeof region === 'string';
  if (!sound) throw new WebdfsError('CORRUPT', 'a bucket record lacks what every bucket has');
  return {
    bucket: { id: id as number, name, createdMs, owner, access, region },
    ...(typeof deletingMs === 'number' && { deletingMs }),
  };
}

/** The records of buckets in the system bucket, without any cache. */
export class BucketRecords {
  readonly #records: RecordStore;

  constructor(records: RecordStore) {
    this.#records = records;
  }

  #place(name: string): Place {
    return this.#records.place(bucketKey(name));
  }

  async read(name: string): Promise<BucketRecord | undefined> {
    const record = await this.#records.read(this.#place(name));
    return record && { ...parseBucket(record.body), sequence: record.sequence };
  }

  /** All buckets, in the order of their names. */
  async list(): Promise<BucketRecord[]> {
    const { groups, policy } = this.#records.seams;
    const names: string[] = [];
    const before = behind(objectKey(SYSTEM_BUCKET, PREFIX))!;
    let from: Uint8Array | undefined = objectKey(SYSTEM_BUCKET, PREFIX);
    while (from !== undefined) {
      const page = await groups.list({ policy, from, before, take: MAX_PAGE });
      for (const row of page.rows) names.push(fromUtf8(keyOf(row.key).subarray(PREFIX.length)));
      from = page.next;
    }
    const found: (BucketRecord | undefined)[] = [];
    await eachSideBySide(names.entries(), SIDE_BY_SIDE, async ([i, name]) => {
      found[i] = await this.read(name);
    });
    return found.filter((record) => record !== undefined);
  }

  /** @throws ALREADY_EXISTS */
  async create(bucket: Bucket): Promise<BucketRecord> {
    try {
      const { sequence } = await this.#records.put(this.#place(bucket.name), content(bucket), {
        conditions: { ifNoneMatch: ['*'] },
      });
      return { bucket, sequence };
    } catch (error) {
      if (codeOf(error) !== 'PRECONDITION_FAILED') throw error;
      throw alreadyExists(bucket.name, error);
    }
  }

  /** Replaces exactly the version `seen`. @throws CONFLICT if it is another by now */
  async replace(seen: BucketRecord, bucket: Bucket, deletingMs?: number): Promise<BucketRecord> {
    const place = this.#place(bucket.name);
    const mark = deletingMs === undefined ? {} : { deletingMs };
    const { sequence } = await this.#records.put(place, content({ ...bucket, ...mark }), {
      requires: [{ key: place.key, sequence: seen.sequence }],
    });
    return { bucket, sequence, ...mark };
  }

  /** Removes exactly the version `seen`. @throws CONFLICT if it is another by now */
  async remove(seen: BucketRecord): Promise<void> {
    const place = this.#place(seen.bucket.name);
    await this.#records.remove(place, { requires: [{ key: place.key, sequence: seen.sequence }] });
  }

  /** A bucket id that was never used. @throws BUSY if too many others want one at this moment */
  async freshId(): Promise<number> {
    const place = this.#records.place(COUNTER);
    for (let tries = 0; tries < SWAP_TRIES; tries++) {
      const record = await this.#records.read(place);
      const last = record === undefined ? 0 : Number(parseJson(record.body)['last']);
      if (!Number.isSafeInteger(last) || last < 0)
        throw new WebdfsError('CORRUPT', 'the counter of bucket ids is no number');
      if (last >= MAX_BUCKET_ID) throw new WebdfsError('INVALID', 'there are no bucket ids left');
      const conditions = record ? { ifMatch: [etagOf(record.packedSummary)] } : { ifNoneMatch: ['*'] };
      try {
        await this.#records.put(place, content({ last: last + 1 }), { conditions });
        return last + 1;
      } catch (error) {
        if (codeOf(error) !== 'PRECONDITION_FAILED') throw error;
      }
    }
    throw new WebdfsError('BUSY', 'too many buckets are being created at once', { retryAfterMs: 100 });
  }
}

export function alreadyExists(name: string, cause?: unknown): WebdfsError {
  return new WebdfsError('ALREADY_EXISTS', `bucket ${name} exists already`, { details: { what: 'bucket' }, cause });
}
