import { utf8 } from '@webdfs/base';
import type { ListedObject, Listing, ListOptions } from '@webdfs/client';
import type { Answer } from '../../http/answer.ts';
import { isoDate } from '../../http/dates.ts';
import { encodePercent } from '../../http/percent.ts';
import { MAX_KEY_BYTES, MAX_PAGE } from '../../http/limits.ts';
import { Refusal } from '../../refusal.ts';
import { type Call, numberIn, xml } from '../call.ts';
import { leaf, node, root } from '../xml-write.ts';

/** How keys are written in a listing: as they are, or encoded because the client asked. */
export type Spelling = (key: Uint8Array) => string;

export function spellingOf(call: Call): { spell: Spelling; encoding: string | undefined } {
  const encoding = call.exchange.query.get('encoding-type');
  if (encoding === undefined || encoding === '') {
    return {
      spell: (key) => Buffer.from(key.buffer, key.byteOffset, key.length).toString('utf8'),
      encoding: undefined,
    };
  }
  if (encoding !== 'url') throw new Refusal('InvalidArgument', 'The only encoding-type is url.');
  return { spell: (key) => encodePercent(key, true), encoding };
}

/** A text of the query as bytes; undefined if it is absent or empty. */
export function bytesIn(call: Call, name: string): Uint8Array | undefined {
  const text = call.exchange.query.get(name);
  if (text === undefined || text === '') return undefined;
  const bytes = utf8(text);
  if (bytes.length > MAX_KEY_BYTES) throw new Refusal('InvalidArgument', `${name} is longer than any key.`);
  return bytes;
}

/** `max-…`: more than `MAX_PAGE` means `MAX_PAGE`. */
export function limitIn(call: Call, name: string): number {
  return Math.min(numberIn(call, name, { least: 0, most: 2_147_483_647 }) ?? MAX_PAGE, MAX_PAGE);
}

interface Page {
  readonly listing: Listing;
  readonly limit: number;
  readonly prefix: Uint8Array | undefined;
  readonly delimiter: Uint8Array | undefined;
}

const NOTHING: Listing = { objects: [], prefixes: [], next: undefined };

async function pageOf(call: Call, after: Uint8Array | undefined): Promise<Page> {
  const prefix = bytesIn(call, 'prefix');
  const delimiter = bytesIn(call, 'delimiter');
  const limit = limitIn(call, 'max-keys');
  const options: ListOptions = {
    limit,
    ...(prefix && { prefix }),
    ...(delimiter && { delimiter }),
    ...(after && { after }),
  };
  if (limit > 0) return { listing: await call.store.list(call.bucket, options), limit, prefix, delimiter };
  await call.store.bucket(call.bucket);
  return { listing: NOTHING, limit, prefix, delimiter };
}

function spelled(spell: Spelling, bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '' : spell(bytes);
}

function contentsOf(object: ListedObject, spell: Spelling, owner: string): string {
  return (
    `<Contents>${leaf('Key', spell(object.key))}<LastModified>${isoDate(object.modifiedMs)}</LastModified>` +
    `<ETag>&quot;${object.etag}&quot;</ETag><Size>${object.size}</Size>${owner}` +
    '<StorageClass>STANDARD</StorageClass></Contents>'
  );
}

function commonPrefixes(prefixes: readonly Uint8Array[], spell: Spelling): string {
  return prefixes.map((prefix) => node('CommonPrefixes', leaf('Prefix', spell(prefix)))).join('');
}

async function ownerOf(call: Call): Promise<string> {
  const { owner } = await call.store.bucket(call.bucket);
  return node('Owner', leaf('ID', owner), leaf('DisplayName', owner));
}

