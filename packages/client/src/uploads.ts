import { assert, codeOf, toHex } from '@webdfs/base';
import { etagOf, type ListPage, unpackSummary } from '@webdfs/replica';
import type { Background } from './background.ts';
import { type BodyTarget, storeBody } from './body-writer.ts';
import type { Buckets } from './buckets.ts';
import { isChecksumName, type RunningChecksum, runningChecksum } from './composite-checksums.ts';
import { freshAttempt, noUpload } from './ids.ts';
import { checkUploadKey, next, partRange, readHiddenRow } from './keyspace.ts';
import { MAX_PAGE, MAX_PART_NUMBER, SIDE_BY_SIDE } from './limits.ts';
import { checkLimit, rowsOf } from './listing.ts';
import type {
  Bucket,
  ByteSource,
  ListOptions,
  ObjectFacts,
  PartInfo,
  PutOptions,
  PutResult,
  UploadInfo,
} from './object-store.ts';
import { putResult, withLearned } from './objects.ts';
import { eachSideBySide } from './side-by-side.ts';
import { listUploads, type UploadPage } from './upload-listing.ts';
import { checkPartNumber, type UploadRecord, UploadRecords, type UploadStart } from './upload-records.ts';

const NO_FACTS: ObjectFacts = { headers: {}, user: {} };

/** Multipart uploads before they are complete: begun, given parts, listed, given up. */
export class Uploads {
  readonly rows: UploadRecords;
  readonly #buckets: Buckets;
  readonly #target: BodyTarget;
  readonly #background: Background;

  constructor(rows: UploadRecords, seams: { buckets: Buckets; target: BodyTarget; background: Background }) {
    this.rows = rows;
    this.#buckets = seams.buckets;
    // a part's bytes are always in blocks, for the object to name
    this.#target = { ...seams.target, inlineBytes: -1 };
    this.#background = seams.background;
  }

