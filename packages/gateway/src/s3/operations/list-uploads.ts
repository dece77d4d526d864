import type { ListOptions, PartInfo, UploadInfo } from '@webdfs/client';
import type { Answer } from '../../http/answer.ts';
import { isoDate } from '../../http/dates.ts';
import { MAX_PARTS } from '../../http/limits.ts';
import { type Call, numberIn, uploadIdOf, xml } from '../call.ts';
import { leaf, node, root } from '../xml-write.ts';
import { bytesIn, limitIn, spellingOf, type Spelling } from './list-objects.ts';

function person(name: string, id: string): string {
  return node(name, leaf('ID', id), leaf('DisplayName', id));
}

function people(owner: string): string {
  return person('Initiator', owner) + person('Owner', owner);
}

function checksumElements(upload: UploadInfo): string {
  return leaf('ChecksumAlgorithm', upload.checksumAlgorithm?.toUpperCase()) + leaf('ChecksumType', upload.checksumType);
}

function partElement(part: PartInfo): string {
  return node(
    'Part',
    leaf('PartNumber', part.number),
    leaf('LastModified', isoDate(part.modifiedMs)),
    leaf('ETag', `"${part.etag}"`),
    leaf('Size', part.size),
    ...Object.entries(part.checksums ?? {}).map(([name, value]) => leaf(`Checksum${name.toUpperCase()}`, value)),
  );
}

export async function listParts(call: Call): Promise<Answer> {
  const { store, bucket, key } = call;
  const uploadId = uploadIdOf(call);
  const limit = limitIn(call, 'max-parts');
  const after = numberIn(call, 'part-number-marker', { least: 0, most: 2_147_483_647 }) ?? 0;
  const { spell, encoding } = spellingOf(call);
  const found = await store.listParts(bucket, key, uploadId, { after: Math.min(after, MAX_PARTS), limit });
  const { owner } = await store.bucket(bucket);
  return xml(
    root(
      'ListPartsResult',
      leaf('Bucket', bucket),
      leaf('EncodingType', encoding),
      leaf('Key', spell(key)),
      leaf('UploadId', uploadId),
      people(owner),
      leaf('StorageClass', 'STANDARD'),
      checksumElements(found.upload),
      leaf('PartNumberMarker', after),
      leaf('NextPartNumberMarker', found.next ?? found.parts.at(-1)?.number ?? 0),
      leaf('MaxParts', limit),
      leaf('IsTruncated', found.next !== undefined),
      ...found.parts.map(partElement),
    ),
  );
}

function uploadElement(upload: UploadInfo, spell: Spelling, owner: string): string {
  return node(
    'Upload',
    leaf('Key', spell(upload.key)),
    leaf('UploadId', upload.uploadId),
    people(owner),
    leaf('StorageClass', 'STANDARD'),
    leaf('Initiated', isoDate(upload.initiatedMs)),
    checksumElements(upload),
  );
}

function uploadOptions(call: Call): ListOptions & { afterUploadId?: string } {
  const prefix = bytesIn(call, 'prefix');
  const delimiter = bytesIn(call, 'delimiter');
  const after = bytesIn(call, 'key-marker');
  const afterUploadId = call.exchange.query.get('upload-id-marker') ?? '';
  return {
    limit: limitIn(call, 'max-uploads'),
    ...(prefix && { prefix }),
    ...(delimiter && { delimiter }),
    ...(after && { after }),
    // without a key it has no meaning
    ...(after && afterUploadId !== '' && { afterUploadId }),
  };
}

export async function listUploads(call: Call): Promise<Answer> {
  const { store, bucket } = call;
  const { spell, encoding } = spellingOf(call);
  const options = uploadOptions(call);
  const { owner } = await store.bucket(bucket);
  const found = await store.listUploads(bucket, options);
  const text = (key: Uint8Array | undefined): string => (key === undefined ? '' : spell(key));
  return xml(
    root(
      'ListMultipartUploadsResult',
      leaf('Bucket', bucket),
      leaf('KeyMarker', text(options.after)),
      leaf('UploadIdMarker', options.afterUploadId ?? ''),
      leaf('NextKeyMarker', text(found.next?.key)),
      leaf('NextUploadIdMarker', found.next?.uploadId ?? ''),
      leaf('Delimiter', options.delimiter && spell(options.delimiter)),
      leaf('Prefix', text(options.prefix)),
      leaf('EncodingType', encoding),
      leaf('MaxUploads', options.limit),
      leaf('IsTruncated', found.next !== undefined),
      ...found.uploads.map((upload) => uploadElement(upload, spell, owner)),
      ...found.prefixes.map((it) => node('CommonPrefixes', leaf('Prefix', spell(it)))),
    ),
  );
}
