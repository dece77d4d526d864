import { createHash } from 'node:crypto';
import { codeOf, EMPTY, toHex, WebdfsError } from '@webdfs/base';
import { MAX_PARTS, type Requirement } from '@webdfs/replica';
import {
  type ChecksumName,
  type ChecksumType,
  defaultType,
  isChecksumName,
  wholeChecksum,
} from './composite-checksums.ts';
import { packFacts } from './facts.ts';
import { noUpload } from './ids.ts';
import { MAX_OBJECT_BYTES, SIDE_BY_SIDE, SWAP_TRIES } from './limits.ts';
import type { Bucket, ObjectFacts, PutConditions, PutResult } from './object-store.ts';
import { type Objects, putResult } from './objects.ts';
import { eachSideBySide } from './side-by-side.ts';
import { checkPartNumber, type PartRecord, type UploadRecord, type UploadRecords } from './upload-records.ts';

/** What a client says when it asks for an upload to become an object. */
export interface Completion {
  readonly parts: readonly { number: number; etag: string; checksums?: Readonly<Record<string, string>> }[];
  readonly conditions?: PutConditions;
  readonly checksums?: Readonly<Record<string, string>>;
  readonly size?: number;
}

export interface CompletionSeams {
  readonly rows: UploadRecords;
  readonly objects: Objects;
  /** Runs the write while the bucket is held. */
  readonly writing: <T>(bucket: Bucket, action: () => Promise<T>) => Promise<T>;
  readonly minPartBytes: number;
}

function invalid(what: string, message: string): WebdfsError {
  return new WebdfsError('INVALID', message, { details: { what } });
}

function noPart(number: number): WebdfsError {
  return new WebdfsError('NOT_FOUND', `part ${number} is not there, or not with that ETag`, {
    details: { what: 'part', number },
  });
}

/** @throws INVALID: `details.what` = parts, part-order or part-number */
function checkOrder({ parts }: Completion): void {
  if (parts.length === 0) throw invalid('parts', 'an upload is made of at least one part');
  if (parts.length > MAX_PARTS) throw invalid('parts', `${parts.length} parts, limit ${MAX_PARTS}`);
  for (const [i, { number }] of parts.entries()) {
    checkPartNumber(number);
    if (i > 0 && number <= parts[i - 1]!.number) throw invalid('part-order', `part ${number} is out of order`);
  }
}

/** The parts named, as they are now. @throws NOT_FOUND, CHECKSUM_MISMATCH */
async function findParts(rows: UploadRecords, upload: UploadRecord, named: Completion['parts']): Promise<PartRecord[]> {
  const found: PartRecord[] = [];
  await eachSideBySide(named.entries(), SIDE_BY_SIDE, async ([i, { number, etag, checksums = {} }]) => {
    const part = await rows.findPart(upload, number);
    if (part === undefined || part.info.etag !== etag) throw noPart(number);
    for (const [name, value] of Object.entries(checksums)) {
      const known = part.info.checksums?.[name];
      if (known !== undefined && known !== value) {
        throw new WebdfsError('CHECKSUM_MISMATCH', `part ${number} has ${name} ${known}, not ${value}`, {
          details: { what: 'part', number },
        });
      }
    }
    found[i] = part;
  });
  return found;
}

/** @throws INVALID, `details.what` = part-too-small or size; TOO_LARGE */
function checkSizes(parts: readonly PartRecord[], minPartBytes: number, expected: number | undefined): number {
  let size = 0;
  for (const [i, { info }] of parts.entries()) {
    if (info.size < minPartBytes && i < parts.length - 1) {
      throw new WebdfsError(
        'INVALID',
        `part ${info.number} has ${info.size} bytes, all but the last need ${minPartBytes}`,
        {
          details: { what: 'part-too-small', number: info.number, size: info.size, minSize: minPartBytes },
        },
      );
    }
    size += info.size;
  }
  if (size > MAX_OBJECT_BYTES) {
    throw new WebdfsError('TOO_LARGE', `object of ${size} bytes, limit ${MAX_OBJECT_BYTES}`, {
      details: { what: 'object' },
    });
  }
  if (expected !== undefined && expected !== size)
    throw invalid('size', `the parts have ${size} bytes, not ${expected}`);
  return size;
}

/** The algorithm and type of the object's checksum: as the upload was begun, else as the client states one now. */
function checksumOf(
  upload: UploadRecord,
  stated: Completion['checksums'],
): { name: ChecksumName; type: ChecksumType } | undefined {
  const name = upload.info.checksumAlgorithm ?? Object.keys(stated ?? {}).find(isChecksumName);
  if (name === undefined || !isChecksumName(name)) return undefined;
  const type = upload.info.checksumType;
  return { name, type: type === 'COMPOSITE' || type === 'FULL_OBJECT' ? type : defaultType(name) };
}

