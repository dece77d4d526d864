import { EMPTY, type Sequence, toHex, WebdfsError } from '@webdfs/base';
import type { Layout } from '@webdfs/replica';
import { packFacts, parseJson, unpackFacts } from './facts.ts';
import { noUpload, parseUploadId } from './ids.ts';
import { bucketOf, checkUploadKey, keyOf, objectKey, partRow, uploadRow } from './keyspace.ts';
import { MAX_PART_NUMBER } from './limits.ts';
import type { Bucket, ObjectFacts, PartInfo, UploadInfo } from './object-store.ts';
import type { Place, RecordContent, RecordStore, StoredRecord } from './record-store.ts';

type BlockLayout = Extract<Layout, { type: 'blocks' }>;

/** An open upload, with the version of its row. */
export interface UploadRecord {
  readonly info: UploadInfo;
  readonly id: Uint8Array;
  readonly facts: ObjectFacts;
  readonly sequence: Sequence;
  /** Of the object that it will make. */
  readonly place: Place;
  readonly row: Place;
}

/** A part that has come, with the version of its row. */
export interface PartRecord {
  readonly info: PartInfo;
  readonly attempt: Uint8Array;
  readonly blockBytes: number;
  readonly md5: Uint8Array;
  readonly sequence: Sequence;
  readonly row: Place;
}

/** What a new upload says of itself. */
export interface UploadStart {
  readonly facts: ObjectFacts;
  readonly checksumAlgorithm?: string;
  readonly checksumType?: string;
}

const NO_ETAG = new Uint8Array(16);

/** @throws INVALID */
export function checkPartNumber(number: number): void {
  if (Number.isInteger(number) && number >= 1 && number <= MAX_PART_NUMBER) return;
  throw new WebdfsError('INVALID', `part numbers are 1 to ${MAX_PART_NUMBER}, not ${number}`, {
    details: { what: 'part-number' },
  });
}

/**
 * The rows of uploads and parts, in the group of the object's key. A part's row names its blocks by its layout, as any record
 * does, so that they are not taken for garbage while the upload is open, and a late row of blocks that were given up is
 * refused. When the object is made the row goes and the blocks stay: the object names them then.
 */
export class UploadRecords {
  readonly records: RecordStore;

  constructor(records: RecordStore) {
    this.records = records;
  }

  /** Where an upload's rows are. @throws INVALID, TOO_LARGE for the key; NOT_FOUND if `uploadId` cannot be one */
  locate(bucket: Bucket, key: Uint8Array, uploadId: string): { id: Uint8Array; place: Place; row: Place } {
    checkUploadKey(key);
    const id = parseUploadId(uploadId);
    if (id === undefined) throw noUpload(uploadId);
    const place = this.records.place(objectKey(bucket.id, key));
    return { id, place, row: this.records.beside(place, uploadRow(bucket.id, key, id)) };
  }

  async create(bucket: Bucket, key: Uint8Array, upload: { uploadId: string; start: UploadStart }): Promise<UploadInfo> {
    const { uploadId, start } = upload;
    const { row } = this.locate(bucket, key, uploadId);
    const { facts, checksumAlgorithm, checksumType } = start;
    const { modifiedMs } = await this.records.put(
      row,
      rowContent(0, NO_ETAG, { f: parseJson(packFacts(facts)), a: checksumAlgorithm, t: checksumType }),
    );
    return uploadInfo({ key, uploadId, initiatedMs: modifiedMs }, start);
  }

  /** The open upload, undefined if it is closed or never was. @throws NOT_FOUND if `uploadId` cannot be one */
  async find(bucket: Bucket, key: Uint8Array, uploadId: string): Promise<UploadRecord | undefined> {
    const { id, place, row } = this.locate(bucket, key, uploadId);
    const record = await this.records.read(row);
    if (record === undefined) return undefined;
    const { facts, start } = parseUpload(record);
    const info = uploadInfo({ key, uploadId, initiatedMs: record.modifiedMs }, start);
    return { info, id, facts, sequence: record.sequence, place, row };
  }

  async require(bucket: Bucket, key: Uint8Array, uploadId: string): Promise<UploadRecord> {
    const upload = await this.find(bucket, key, uploadId);
    if (upload === undefined) throw noUpload(uploadId);
    return upload;
  }

  partPlace(upload: Pick<UploadRecord, 'id' | 'place'>, number: number): Place {
    const { key } = upload.place;
    return this.records.beside(upload.place, partRow(bucketOf(key), keyOf(key), { uploadId: upload.id, number }));
  }

  /** @throws CONFLICT if the upload is closed by now */
  async putPart(
    upload: UploadRecord,
    number: number,
    part: { layout: BlockLayout; size: number; md5: Uint8Array; checksums: ObjectFacts['checksums'] },
  ): Promise<{ modifiedMs: number }> {
    // named by its layout as any record names its blocks: else they would be taken for garbage
    const content = { ...rowContent(part.size, part.md5, { c: part.checksums }), layout: part.layout };
    return await this.records.put(this.partPlace(upload, number), content, {
      requires: [{ key: upload.row.key, sequence: -1 }],
    });
  }

  async findPart(upload: Pick<UploadRecord, 'id' | 'place'>, number: number): Promise<PartRecord | undefined> {
    const row = this.partPlace(upload, number);
    const record = await this.records.read(row);
    if (record === undefined) return undefined;
    const { layout, checksums } = parsePart(record);
    const { size, etag } = record.summary;
    return {
      info: { number, size, etag: toHex(etag), modifiedMs: record.modifiedMs, ...(checksums && { checksums }) },
      attempt: layout.attempt,
      blockBytes: layout.blockBytes,
      md5: etag,
      sequence: record.sequence,
      row,
    };
  }
}

function rowContent(size: number, etag: Uint8Array, facts: object): RecordContent {
  return {
    summary: { size, etag, parts: 0, flags: 0 },
    layout: { type: 'inline' },
    facts: JSON.stringify(facts),
    inline: EMPTY,
  };
}

function uploadInfo(
  upload: { key: Uint8Array; uploadId: string; initiatedMs: number },
  { checksumAlgorithm, checksumType }: Pick<UploadStart, 'checksumAlgorithm' | 'checksumType'>,
): UploadInfo {
  return {
    ...upload,
    ...(checksumAlgorithm !== undefined && { checksumAlgorithm }),
    ...(checksumType !== undefined && { checksumType }),
  };
}

/** @throws CORRUPT */
function parseUpload({ facts }: Pick<StoredRecord, 'facts'>): {
  facts: ObjectFacts;
  start: Omit<UploadStart, 'facts'>;
} {
  const json = parseJson(facts);
  if (json['f'] === undefined) throw new WebdfsError('CORRUPT', 'the row of an upload has no facts');
  return {
    facts: unpackFacts(JSON.stringify(json['f'])),
    start: {
      ...(typeof json['a'] === 'string' && { checksumAlgorithm: json['a'] }),
      ...(typeof json['t'] === 'string' && { checksumType: json['t'] }),
    },
  };
}

function parsePart({ facts, layout }: StoredRecord): { layout: BlockLayout; checksums: ObjectFacts['checksums'] } {
  if (layout.type !== 'blocks') throw new WebdfsError('CORRUPT', 'the row of a part names no blocks');
  const { checksums } = unpackFacts(JSON.stringify({ c: parseJson(facts)['c'] }));
  return { layout, checksums };
}