  async create(bucketName: string, key: Uint8Array, start: UploadStart): Promise<UploadInfo> {
    checkUploadKey(key);
    const bucket = await this.#buckets.find(bucketName);
    const uploadId = toHex(freshAttempt(this.#target.clock, this.#target.random));
    return await this.#buckets.writing(bucket, () => this.rows.create(bucket, key, { uploadId, start }));
  }

  /** @throws NOT_FOUND if the upload is not open, before and after the body was taken */
  async putPart(
    bucketName: string,
    key: Uint8Array,
    { uploadId, number }: { uploadId: string; number: number },
    body: ByteSource,
    { size, verify, signal }: Pick<PutOptions, 'size' | 'verify' | 'signal'>,
  ): Promise<PutResult> {
    checkPartNumber(number);
    const bucket = await this.#buckets.find(bucketName);
    const upload = await this.rows.require(bucket, key, uploadId);
    const stored = await storeBody(this.#target, body, {
      header: { key: upload.place.key, uploadId: upload.id },
      ...(size !== undefined && { size }),
      ...(verify && { verify }),
      ...(signal && { signal }),
    });
    const facts = withLearned(NO_FACTS, stored.learned);
    assert(stored.layout.type === 'blocks', 'the bytes of a part are in blocks');
    const { layout, size: storedSize, md5 } = stored;
    const part = { layout, size: storedSize, md5, checksums: facts.checksums };
    try {
      const { modifiedMs } = await this.#buckets.writing(bucket, () => this.rows.putPart(upload, number, part));
      return putResult(toHex(stored.md5), stored.size, modifiedMs, facts);
    } catch (error) {
      if (codeOf(error) === 'CONFLICT') throw noUpload(uploadId);
      throw error;
    }
  }

  /** A part whose bytes are copied: nobody sends their checksum, so the one that the upload wants is made here. */
  async copyPart(
    bucketName: string,
    key: Uint8Array,
    part: { uploadId: string; number: number },
    source: { body: ByteSource; size: number; signal: AbortSignal | undefined },
  ): Promise<PutResult> {
    const upload = await this.rows.require(await this.#buckets.find(bucketName), key, part.uploadId);
    const name = upload.info.checksumAlgorithm;
    const { size } = source;
    const options = { size, ...(source.signal && { signal: source.signal }) };
    if (name === undefined || !isChecksumName(name)) {
      return await this.putPart(bucketName, key, part, source.body, options);
    }
    const running = runningChecksum(name);
    return await this.putPart(bucketName, key, part, watched(source.body, running), {
      ...options,
      verify: () => ({ checksums: { [name]: Buffer.from(running.digest()).toString('base64') } }),
    });
  }

  async abort(bucketName: string, key: Uint8Array, uploadId: string): Promise<void> {
    const bucket = await this.#buckets.find(bucketName);
    const { id, place, row } = this.rows.locate(bucket, key, uploadId);
    try {
      await this.rows.records.remove(row, { requires: [{ key: row.key, sequence: -1 }] });
    } catch (error) {
      if (codeOf(error) === 'CONFLICT') throw noUpload(uploadId);
      throw error;
    }
    this.#background.start('remove parts', () => this.removeParts(bucket, key, { id, place }));
  }

  /** Removes the rows of a closed upload's parts. */
  async removeParts(bucket: Bucket, key: Uint8Array, upload: Pick<UploadRecord, 'id' | 'place'>): Promise<void> {
    const { groups, policy } = this.rows.records.seams;
    const range = partRange(bucket.id, key, upload.id);
    let from: Uint8Array | undefined = range.from;
    while (from !== undefined) {
      const page: ListPage = await groups.list({ policy, from, before: range.before, take: MAX_PAGE });
      await eachSideBySide(page.rows, SIDE_BY_SIDE, async (row) => {
        await this.rows.records.remove(this.rows.records.beside(upload.place, row.key));
      });
      from = page.next;
    }
  }

  async listParts(
    bucketName: string,
    key: Uint8Array,
    uploadId: string,
    options: { after: number; limit: number },
  ): Promise<{ upload: UploadInfo; parts: PartInfo[]; next: number | undefined }> {
    checkLimit(options.limit);
    const bucket = await this.#buckets.find(bucketName);
    const upload = await this.rows.require(bucket, key, uploadId);
    if (options.limit === 0 || options.after >= MAX_PART_NUMBER)
      return { upload: upload.info, parts: [], next: undefined };
    const range = partRange(bucket.id, key, upload.id);
    const { groups, policy } = this.rows.records.seams;
    const from = options.after <= 0 ? range.from : next(this.rows.partPlace(upload, options.after).key);
    const page = await rowsOf(groups, { policy, from, before: range.before, take: options.limit });
    const parts: PartInfo[] = page.rows.map((row) => ({
      number: readHiddenRow(row.key).number!,
      size: unpackSummary(row.summary).size,
      etag: etagOf(row.summary),
      modifiedMs: row.modifiedMs,
    }));
    if (upload.info.checksumAlgorithm !== undefined) await this.#addChecksums(upload, parts);
    return { upload: upload.info, parts, next: page.next === undefined ? undefined : parts.at(-1)?.number };
  }

  /** Checksums are not in the rows of a listing. A part that was replaced meanwhile is shown as it is now. */
  async #addChecksums(upload: UploadRecord, parts: PartInfo[]): Promise<void> {
    await eachSideBySide(parts.entries(), SIDE_BY_SIDE, async ([i, { number }]) => {
      const part = await this.rows.findPart(upload, number);
      if (part !== undefined) parts[i] = part.info;
    });
  }

  async list(bucketName: string, options: ListOptions & { afterUploadId?: string }): Promise<UploadPage> {
    const bucket = await this.#buckets.find(bucketName);
    return await listUploads(this.rows, bucket, options);
  }
}

/** The same bytes, each piece counted into a checksum as it passes. */
async function* watched(body: ByteSource, running: RunningChecksum): AsyncGenerator<Uint8Array> {
  for await (const bytes of body instanceof Uint8Array ? [body] : body) {
    running.update(bytes);
    yield bytes;
  }
}
