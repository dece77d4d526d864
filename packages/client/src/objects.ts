import { type PolicyId, WebdfsError } from '@webdfs/base';
import { etagOf } from '@webdfs/replica';
import type { Piece } from '@webdfs/wire';
import { blockRuns, readBlocks } from './body-reader.ts';
import { type BodyTarget, storeBody, type StoredBody } from './body-writer.ts';
import type { Buckets } from './buckets.ts';
import { packFacts, type StoredFacts, unpackFacts } from './facts.ts';
import { checkKey, objectKey, UPLOAD_ID_BYTES } from './keyspace.ts';
import type {
  Bucket,
  ByteSource,
  CopyOptions,
  GetOptions,
  GetResult,
  ObjectFacts,
  ObjectInfo,
  PutConditions,
  PutOptions,
  PutResult,
  Range,
} from './object-store.ts';
import { type Extent, resolveRange } from './ranges.ts';
import type { Place, RecordStore, StoredRecord } from './record-store.ts';

const NO_UPLOAD = new Uint8Array(UPLOAD_ID_BYTES);

/** An object found: what is said of it, and where its bytes are. */
export interface FoundObject {
  readonly info: ObjectInfo;
  readonly record: StoredRecord;
  readonly facts: StoredFacts;
}

function noKey(): WebdfsError {
  return new WebdfsError('NOT_FOUND', 'there is no such key', { details: { what: 'key' } });
}

/** The facts given, with what `verify` learned at the end of the body. */
export function withLearned(facts: ObjectFacts, learned: Partial<ObjectFacts> | undefined): ObjectFacts {
  return learned === undefined ? facts : { ...facts, ...learned };
}

export function putResult(etag: string, size: number, modifiedMs: number, facts: ObjectFacts): PutResult {
  return {
    etag,
    size,
    modifiedMs,
    ...(facts.checksums && { checksums: facts.checksums }),
    ...(facts.checksumType !== undefined && { checksumType: facts.checksumType }),
  };
}

/** Whole objects: written, read, removed, copied. */
export class Objects {
  readonly #records: RecordStore;
  readonly #buckets: Buckets;
  readonly #target: BodyTarget;

  constructor(records: RecordStore, buckets: Buckets, target: BodyTarget) {
    this.#records = records;
    this.#buckets = buckets;
    this.#target = target;
  }

  place(bucket: Bucket, key: Uint8Array): Place {
    checkKey(key);
    return this.#records.place(objectKey(bucket.id, key));
  }

  /** The facts of an object, undefined if there is none. */
  async find(bucket: Bucket, key: Uint8Array): Promise<FoundObject | undefined> {
    const record = await this.#records.read(this.place(bucket, key));
    if (record === undefined) return undefined;
    const facts = unpackFacts(record.facts);
    const { uploadId: _, ...shown } = facts;
    const info: ObjectInfo = {
      ...shown,
      bucket: bucket.name,
      key,
      size: record.summary.size,
      etag: etagOf(record.packedSummary),
      modifiedMs: record.modifiedMs,
      parts: record.summary.parts,
      version: String(record.sequence),
    };
    return { info, record, facts };
  }

