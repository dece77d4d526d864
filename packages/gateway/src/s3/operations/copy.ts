import { equalBytes, utf8 } from '@webdfs/base';
import type { CopyOptions, PutResult } from '@webdfs/client';
import { type Answer, SlowBody } from '../../http/answer.ts';
import { isoDate } from '../../http/dates.ts';
import { decodePercent } from '../../http/percent.ts';
import { addressOf } from '../../http/target.ts';
import { MAX_PARTS } from '../../http/limits.ts';
import { checkSource, readConditions, writeConditions } from '../../objects/conditions.ts';
import { factsOf } from '../../objects/facts.ts';
import { parseCopyRange } from '../../objects/range.ts';
import { checkKey } from '../../objects/write.ts';
import { Refusal } from '../../refusal.ts';
import { type Call, numberIn, uploadIdOf, XML_HEADERS } from '../call.ts';
import { checkObjectFeatures } from '../features.ts';
import { leaf, root } from '../xml-write.ts';

/** The object that `x-amz-copy-source` names: `[/]bucket/key[?versionId=null]`, encoded. */
function copySource(header: string): CopyOptions['source'] {
  const [name = '', version] = header.split('?versionId=', 2);
  if (version !== undefined && version !== 'null') throw new Refusal('NoSuchVersion');
  // clients send it encoded or as it is: where it is no valid encoding it is taken as it is
  const raw = Buffer.from(name, 'latin1');
  const bytes = (/^[\x21-\x7e]*$/.test(name) ? decodePercent(name, false) : undefined) ?? raw;
  const path = bytes[0] === 0x2f ? bytes : Buffer.concat([utf8('/'), bytes]);
  const source = addressOf({ canonical: '', bytes: path }, undefined);
  if (source.bucket === '' || source.key.length === 0) {
    throw new Refusal('InvalidArgument', 'x-amz-copy-source is not /bucket/key.');
  }
  return source;
}

function copyOptions(call: Call): CopyOptions {
  const { headers, signal } = call.exchange;
  const conditions = readConditions(headers, 'x-amz-copy-source-');
  return {
    source: copySource(headers.get('x-amz-copy-source') ?? ''),
    check: (info) => checkSource(conditions, info),
    signal,
  };
}

function resultOf(name: string, result: PutResult): string {
  const checksums = Object.entries(result.checksums ?? {});
  return root(
    name,
    leaf('LastModified', isoDate(result.modifiedMs)),
    leaf('ETag', `"${result.etag}"`),
    ...checksums.map(([algorithm, value]) => leaf(`Checksum${algorithm.toUpperCase()}`, value)),
    leaf('ChecksumType', checksums.length === 0 ? undefined : result.checksumType),
  );
}

/** CopyObject. An object copied onto itself must change its metadata. */
export async function copyObject(call: Call): Promise<Answer> {
  const { exchange, store, bucket, key } = call;
  const { headers } = exchange;
  checkKey(key);
  checkObjectFeatures(headers);
  const directive = headers.get('x-amz-metadata-directive') ?? 'COPY';
  if (directive !== 'COPY' && directive !== 'REPLACE') {
    throw new Refusal('InvalidArgument', 'x-amz-metadata-directive is COPY or REPLACE.');
  }
  const options = copyOptions(call);
  const { source } = options;
  if (directive === 'COPY' && source.bucket === bucket && equalBytes(source.key, key)) {
    throw new Refusal('InvalidRequest', 'An object copied onto itself must replace its metadata.');
  }
  const conditions = writeConditions(headers);
  const work = store.copy(bucket, key, {
    ...options,
    ...(directive === 'REPLACE' && { facts: factsOf(headers) }),
    ...(conditions && { conditions }),
  });
  const document = work.then((result) => resultOf('CopyObjectResult', result));
  return { status: 200, headers: XML_HEADERS, body: new SlowBody(document) };
}

/** UploadPartCopy. */
export async function copyPart(call: Call): Promise<Answer> {
  const { exchange, store, bucket, key } = call;
  const uploadId = uploadIdOf(call);
  const number = numberIn(call, 'partNumber', { least: 1, most: MAX_PARTS });
  if (number === undefined) throw new Refusal('InvalidArgument', 'partNumber is missing.');
  const header = exchange.headers.get('x-amz-copy-source-range');
  const range = header === undefined ? undefined : parseCopyRange(header);
  if (header !== undefined && range === undefined) {
    throw new Refusal('InvalidArgument', 'x-amz-copy-source-range is not bytes=first-last.');
  }
  const work = store.copyPart(bucket, key, { uploadId, number }, { ...copyOptions(call), ...(range && { range }) });
  const document = work.then((result) => resultOf('CopyPartResult', result));
  return { status: 200, headers: XML_HEADERS, body: new SlowBody(document) };
}
