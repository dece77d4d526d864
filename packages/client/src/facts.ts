import { fromUtf8, utf8, WebdfsError } from '@webdfs/base';
import { MAX_FACTS_BYTES } from './limits.ts';
import type { ObjectFacts } from './object-store.ts';

/** What a record keeps as JSON beside its bytes: the object's facts, and which upload made it. */
export interface StoredFacts extends ObjectFacts {
  /** 32 hex digits of the multipart upload that made the object. */
  readonly uploadId?: string;
}

interface Json {
  h?: Record<string, string>;
  u?: Record<string, string>;
  c?: Record<string, string>;
  t?: string;
  p?: string;
}

function some(texts: Readonly<Record<string, string>> | undefined): texts is Readonly<Record<string, string>> {
  return texts !== undefined && Object.keys(texts).length > 0;
}

/** Short names, nothing that is empty: every object carries these bytes. @throws TOO_LARGE */
export function packFacts(facts: StoredFacts): string {
  const json: Json = {};
  if (some(facts.headers)) json.h = { ...facts.headers };
  if (some(facts.user)) json.u = { ...facts.user };
  if (some(facts.checksums)) {
    json.c = { ...facts.checksums };
    if (facts.checksumType !== undefined) json.t = facts.checksumType;
  }
  if (facts.uploadId !== undefined) json.p = facts.uploadId;
  const text = JSON.stringify(json);
  // a character has one to three bytes, so most texts need no counting
  if (text.length * 3 > MAX_FACTS_BYTES && utf8(text).length > MAX_FACTS_BYTES) {
    throw new WebdfsError(
      'TOO_LARGE',
      `headers and metadata take ${utf8(text).length} bytes, limit ${MAX_FACTS_BYTES}`,
      {
        details: { what: 'metadata' },
      },
    );
  }
  return text;
}

function texts(value: unknown): Record<string, string> {
  if (value === undefined) return {};
  if (typeof value !== 'object' || value === null || Object.values(value).some((text) => typeof text !== 'string')) {
    throw new WebdfsError('CORRUPT', 'facts of a record are no table of texts');
  }
  return value as Record<string, string>;
}

/** JSON of a record. @throws CORRUPT */
export function parseJson(text: string | Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(typeof text === 'string' ? text : fromUtf8(text));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch (error) {
    throw new WebdfsError('CORRUPT', 'a record holds no JSON', { cause: error });
  }
  throw new WebdfsError('CORRUPT', 'a record holds no JSON object');
}

/** @throws CORRUPT */
export function unpackFacts(text: string): StoredFacts {
  const json = parseJson(text);
  return {
    headers: texts(json['h']),
    user: texts(json['u']),
    ...(json['c'] !== undefined && { checksums: texts(json['c']) }),
    ...(typeof json['t'] === 'string' && { checksumType: json['t'] }),
    ...(typeof json['p'] === 'string' && { uploadId: json['p'] }),
  };
}
