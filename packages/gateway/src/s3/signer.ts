import { hash } from 'node:crypto';
import { utf8 } from '@webdfs/base';
import { amzDate } from '../http/dates.ts';
import { encodePercent } from '../http/percent.ts';
import { decodePath } from '../http/target.ts';
import type { AccessKey } from '../keys.ts';
import {
  ALGORITHM,
  canonicalRequest,
  deriveSigningKey,
  EMPTY_SHA256,
  type Scope,
  scopeText,
  signatureOf,
  stringToSign,
  UNSIGNED_PAYLOAD,
} from './sigv4.ts';

/** A request to be signed, as it will be sent. */
export interface SigningRequest {
  readonly method: string;
  /** With the port, if it is not the scheme's own. */
  readonly host: string;
  /** Encoded, see `pathOf`; what was left unencoded is signed as if it were not. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Header names in any case; all of them are signed. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `x-amz-content-sha256`: hex of the body, `UNSIGNED-PAYLOAD`, a streaming word; default: of no bytes. */
  readonly payloadHash?: string;
  readonly credentials: AccessKey;
  readonly region: string;
  readonly nowMs: number;
  /** A kept result of `deriveSigningKey`, for those who sign much. */
  readonly signingKey?: Uint8Array;
}

/** `/bucket/key`, encoded. */
export function pathOf(bucket: string, key?: Uint8Array | string): string {
  const bytes = typeof key === 'string' ? utf8(key) : key;
  const name = encodePercent(utf8(bucket), false);
  return bytes === undefined ? `/${name}` : `/${name}/${encodePercent(bytes, true)}`;
}

/** A query string as it is sent, and as it is signed. */
export function queryOf(pairs: Readonly<Record<string, string>>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${encodePercent(utf8(name), false)}=${encodePercent(utf8(value), false)}`)
    .sort((a, b) => (a.replace('=', '\0') < b.replace('=', '\0') ? -1 : 1))
    .join('&');
}

/** SHA-256 of a body, as `payloadHash` of a request wants it. */
export function payloadHash(body: Uint8Array | string): string {
  return hash('sha256', body, 'hex');
}

interface Signed {
  readonly scope: Scope;
  readonly signed: string;
  readonly signature: string;
}

function sign(request: SigningRequest, date: string, headers: Readonly<Record<string, string>>, query: string): Signed {
  const scope = scopeFor(request, date);
  const signed = Object.keys(headers).toSorted();
  const canonical = canonicalRequest({
    method: request.method,
    path: decodePath(request.path, false).canonical,
    query,
    signed,
    signedText: signed.join(';'),
    header: (name) => headers[name] ?? '',
    payload: headers['x-amz-content-sha256'] ?? UNSIGNED_PAYLOAD,
  });
  const key = request.signingKey ?? deriveSigningKey(request.credentials.secretAccessKey, scope);
  const signature = signatureOf(key, stringToSign(date, scopeText(scope), canonical));
  return { scope, signed: signed.join(';'), signature };
}

function scopeFor(request: SigningRequest, date: string): Scope {
  const { accessKeyId } = request.credentials;
  return { accessKeyId, day: date.slice(0, 8), region: request.region, service: 's3' };
}

function lowerCase(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** The headers to send with a request: those given, `host`, and the signature's. Names in lower case. */
export function signRequest(request: SigningRequest): Record<string, string> {
  const date = amzDate(request.nowMs);
  const headers: Record<string, string> = {
    host: request.host,
    'x-amz-date': date,
    ...lowerCase(request.headers),
    'x-amz-content-sha256': request.payloadHash ?? EMPTY_SHA256,
  };
  const { scope, signed, signature } = sign(request, date, headers, queryOf(request.query ?? {}));
  const credential = `${scope.accessKeyId}/${scopeText(scope)}`;
  headers['authorization'] = `${ALGORITHM} Credential=${credential}, SignedHeaders=${signed}, Signature=${signature}`;
  return headers;
}

/**
 * A presigned URL without scheme and host: path and query, good for `expiresSeconds` (1..604 800). Headers given must be
 * sent along; the body goes unsigned.
 */
export function presign(request: Omit<SigningRequest, 'payloadHash'> & { readonly expiresSeconds: number }): string {
  const date = amzDate(request.nowMs);
  const headers: Record<string, string> = { host: request.host, ...lowerCase(request.headers) };
  const query = queryOf({
    ...request.query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${request.credentials.accessKeyId}/${scopeText(scopeFor(request, date))}`,
    'X-Amz-Date': date,
    'X-Amz-Expires': String(request.expiresSeconds),
    'X-Amz-SignedHeaders': Object.keys(headers).toSorted().join(';'),
  });
  return `${request.path}?${query}&X-Amz-Signature=${sign(request, date, headers, query).signature}`;
}