/** The object's checksum, where all parts have one of its algorithm. @throws CHECKSUM_MISMATCH if the client states another */
function wholeFacts(
  upload: UploadRecord,
  parts: readonly PartRecord[],
  stated: Completion['checksums'],
): Partial<ObjectFacts> {
  const wanted = checksumOf(upload, stated);
  if (wanted === undefined) return {};
  const { name, type } = wanted;
  const sums = parts.flatMap(({ info }) => {
    const checksum = info.checksums?.[name];
    return checksum === undefined ? [] : [{ checksum, size: info.size }];
  });
  if (sums.length < parts.length) return {};
  const value = wholeChecksum(name, type, sums);
  const claimed = stated?.[name];
  // a client may leave out the number of parts
  if (claimed !== undefined && claimed !== value && !(type === 'COMPOSITE' && claimed === value.split('-')[0])) {
    throw new WebdfsError('CHECKSUM_MISMATCH', `the object has ${name} ${value}, not ${claimed}`, {
      details: { what: name },
    });
  }
  return { checksums: { [name]: value }, checksumType: type };
}

/** @throws UNSUPPORTED if the size of blocks was changed while the upload was open: a record has one size for all */
function blockBytesOf(parts: readonly PartRecord[]): number {
  const sizes = new Set(parts.map(({ blockBytes }) => blockBytes));
  const [size] = sizes;
  if (sizes.size === 1) return size!;
  throw new WebdfsError(
    'UNSUPPORTED',
    `the parts lie in blocks of ${[...sizes].join(' and ')} bytes: upload them again`,
  );
}

function etagOfParts(parts: readonly PartRecord[]): Uint8Array {
  const whole = createHash('md5');
  for (const { md5 } of parts) whole.update(md5);
  return new Uint8Array(whole.digest());
}

/** The answer of an upload that is complete already, if the object is still the one that it made. */
async function repeated(
  seams: CompletionSeams,
  bucket: Bucket,
  upload: { key: Uint8Array; uploadId: string },
): Promise<PutResult> {
  const found = await seams.objects.find(bucket, upload.key);
  if (found?.facts.uploadId !== upload.uploadId) throw noUpload(upload.uploadId);
  const { etag, size, modifiedMs } = found.info;
  return putResult(etag, size, modifiedMs, found.facts);
}

/** One write: names the parts' blocks, and closes the upload. @throws CONFLICT if a row has changed since it was read */
async function commit(
  seams: CompletionSeams,
  bucket: Bucket,
  object: { upload: UploadRecord; parts: readonly PartRecord[]; completion: Completion },
): Promise<PutResult> {
  const { upload, parts, completion } = object;
  const size = checkSizes(parts, seams.minPartBytes, completion.size);
  const facts: ObjectFacts = { ...upload.facts, ...wholeFacts(upload, parts, completion.checksums) };
  const etag = etagOfParts(parts);
  const content = {
    summary: { size, etag, parts: parts.length, flags: 0 },
    layout: {
      type: 'parts' as const,
      parts: parts.map(({ info, attempt }) => ({ number: info.number, attempt, size: info.size })),
      blockBytes: blockBytesOf(parts),
    },
    facts: packFacts({ ...facts, uploadId: upload.info.uploadId }),
    inline: EMPTY,
  };
  const requires: Requirement[] = [upload, ...parts].map(({ row, sequence }) => ({ key: row.key, sequence }));
  const { modifiedMs } = await seams.writing(bucket, () =>
    seams.rows.records.put(upload.place, content, {
      requires,
      closes: upload.row.key,
      ...(completion.conditions && { conditions: completion.conditions }),
    }),
  );
  return putResult(`${toHex(etag)}-${parts.length}`, size, modifiedMs, facts);
}

/**
 * Makes the object out of an upload's parts, in one write; asked again, it answers the same. Parts that were not named are
 * garbage afterwards.
 *
 * @throws NOT_FOUND (upload, part), INVALID (order, sizes), CHECKSUM_MISMATCH, PRECONDITION_FAILED, TOO_LARGE; BUSY if the
 *   parts change all the time
 */
export async function completeUpload(
  seams: CompletionSeams,
  bucket: Bucket,
  { key, uploadId, completion }: { key: Uint8Array; uploadId: string; completion: Completion },
): Promise<PutResult> {
  checkOrder(completion);
  for (let tries = 0; tries < SWAP_TRIES; tries++) {
    const upload = await seams.rows.find(bucket, key, uploadId);
    if (upload === undefined) return await repeated(seams, bucket, { key, uploadId });
    try {
      const parts = await findParts(seams.rows, upload, completion.parts);
      return await commit(seams, bucket, { upload, parts, completion });
    } catch (error) {
      if (codeOf(error) === 'CONFLICT') continue;
      // parts go when another request completes the upload meanwhile
      const lost = codeOf(error) === 'NOT_FOUND' && (await seams.rows.find(bucket, key, uploadId)) === undefined;
      if (!lost) throw error;
    }
  }
  throw new WebdfsError('BUSY', 'the parts of the upload are being replaced', { retryAfterMs: 100 });
}
