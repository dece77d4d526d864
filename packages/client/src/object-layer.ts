import { type Log, silentLog, WebdfsError } from '@webdfs/base';
import { BLOCK_BYTES, INLINE_BYTES } from '@webdfs/replica';
import { Background } from './background.ts';
import type { BodyTarget } from './body-writer.ts';
import { BucketRecords } from './bucket-records.ts';
import { type BucketAnnouncer, Buckets } from './buckets.ts';
import { type Completion, completeUpload } from './complete-upload.ts';
import { checkChecksum, defaultType, isChecksumName } from './composite-checksums.ts';
import { MAX_PUT_BYTES, MIN_PART_BYTES } from './limits.ts';
import { isEmpty, listObjects } from './listing.ts';
import type {
  Bucket,
  ByteSource,
  CopyOptions,
  GetOptions,
  GetResult,
  Listing,
  ListOptions,
  ObjectFacts,
  ObjectInfo,
  ObjectStore,
  PartInfo,
  PutConditions,
  PutOptions,
  PutResult,
  Range,
  UploadInfo,
} from './object-store.ts';
import { Objects } from './objects.ts';
import { type ObjectSeams, RecordStore } from './record-store.ts';
import { Sweep, type SweepResult } from './sweep.ts';
import type { UploadPage } from './upload-listing.ts';
import { UploadRecords, type UploadStart } from './upload-records.ts';
import { Uploads } from './uploads.ts';

export interface ObjectLayerOptions extends ObjectSeams {
  readonly log?: Log;
  /** Tells the other gateways of a changed bucket; without it this one is alone. */
  readonly announceBucket?: BucketAnnouncer;
  /** For tests of large things on a small scale. */
  readonly sizes?: Partial<ObjectSizes>;
}

export interface ObjectSizes {
  readonly blockBytes: number;
  readonly inlineBytes: number;
  readonly maxPutBytes: number;
  readonly minPartBytes: number;
}

const SIZES: ObjectSizes = {
  blockBytes: BLOCK_BYTES,
  inlineBytes: INLINE_BYTES,
  maxPutBytes: MAX_PUT_BYTES,
  minPartBytes: MIN_PART_BYTES,
};

/**
 * Buckets and objects over replicated groups: the store that every door opens. Nothing is kept between calls but a few
 * bucket records; memory per call is bounded whatever the object's size.
 */
export class ObjectLayer implements ObjectStore {
  readonly #records: RecordStore;
  readonly #buckets: Buckets;
  readonly #objects: Objects;
  readonly #uploads: Uploads;
  readonly #background: Background;
  readonly #sizes: ObjectSizes;

  constructor(options: ObjectLayerOptions) {
    const { groups, policy, clock, random, log = silentLog, announceBucket: announce } = options;
    this.#sizes = { ...SIZES, ...options.sizes };
    const { blockBytes, inlineBytes, maxPutBytes: maxBytes } = this.#sizes;
    const target: BodyTarget = { groups, policy, clock, random, blockBytes, inlineBytes, maxBytes };
    this.#background = new Background(log);
    this.#records = new RecordStore({ groups, policy, clock, random });
    const records = this.#records;
    const buckets = new Buckets(records, { announce, isEmpty: (bucket) => isEmpty(records, bucket) });
    this.#buckets = buckets;
    this.#objects = new Objects(records, buckets, target);
    this.#uploads = new Uploads(new UploadRecords(records), { buckets, target, background: this.#background });
  }

  // ---- buckets ----

  createBucket(name: string, options: { owner: string; access?: Bucket['access']; region?: string }): Promise<Bucket> {
    return this.#buckets.create(name, options);
  }

  bucket(name: string): Promise<Bucket> {
    return this.#buckets.find(name);
  }

  setBucketAccess(name: string, access: Bucket['access']): Promise<Bucket> {
    return this.#buckets.setAccess(name, access);
  }

