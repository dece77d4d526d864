import type { Answer } from '../../http/answer.ts';
import { httpDate } from '../../http/dates.ts';
import { headerOfText, isHeaderValue } from '../../http/headers.ts';
import { MAX_PARTS } from '../../http/limits.ts';
import { writeConditions } from '../../objects/conditions.ts';
import { checksumHeaders, factsOf } from '../../objects/facts.ts';
import { readObject } from '../../objects/read.ts';
import { writeObject } from '../../objects/write.ts';
import { Refusal } from '../../refusal.ts';
import { type Call, empty, numberIn, xml } from '../call.ts';
import { checkFeatures, checkObjectFeatures } from '../features.ts';
import { Payload } from '../payload.ts';
import { leaf, node, root } from '../xml-write.ts';
import { removeObject } from './delete-objects.ts';

export async function putObject(call: Call): Promise<Answer> {
  const { exchange, store, bucket, key } = call;
  checkObjectFeatures(exchange.headers);
  const facts = factsOf(exchange.headers);
  const payload = new Payload(exchange, call.signing);
  const result = await writeObject({ exchange, store, bucket, key, facts, payload });
  return empty(200, ['ETag', `"${result.etag}"`, ...checksumHeaders(result)]);
}

const OVERRIDES: Readonly<Record<string, string>> = {
  'response-cache-control': 'cache-control',
  'response-content-disposition': 'content-disposition',
  'response-content-encoding': 'content-encoding',
  'response-content-language': 'content-language',
  'response-content-type': 'content-type',
  'response-expires': 'expires',
};

function overridesOf(call: Call): Readonly<Record<string, string>> | undefined {
  const { query } = call.exchange;
  if (query.size === 0) return undefined;
  const overrides: Record<string, string> = {};
  for (const name of query.names()) {
    const header = OVERRIDES[name];
    if (header === undefined) continue;
    if (call.accessKeyId === undefined) {
      throw new Refusal('InvalidRequest', 'Only a signed request may say which headers it wants.');
    }
    const value = headerOfText(query.get(name) ?? '');
    if (!isHeaderValue(value)) throw new Refusal('InvalidArgument', `${name} cannot stand in a header.`);
    overrides[header] = value;
  }
  return overrides;
}

/** GetObject and HeadObject. */
export async function getObject(call: Call): Promise<Answer> {
  const { exchange, store, bucket, key } = call;
  return await readObject({
    exchange,
    store,
    bucket,
    key,
    partNumber: numberIn(call, 'partNumber', { least: 1, most: MAX_PARTS }),
    overrides: overridesOf(call),
    withChecksums: exchange.headers.get('x-amz-checksum-mode')?.toUpperCase() === 'ENABLED',
  });
}

export async function deleteObject(call: Call): Promise<Answer> {
  const { headers } = call.exchange;
  checkFeatures(headers);
  await removeObject(call, call.key, writeConditions(headers));
  return empty(204);
}

/** GetObjectTagging: no object has tags. Clients that copy objects ask. */
export async function objectTagging(call: Call): Promise<Answer> {
  await call.store.head(call.bucket, call.key);
  return xml(root('Tagging', node('TagSet')));
}

/** GetObjectAttributes, but for the list of parts. */
export async function objectAttributes(call: Call): Promise<Answer> {
  const wanted = new Set(
    (call.exchange.headers.get('x-amz-object-attributes') ?? '').split(',').map((it) => it.trim()),
  );
  if (wanted.has('')) throw new Refusal('InvalidArgument', 'The header x-amz-object-attributes names nothing.');
  const { info } = await call.store.head(call.bucket, call.key);
  const checksums = Object.entries(info.checksums ?? {}).map(([name, value]) =>
    leaf(`Checksum${name.toUpperCase()}`, value),
  );
  const parts: Readonly<Record<string, string>> = {
    ETag: leaf('ETag', info.etag),
    Checksum: checksums.length === 0 ? '' : node('Checksum', ...checksums, leaf('ChecksumType', info.checksumType)),
    ObjectParts: info.parts === 0 ? '' : node('ObjectParts', leaf('PartsCount', info.parts)),
    StorageClass: leaf('StorageClass', 'STANDARD'),
    ObjectSize: leaf('ObjectSize', info.size),
  };
  const chosen = Object.entries(parts).filter(([name]) => wanted.has(name));
  const document = root('GetObjectAttributesResponse', ...chosen.map(([, text]) => text));
  return xml(document, ['Last-Modified', httpDate(info.modifiedMs)]);
}