/** ListObjects, the first version. */
export async function listObjects(call: Call): Promise<Answer> {
  const { spell, encoding } = spellingOf(call);
  const marker = bytesIn(call, 'marker');
  const { listing, limit, prefix, delimiter } = await pageOf(call, marker);
  const owner = await ownerOf(call);
  return xml(
    root(
      'ListBucketResult',
      leaf('Name', call.bucket),
      leaf('Prefix', spelled(spell, prefix)),
      leaf('Marker', spelled(spell, marker)),
      leaf('NextMarker', listing.next && spell(listing.next)),
      leaf('MaxKeys', limit),
      leaf('Delimiter', delimiter && spell(delimiter)),
      leaf('EncodingType', encoding),
      leaf('IsTruncated', listing.next !== undefined),
      ...listing.objects.map((object) => contentsOf(object, spell, owner)),
      commonPrefixes(listing.prefixes, spell),
    ),
  );
}

/** ListObjectsV2. */
export async function listObjectsV2(call: Call): Promise<Answer> {
  const { query } = call.exchange;
  const { spell, encoding } = spellingOf(call);
  const token = query.get('continuation-token');
  const startAfter = bytesIn(call, 'start-after');
  const { listing, limit, prefix, delimiter } = await pageOf(call, token === undefined ? startAfter : keyIn(token));
  const owner = query.get('fetch-owner') === 'true' ? await ownerOf(call) : '';
  return xml(
    root(
      'ListBucketResult',
      leaf('Name', call.bucket),
      leaf('Prefix', spelled(spell, prefix)),
      leaf('StartAfter', startAfter && spell(startAfter)),
      leaf('ContinuationToken', token),
      leaf('NextContinuationToken', listing.next && tokenOf(listing.next)),
      leaf('KeyCount', listing.objects.length + listing.prefixes.length),
      leaf('MaxKeys', limit),
      leaf('Delimiter', delimiter && spell(delimiter)),
      leaf('EncodingType', encoding),
      leaf('IsTruncated', listing.next !== undefined),
      ...listing.objects.map((object) => contentsOf(object, spell, owner)),
      commonPrefixes(listing.prefixes, spell),
    ),
  );
}

/** The first character of a token: what its form is. */
const TOKEN_FORM = '1';

/** A continuation token: opaque to clients, the last key or prefix given to us. */
export function tokenOf(key: Uint8Array): string {
  return TOKEN_FORM + Buffer.from(key).toString('base64url');
}

/** @throws Refusal InvalidArgument if `tokenOf` never made it */
export function keyIn(token: string): Uint8Array {
  const bytes = new Uint8Array(Buffer.from(token.slice(1), 'base64url'));
  if (bytes.length === 0 || bytes.length > MAX_KEY_BYTES || tokenOf(bytes) !== token) {
    throw new Refusal('InvalidArgument', 'The continuation token is not one that was given.');
  }
  return bytes;
}

/** ListObjectVersions of a bucket without versions: each object is its only one, called `null`. */
export async function listVersions(call: Call): Promise<Answer> {
  const { spell, encoding } = spellingOf(call);
  const marker = bytesIn(call, 'key-marker');
  const { listing, limit, prefix, delimiter } = await pageOf(call, marker);
  const owner = await ownerOf(call);
  return xml(
    root(
      'ListVersionsResult',
      leaf('Name', call.bucket),
      leaf('Prefix', spelled(spell, prefix)),
      leaf('KeyMarker', spelled(spell, marker)),
      leaf('VersionIdMarker', ''),
      leaf('NextKeyMarker', listing.next && spell(listing.next)),
      leaf('NextVersionIdMarker', listing.next && 'null'),
      leaf('MaxKeys', limit),
      leaf('Delimiter', delimiter && spell(delimiter)),
      leaf('EncodingType', encoding),
      leaf('IsTruncated', listing.next !== undefined),
      ...listing.objects.map((object) =>
        node(
          'Version',
          leaf('Key', spell(object.key)),
          leaf('VersionId', 'null'),
          leaf('IsLatest', true),
          leaf('LastModified', isoDate(object.modifiedMs)),
          leaf('ETag', `"${object.etag}"`),
          leaf('Size', object.size),
          owner,
          leaf('StorageClass', 'STANDARD'),
        ),
      ),
      commonPrefixes(listing.prefixes, spell),
    ),
  );
}