  /** Open uploads do not keep a bucket; they go with it. */
  async deleteBucket(name: string): Promise<void> {
    const bucket = await this.#buckets.delete(name);
    this.#background.start('remove uploads of a bucket', async () => {
      await new Sweep(this.#records).bucket(bucket);
    });
  }

  listBuckets(): Promise<Bucket[]> {
    return this.#buckets.list();
  }

  /** Another gateway says that a bucket has changed. Resolves when nothing here trusts the old one any more. */
  bucketChanged(name: string): Promise<void> {
    return this.#buckets.changed(name);
  }

  // ---- objects ----

  put(bucket: string, key: Uint8Array, body: ByteSource, options: PutOptions): Promise<PutResult> {
    return this.#objects.put(bucket, key, body, options);
  }

  get(bucket: string, key: Uint8Array, options: GetOptions = {}): Promise<GetResult> {
    return this.#objects.get(bucket, key, options);
  }

  head(
    bucket: string,
    key: Uint8Array,
    options: GetOptions = {},
  ): Promise<{ info: ObjectInfo; offset: number; length: number }> {
    return this.#objects.head(bucket, key, options);
  }

  remove(bucket: string, key: Uint8Array, conditions?: PutConditions): Promise<boolean> {
    return this.#objects.remove(bucket, key, conditions);
  }

  copy(bucket: string, key: Uint8Array, options: CopyOptions): Promise<PutResult> {
    return this.#objects.copy(bucket, key, options);
  }

  async list(bucket: string, options: ListOptions): Promise<Listing> {
    return await listObjects(this.#records, await this.#buckets.find(bucket), options);
  }

  // ---- multipart uploads ----

  /** @throws INVALID for a checksum that S3 does not know; without a type its default is taken */
  async createUpload(
    bucket: string,
    key: Uint8Array,
    options: { facts: ObjectFacts; checksumAlgorithm?: string; checksumType?: string },
  ): Promise<UploadInfo> {
    return await this.#uploads.create(bucket, key, withChecksumType(options));
  }

  putPart(
    bucket: string,
    key: Uint8Array,
    part: { uploadId: string; number: number },
    body: ByteSource,
    options: Pick<PutOptions, 'size' | 'verify' | 'signal'>,
  ): Promise<PutResult> {
    return this.#uploads.putPart(bucket, key, part, body, options);
  }

  async copyPart(
    bucket: string,
    key: Uint8Array,
    part: { uploadId: string; number: number },
    options: CopyOptions & { range?: Range },
  ): Promise<PutResult> {
    const { info, body, length: size } = await this.#objects.copySource(options);
    checkCopied(options.range, size, info.size);
    return await this.#uploads.copyPart(bucket, key, part, { body, size, signal: options.signal });
  }

  async completeUpload(bucket: string, key: Uint8Array, uploadId: string, options: Completion): Promise<PutResult> {
    const found = await this.#buckets.find(bucket);
    const rows = this.#uploads.rows;
    const { id, place } = rows.locate(found, key, uploadId);
    const seams = {
      rows,
      objects: this.#objects,
      writing: <T>(held: Bucket, action: () => Promise<T>): Promise<T> => this.#buckets.writing(held, action),
      minPartBytes: this.#sizes.minPartBytes,
    };
    const result = await completeUpload(seams, found, { key, uploadId, completion: options });
    this.#background.start('remove parts', () => this.#uploads.removeParts(found, key, { id, place }));
    return result;
  }

  abortUpload(bucket: string, key: Uint8Array, uploadId: string): Promise<void> {
    return this.#uploads.abort(bucket, key, uploadId);
  }

  listParts(
    bucket: string,
    key: Uint8Array,
    uploadId: string,
    options: { after: number; limit: number },
  ): Promise<{ upload: UploadInfo; parts: PartInfo[]; next: number | undefined }> {
    return this.#uploads.listParts(bucket, key, uploadId, options);
  }

  listUploads(bucket: string, options: ListOptions & { afterUploadId?: string }): Promise<UploadPage> {
    return this.#uploads.list(bucket, options);
  }

  // ---- housekeeping ----

  /** Removes what closed uploads and deleted buckets left behind. Any one node may run it, now and then. */
  async sweepUploads(signal?: AbortSignal): Promise<SweepResult> {
    return await new Sweep(this.#records, signal).all(new BucketRecords(this.#records));
  }

  /** Resolves when the follow-up work of all requests so far is done. */
  idle(): Promise<void> {
    return this.#background.idle();
  }
}

/** A part is the whole range that was named: unlike a read, a copy is not cut at the source's end. @throws INVALID */
function checkCopied(range: Range | undefined, copied: number, sourceSize: number): void {
  if (range?.type !== 'from' || range.last === undefined || range.last - range.first + 1 === copied) return;
  throw new WebdfsError('INVALID', `the range ends beyond the source's ${sourceSize} bytes`, {
    details: { what: 'range', size: sourceSize },
  });
}

function withChecksumType(start: UploadStart): UploadStart {
  const { checksumAlgorithm: name, checksumType: type } = start;
  if (name === undefined) return start;
  const taken = type ?? (isChecksumName(name) ? defaultType(name) : 'COMPOSITE');
  checkChecksum(name, taken);
  return { ...start, checksumType: taken };
}