  async put(bucketName: string, key: Uint8Array, body: ByteSource, options: PutOptions): Promise<PutResult> {
    const bucket = await this.#buckets.find(bucketName);
    const place = this.place(bucket, key);
    packFacts(options.facts); // refuses what is too large before it takes a body
    const { size, verify, signal } = options;
    const stored = await storeBody(this.#target, body, {
      header: { key: place.key, uploadId: NO_UPLOAD },
      ...(size !== undefined && { size }),
      ...(verify && { verify }),
      ...(signal && { signal }),
    });
    const facts = withLearned(options.facts, stored.learned);
    return await this.#commit(bucket, place, { stored, facts, conditions: options.conditions });
  }

  async #commit(
    bucket: Bucket,
    place: Place,
    object: { stored: StoredBody; facts: ObjectFacts; conditions: PutConditions | undefined },
  ): Promise<PutResult> {
    const { stored, facts, conditions } = object;
    const summary = { size: stored.size, etag: stored.md5, parts: 0, flags: 0 };
    const content = { summary, layout: stored.layout, facts: packFacts(facts), inline: stored.inline };
    const { modifiedMs } = await this.#buckets.writing(bucket, () =>
      this.#records.put(place, content, conditions && { conditions }),
    );
    return putResult(Buffer.from(stored.md5).toString('hex'), stored.size, modifiedMs, facts);
  }

  /** @throws NOT_FOUND, what `check` throws, RANGE_NOT_SATISFIABLE */
  async #opened(
    bucketName: string,
    key: Uint8Array,
    options: { range?: Range; check?: (info: ObjectInfo) => void },
  ): Promise<FoundObject & { extent: Extent }> {
    const bucket = await this.#buckets.find(bucketName);
    const found = await this.find(bucket, key);
    if (found === undefined) throw noKey();
    options.check?.(found.info);
    return { ...found, extent: resolveRange(options.range, found.info.size, found.record.layout) };
  }

  async head(
    bucketName: string,
    key: Uint8Array,
    options: GetOptions,
  ): Promise<{ info: ObjectInfo; offset: number; length: number }> {
    const { info, extent } = await this.#opened(bucketName, key, options);
    return { info, ...extent };
  }

  async get(bucketName: string, key: Uint8Array, options: GetOptions): Promise<GetResult> {
    const { info, record, extent } = await this.#opened(bucketName, key, options);
    return { info, ...extent, body: this.#body(record, extent, options.signal) };
  }

  #body(record: StoredRecord, extent: Extent, signal: AbortSignal | undefined): GetResult['body'] {
    const { layout } = record;
    if (layout.type === 'inline') {
      if (record.body.length !== record.summary.size) {
        throw new WebdfsError('CORRUPT', `record holds ${record.body.length} of ${record.summary.size} bytes`);
      }
      return record.body.subarray(extent.offset, extent.offset + extent.length);
    }
    const { groups } = this.#target;
    const policy: PolicyId = this.#target.policy;
    return readBlocks({ groups, policy, ...(signal && { signal }) }, blockRuns(layout, record.summary.size, extent));
  }

  async remove(bucketName: string, key: Uint8Array, conditions: PutConditions | undefined): Promise<boolean> {
    const bucket = await this.#buckets.find(bucketName);
    const { replaced } = await this.#records.remove(this.place(bucket, key), conditions && { conditions });
    return replaced !== undefined;
  }

  /** Copies bytes, never references: a block belongs to one record. */
  async copy(bucketName: string, key: Uint8Array, options: CopyOptions): Promise<PutResult> {
    const source = await this.copySource(options);
    return await this.put(bucketName, key, source.body, {
      facts: copiedFacts(source.info, options.facts),
      size: source.info.size,
      ...(options.conditions && { conditions: options.conditions }),
      ...(options.signal && { signal: options.signal }),
    });
  }

  /** The source of a copy as a body to be stored. */
  async copySource(
    options: CopyOptions & { range?: Range },
  ): Promise<{ info: ObjectInfo; length: number; body: ByteSource }> {
    const { source, check, range, signal } = options;
    const { info, body, length } = await this.get(source.bucket, source.key, {
      ...(check && { check }),
      ...(range && { range }),
      ...(signal && { signal }),
    });
    return { info, length, body: body instanceof Uint8Array ? body : ownBytes(body) };
  }
}

/** Lent pieces as bytes that the receiver may keep. */
async function* ownBytes(pieces: AsyncIterable<Piece>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    const bytes = piece.bytes.slice();
    piece.release();
    yield bytes;
  }
}

/** The facts of a copy. Checksums stay true for the same bytes, unless they were made of parts that the copy does not have. */
function copiedFacts(source: ObjectInfo, given: ObjectFacts | undefined): ObjectFacts {
  const { headers, user } = given ?? source;
  if (given?.checksums !== undefined) return given;
  if (source.checksums === undefined || source.checksumType === 'COMPOSITE') return { headers, user };
  return { headers, user, checksums: source.checksums, checksumType: source.checksumType ?? 'FULL_OBJECT' };
}
