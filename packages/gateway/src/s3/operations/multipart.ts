import type { PutResult } from '@webdfs/client';
import { type Answer, SlowBody } from '../../http/answer.ts';
import type { Headers } from '../../http/headers.ts';
import { MAX_PARTS } from '../../http/limits.ts';
import { parseEtags, writeConditions } from '../../objects/conditions.ts';
import { checksumHeaders, factsOf } from '../../objects/facts.ts';
import { checkKey } from '../../objects/write.ts';
import { Refusal } from '../../refusal.ts';
import { type Call, empty, hasBody, numberIn, readDocument, uploadIdOf, xml, XML_HEADERS } from '../call.ts';
import { asAlgorithm, CHECKSUM_ALGORITHMS, type ChecksumAlgorithm, isChecksum } from '../checksums.ts';
import { checkObjectFeatures } from '../features.ts';
import { Payload } from '../payload.ts';
import { childrenOf, textOf, type XmlNode } from '../xml-read.ts';
import { leaf, root } from '../xml-write.ts';

/** Which checksums S3 can make over parts, over the whole, or both. */
const TYPES: Readonly<Record<ChecksumAlgorithm, readonly string[]>> = {
  crc32: ['COMPOSITE', 'FULL_OBJECT'],
  crc32c: ['COMPOSITE', 'FULL_OBJECT'],
  crc64nvme: ['FULL_OBJECT'],
  sha1: ['COMPOSITE'],
  sha256: ['COMPOSITE'],
};

function checksumOf(headers: Headers): { checksumAlgorithm: string; checksumType: string } | undefined {
  const name = headers.get('x-amz-checksum-algorithm');
  const type = headers.get('x-amz-checksum-type');
  if (name === undefined) {
    if (type !== undefined) throw new Refusal('InvalidRequest', 'x-amz-checksum-type needs x-amz-checksum-algorithm.');
    return undefined;
  }
  const checksumAlgorithm = asAlgorithm(name);
  if (checksumAlgorithm === undefined) throw new Refusal('InvalidRequest', 'x-amz-checksum-algorithm is not known.');
  const possible = TYPES[checksumAlgorithm];
  const checksumType = type ?? possible[0]!;
  if (!possible.includes(checksumType)) {
    throw new Refusal('InvalidRequest', `The checksum ${checksumAlgorithm} has no type ${checksumType.slice(0, 32)}.`);
  }
  return { checksumAlgorithm, checksumType };
}

export async function createUpload(call: Call): Promise<Answer> {
  const { exchange, store, bucket, key } = call;
  checkKey(key);
  checkObjectFeatures(exchange.headers);
  const checksum = checksumOf(exchange.headers);
  const upload = await store.createUpload(bucket, key, { facts: factsOf(exchange.headers), ...checksum });
  const headers = checksum && [
    'x-amz-checksum-algorithm',
    checksum.checksumAlgorithm.toUpperCase(),
    'x-amz-checksum-type',
    checksum.checksumType,
  ];
  const document = root(
    'InitiateMultipartUploadResult',
    leaf('Bucket', bucket),
    leaf('Key', Buffer.from(key).toString('utf8')),
    leaf('UploadId', upload.uploadId),
  );
  return xml(document, headers);
}

export async function uploadPart(call: Call): Promise<Answer> {
  const { exchange, store, bucket, key } = call;
  const uploadId = uploadIdOf(call);
  const number = numberIn(call, 'partNumber', { least: 1, most: MAX_PARTS });
  if (number === undefined) throw new Refusal('InvalidArgument', 'partNumber is missing.');
  const payload = new Payload(exchange, call.signing);
  if (exchange.waitsForContinue) await store.listParts(bucket, key, uploadId, { after: 0, limit: 1 });
  const { signal } = exchange;
  const options = { size: payload.size, verify: payload.verify, signal };
  const result = await store.putPart(bucket, key, { uploadId, number }, await payload.source(), options);
  // of a part only the checksum itself is answered, not its type
  return empty(200, ['ETag', `"${result.etag}"`, ...checksumHeaders({ ...(result.checksums && result) }).slice(0, 2)]);
}

interface NamedPart {
  readonly number: number;
  readonly etag: string;
  readonly checksums?: Readonly<Record<string, string>>;
}

