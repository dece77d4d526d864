import { createHmac, hash } from 'node:crypto';

/**
 * Signature V4 as arithmetic: strings in, hex digits out. Verifying and signing both rest on it.
 * Source: "AWS Signature Version 4 for API requests", Amazon S3 API reference.
 */

export const ALGORITHM = 'AWS4-HMAC-SHA256';
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';
/** SHA-256 of no bytes. */
export const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** Whose signature, for which day, region and service. */
export interface Scope {
  readonly accessKeyId: string;
  /** `20250701`. */
  readonly day: string;
  readonly region: string;
  readonly service: string;
}

/** `20250701/us-east-1/s3/aws4_request`. */
export function scopeText(scope: Scope): string {
  return `${scope.day}/${scope.region}/${scope.service}/aws4_request`;
}

export interface CanonicalParts {
  readonly method: string;
  /** Canonical, see `decodePath`. */
  readonly path: string;
  /** Canonical, see `Query.canonical`. */
  readonly query: string;
  /** Names in lower case, in the order they are signed. */
  readonly signed: readonly string[];
  /** The value of a signed header, Latin-1; empty if it is absent. */
  readonly header: (name: string) => string;
  /** What stands for the body: its SHA-256 in hex, or a word. */
  readonly payload: string;
}

const EDGE_OR_DOUBLE_SPACE = /^[ \t]|[ \t]$|[ \t]{2}|\t/;

/** Trims, and makes one space of several. */
function squeeze(value: string): string {
  return EDGE_OR_DOUBLE_SPACE.test(value) ? value.trim().replace(/[ \t]+/g, ' ') : value;
}

export function canonicalRequest(parts: CanonicalParts): string {
  let text = `${parts.method}\n${parts.path}\n${parts.query}\n`;
  for (const name of parts.signed) text += `${name}:${squeeze(parts.header(name))}\n`;
  return `${text}\n${parts.signed.join(';')}\n${parts.payload}`;
}

const NOT_ASCII = /[^\0-\x7f]/;

/** SHA-256 of a text whose characters stand for bytes (Latin-1), in hex. */
export function sha256OfLatin1(text: string): string {
  // a string is hashed as UTF-8: right as it is when it is ASCII, and three times cheaper than through a buffer
  return NOT_ASCII.test(text) ? hash('sha256', Buffer.from(text, 'latin1'), 'hex') : hash('sha256', text, 'hex');
}

export function stringToSign(date: string, scope: string, canonical: string): string {
  return `${ALGORITHM}\n${date}\n${scope}\n${sha256OfLatin1(canonical)}`;
}

function hmac(key: Uint8Array | string, text: string): Uint8Array {
  return createHmac('sha256', key).update(text).digest();
}

/** The key that signs one day's requests. Four HMACs: 10 µs, so callers keep it. */
export function deriveSigningKey(secret: string, scope: Scope): Uint8Array {
  const day = hmac(`AWS4${secret}`, scope.day);
  const region = hmac(day, scope.region);
  const service = hmac(region, scope.service);
  return hmac(service, 'aws4_request');
}

export function signatureOf(key: Uint8Array, text: string): string {
  return createHmac('sha256', key).update(text).digest('hex');
}

/** Compares in a time that does not depend on where they differ. */
export function sameHex(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}
