import { createHmac, hash } from 'node:crypto';
import { assert } from '@webdfs/base';

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
  /** The same, joined with semicolons. */
  readonly signedText: string;
  /** The value of a signed header, Latin-1; empty if it is absent. */
  readonly header: (name: string) => string;
  /** What stands for the body: its SHA-256 in hex, or a word. */
  readonly payload: string;
}

/** Trims, and makes one space of several. */
function squeeze(value: string): string {
  const plain = !value.includes('  ') && !value.includes('\t') && !value.startsWith(' ') && !value.endsWith(' ');
  return plain ? value : value.trim().replace(/[ \t]+/g, ' ');
}

export function canonicalRequest(parts: CanonicalParts): string {
  let text = `${parts.method}\n${parts.path}\n${parts.query}\n`;
  for (const name of parts.signed) text += `${name}:${squeeze(parts.header(name))}\n`;
  return `${text}\n${parts.signedText}\n${parts.payload}`;
}

/** SHA-256 of a text whose characters stand for bytes (Latin-1), in hex. */
function sha256OfLatin1(text: string): string {
  return hash('sha256', Buffer.from(text, 'latin1'), 'hex');
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

const BLOCK_BYTES = 64;
const TEXT_BYTES = 1_024;

/**
 * A signing key made ready: HMAC-SHA256 (RFC 2104) by two plain hashes over kept, padded keys. A third of what an HMAC
 * object costs, most of which is making and collecting the object.
 */
export class SigningKey {
  readonly #key: Uint8Array;
  /** The inner pad, and room for the text. */
  readonly #inner = Buffer.alloc(BLOCK_BYTES + TEXT_BYTES, 0x36);
  /** The outer pad, and room for the inner digest. */
  readonly #outer = Buffer.alloc(BLOCK_BYTES + 32, 0x5c);

  /** @param key  32 bytes, see `deriveSigningKey` */
  constructor(key: Uint8Array) {
    assert(key.length <= BLOCK_BYTES, 'the key fits a block of the hash');
    this.#key = key;
    for (const [index, byte] of key.entries()) {
      this.#inner[index]! ^= byte;
      this.#outer[index]! ^= byte;
    }
  }

  /** The signature of an ASCII text, in hex. */
  sign(text: string): string {
    if (text.length > TEXT_BYTES) return signatureOf(this.#key, text);
    const end = BLOCK_BYTES + this.#inner.write(text, BLOCK_BYTES, 'latin1');
    this.#outer.write(hash('sha256', this.#inner.subarray(0, end), 'hex'), BLOCK_BYTES, 'hex');
    return hash('sha256', this.#outer, 'hex');
  }
}

/** Compares in a time that does not depend on where they differ. */
export function sameHex(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i);
  return difference === 0;
}