function partOf(node: XmlNode): NamedPart {
  const number = textOf(node, 'PartNumber')?.trim() ?? '';
  const etag = parseEtags(textOf(node, 'ETag') ?? '')[0];
  if (!/^\d{1,5}$/.test(number) || etag === undefined) {
    throw new Refusal('MalformedXML', 'A part has no number or no ETag.');
  }
  if (Number(number) < 1 || Number(number) > MAX_PARTS) {
    throw new Refusal('InvalidArgument', `A part number is from 1 to ${MAX_PARTS}.`);
  }
  const checksums: Record<string, string> = {};
  for (const algorithm of CHECKSUM_ALGORITHMS) {
    const value = textOf(node, `Checksum${algorithm.toUpperCase()}`);
    if (value === undefined) continue;
    if (!isChecksum(algorithm, value)) throw new Refusal('InvalidPart', 'The checksum of a part is not one.');
    checksums[algorithm] = value;
  }
  return { number: Number(number), etag, ...(Object.keys(checksums).length > 0 && { checksums }) };
}

/** The parts that make the object. @throws Refusal MalformedXML, InvalidPartOrder */
function partsIn(document: XmlNode): NamedPart[] {
  const parts = childrenOf(document, 'Part').map(partOf);
  if (parts.length === 0 || parts.length > MAX_PARTS) {
    throw new Refusal('MalformedXML', `An object is made of 1 to ${MAX_PARTS} parts.`);
  }
  for (const [index, part] of parts.entries()) {
    if (index > 0 && part.number <= parts[index - 1]!.number) throw new Refusal('InvalidPartOrder');
  }
  return parts;
}

/** The whole object's checksum as the client has it: not a composite one, which the parts prove. */
function wholeChecksums(headers: Headers): Readonly<Record<string, string>> | undefined {
  const checksums: Record<string, string> = {};
  for (const algorithm of CHECKSUM_ALGORITHMS) {
    const value = headers.get(`x-amz-checksum-${algorithm}`);
    if (value === undefined) continue;
    if (!isChecksum(algorithm, value.replace(/-\d+$/, ''))) {
      throw new Refusal('InvalidRequest', `The value of x-amz-checksum-${algorithm} is not a checksum.`);
    }
    checksums[algorithm] = value;
  }
  return Object.keys(checksums).length === 0 ? undefined : checksums;
}

/** CompleteMultipartUpload. The headers' checksum is the object's, so the document's own is not looked for. */
export async function completeUpload(call: Call): Promise<Answer> {
  const { exchange, store, bucket, key } = call;
  const { headers } = exchange;
  const uploadId = uploadIdOf(call);
  const checksums = wholeChecksums(headers);
  const conditions = writeConditions(headers);
  const sizeText = headers.get('x-amz-mp-object-size');
  if (sizeText !== undefined && !/^\d{1,15}$/.test(sizeText)) {
    throw new Refusal('InvalidRequest', 'x-amz-mp-object-size is not a size.');
  }
  if (!hasBody(call)) throw new Refusal('MalformedXML', 'The request names no parts.');
  const parts = partsIn(await readDocument(call, 'CompleteMultipartUpload', { digest: 'object' }));
  const work = store.completeUpload(bucket, key, uploadId, {
    parts,
    ...(conditions && { conditions }),
    ...(checksums && { checksums }),
    ...(sizeText !== undefined && { size: Number(sizeText) }),
  });
  const document = work.then((result) => completed(call, result));
  return { status: 200, headers: XML_HEADERS, body: new SlowBody(document) };
}

function completed(call: Call, result: PutResult): string {
  const checksums = Object.entries(result.checksums ?? {});
  const key = Buffer.from(call.key).toString('utf8');
  return root(
    'CompleteMultipartUploadResult',
    leaf('Location', `http://${call.exchange.host}/${call.bucket}/${key}`),
    leaf('Bucket', call.bucket),
    leaf('Key', key),
    leaf('ETag', `"${result.etag}"`),
    ...checksums.map(([algorithm, value]) => leaf(`Checksum${algorithm.toUpperCase()}`, value)),
    leaf('ChecksumType', checksums.length === 0 ? undefined : result.checksumType),
  );
}

export async function abortUpload(call: Call): Promise<Answer> {
  await call.store.abortUpload(call.bucket, call.key, uploadIdOf(call));
  return empty(204);
}
