import type { ObjectFacts, ObjectInfo } from '@webdfs/client';
import { httpDate } from '../http/dates.ts';
import type { Headers } from '../http/headers.ts';
import { MAX_USER_METADATA } from '../http/limits.ts';
import { Refusal } from '../refusal.ts';

/** Headers that are kept with an object and given back, and how they are spelled then. */
const KEPT: Readonly<Record<string, string>> = {
  'cache-control': 'Cache-Control',
  'content-disposition': 'Content-Disposition',
  'content-encoding': 'Content-Encoding',
  'content-language': 'Content-Language',
  'content-type': 'Content-Type',
  expires: 'Expires',
};

const USER_PREFIX = 'x-amz-meta-';
/** What S3 says of an object that came without a type. */
const DEFAULT_TYPE = 'binary/octet-stream';

/** `aws-chunked` is how the body travels, not how the object is encoded. */
function contentEncoding(value: string): string {
  const codings = value.split(',').map((coding) => coding.trim());
  const kept = codings.filter((coding) => coding.toLowerCase() !== 'aws-chunked');
  return kept.length === codings.length ? value : kept.filter((coding) => coding !== '').join(', ');
}

/**
 * What a request says about the object that it stores. Values are kept as they came, one character for each byte: what is no
 * UTF-8 comes back the same too.
 *
 * @throws Refusal MetadataTooLarge beyond `MAX_USER_METADATA` bytes of names and values
 */
export function factsOf(request: Headers): ObjectFacts {
  const headers: Record<string, string> = { 'content-type': DEFAULT_TYPE };
  const user: Record<string, string> = {};
  let userBytes = 0;
  for (const [name, value] of request) {
    if (name.startsWith(USER_PREFIX) && name.length > USER_PREFIX.length) {
      userBytes += name.length - USER_PREFIX.length + value.length;
      user[name.slice(USER_PREFIX.length)] = value;
    } else if (KEPT[name] !== undefined) {
      const kept = name === 'content-encoding' ? contentEncoding(value) : value;
      if (kept !== '') headers[name] = kept;
    }
  }
  if (userBytes > MAX_USER_METADATA) {
    const fields = { Size: String(userBytes), MaxSizeAllowed: String(MAX_USER_METADATA) };
    throw new Refusal('MetadataTooLarge', undefined, { fields });
  }
  return { headers, user };
}

/** The headers of an answer about an object, flat. `overrides` replace kept ones; header values, like those. */
export function headersOf(info: ObjectInfo, overrides?: Readonly<Record<string, string>>): string[] {
  const flat = ['ETag', `"${info.etag}"`, 'Last-Modified', httpDate(info.modifiedMs), 'Accept-Ranges', 'bytes'];
  const kept = overrides === undefined ? info.headers : { ...info.headers, ...overrides };
  for (const name in kept) {
    const spelled = KEPT[name];
    if (spelled !== undefined) flat.push(spelled, kept[name]!);
  }
  for (const name in info.user) flat.push(USER_PREFIX + name, info.user[name]!);
  return flat;
}

/** `x-amz-checksum-…` of what was stored. */
export function checksumHeaders(facts: { checksums?: ObjectFacts['checksums']; checksumType?: string }): string[] {
  const flat: string[] = [];
  for (const [algorithm, value] of Object.entries(facts.checksums ?? {})) {
    flat.push(`x-amz-checksum-${algorithm}`, value);
  }
  if (flat.length > 0 && facts.checksumType !== undefined) flat.push('x-amz-checksum-type', facts.checksumType);
  return flat;
}
