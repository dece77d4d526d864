import { amzDate, parseAmzDate, parseHttpDate } from '../http/dates.ts';
import { bearsToken, type Headers } from '../http/headers.ts';
import { MAX_PRESIGN_SECONDS, MAX_SKEW_MS } from '../http/limits.ts';
import type { Query } from '../http/query.ts';
import { type DecodedPath, decodePath } from '../http/target.ts';
import type { KeyRing } from '../keys.ts';
import { Refusal } from '../refusal.ts';
import { knowCredential, type KnownCredential, type SigningKeys } from './signing-keys.ts';
import {
  ALGORITHM,
  canonicalRequest,
  EMPTY_SHA256,
  sameHex,
  type Scope,
  type SigningKey,
  stringToSign,
  UNSIGNED_PAYLOAD,
} from './sigv4.ts';

/** The parts of a request that a signature is about. */
export interface SignedRequest {
  readonly method: string;
  /** The raw path. */
  readonly path: string;
  readonly query: Query;
  readonly headers: Headers;
  /** What stands for the Host header. */
  readonly host: string;
}

/** What continues a signature over the chunks of a body. */
export interface ChunkSigning {
  readonly key: SigningKey;
  readonly date: string;
  readonly scope: string;
  /** The signature that the first chunk's builds on. */
  readonly seed: string;
}

/** A request whose signature is right. */
export interface Authenticated {
  readonly accessKeyId: string;
  readonly path: DecodedPath;
  /** `x-amz-content-sha256`, or what stands for it in a presigned URL. */
  readonly payload: string;
  readonly signing: ChunkSigning;
}

export interface Verifier {
  readonly keys: KeyRing;
  readonly signingKeys: SigningKeys;
  readonly nowMs: number;
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 +Credential=([^\s,]{1,256}), *SignedHeaders=([a-z0-9;_.!#$%&'*+^`|~-]{1,4096}), *Signature=([0-9a-f]{64})$/;
const CREDENTIAL = /^([^\s,/]{1,128})\/(\d{8})\/([^\s,/]{1,64})\/([^\s,/]{1,16})\/aws4_request$/;
const PAYLOAD = /^(?:[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-[A-Z0-9-]{1,64})$/;

/** Whether a request claims to be signed, in any of the ways that S3 knows. */
export function claimsSignature(headers: Headers, query: Query): boolean {
  if (headers.has('authorization')) return !bearsToken(headers);
  return query.size > 0 && (query.has('X-Amz-Signature') || query.has('X-Amz-Algorithm') || query.has('Signature'));
}

/**
 * Verifies a signature, in the header or in the query (a presigned URL). Nothing of the body is looked at.
 *
 * @throws Refusal with S3's code for each way to be wrong
 */
export function authenticate(request: SignedRequest, verifier: Verifier): Authenticated {
  const { headers, query } = request;
  const authorization = headers.get('authorization');
  if (authorization !== undefined && query.has('X-Amz-Signature')) {
    throw new Refusal('InvalidArgument', 'Only one signature is allowed: in the header or in the query.');
  }
  const claim = authorization === undefined ? presignedClaim(query, headers) : headerClaim(authorization, headers);
  if (headers.has('x-amz-security-token') || query.has('X-Amz-Security-Token')) throw new Refusal('InvalidToken');
  checkSigned(claim.signed, headers);
  const known = credentialOf(claim, verifier);
  checkTime(claim, verifier.nowMs);
  const path = verify(request, claim, known);
  if (verifier.signingKeys.find(claim.credential) !== known) verifier.signingKeys.keep(claim.credential, known);
  const signing = { key: known.key, date: claim.date, scope: known.scopeText, seed: claim.signature };
  return { accessKeyId: known.scope.accessKeyId, path, payload: claim.payload, signing };
}

/** @throws Refusal InvalidAccessKeyId, or that the credential cannot be read or is of another day than the date */
function credentialOf(claim: Claim, { keys, signingKeys }: Verifier): KnownCredential {
  const { credential, date } = claim;
  const found = signingKeys.find(credential);
  const scope = found?.scope ?? scopeOf(credential, claim.refuse);
  if (!date.startsWith(scope.day)) throw claim.refuse('The day of the credential is not the day of the date.');
  const secret = keys.secret(scope.accessKeyId);
  if (secret === undefined) throw new Refusal('InvalidAccessKeyId');
  return found?.secret === secret ? found : knowCredential(scope, secret);
}

interface Claim {
  readonly credential: string;
  readonly date: string;
  readonly dateMs: number;
  readonly signed: readonly string[];
  readonly signedText: string;
  readonly signature: string;
  readonly payload: string;
  /** Of a presigned URL. */
  readonly expiresSeconds: number | undefined;
  /** How this form of signature says that it cannot be read. */
  readonly refuse: (message: string) => Refusal;
}

const badHeader = (message?: string): Refusal => new Refusal('AuthorizationHeaderMalformed', message);
const badQuery = (message?: string): Refusal => new Refusal('AuthorizationQueryParametersError', message);

function scopeOf(credential: string, refuse: Claim['refuse']): Scope {
  const parts = CREDENTIAL.exec(credential);
  if (parts === null) throw refuse('The credential is not <access key>/<day>/<region>/s3/aws4_request.');
  const [, accessKeyId, day, region, service] = parts as unknown as [string, string, string, string, string];
  if (service !== 's3') throw refuse('The service of the credential is not s3.');
  return { accessKeyId, day, region, service };
}

function headerClaim(authorization: string, headers: Headers): Claim {
  const parts = AUTHORIZATION.exec(authorization);
  if (parts === null) throw unreadable(authorization);
  const [, credential, signedText, signature] = parts as unknown as [string, string, string, string];
  const payload = headers.get('x-amz-content-sha256');
  if (payload === undefined) throw new Refusal('MissingSecurityHeader', 'The header x-amz-content-sha256 is missing.');
  checkPayload(payload);
  const { date, dateMs } = dateOf(headers);
  const signed = signedText.split(';');
  const refuse = badHeader;
  return { credential, date, dateMs, signed, signedText, signature, payload, expiresSeconds: undefined, refuse };
}

function unreadable(authorization: string): Refusal {
  if (authorization.startsWith(`${ALGORITHM} `)) return badHeader();
  if (/^AWS[ 4]/.test(authorization)) {
    return new Refusal('InvalidRequest', `The only signature that is understood is ${ALGORITHM}.`);
  }
  return new Refusal('InvalidArgument', 'The type of the Authorization header is not supported.');
}

function checkPayload(payload: string): void {
  if (payload !== EMPTY_SHA256 && !PAYLOAD.test(payload)) {
    throw new Refusal('InvalidArgument', 'x-amz-content-sha256 is neither a SHA-256 in hex nor a word that is known.');
  }
}

/** The date of a signed request: `x-amz-date`, or else `Date`. */
function dateOf(headers: Headers): { date: string; dateMs: number } {
  const stamp = headers.get('x-amz-date');
  const plain = headers.get('date');
  if (stamp !== undefined) {
    const dateMs = parseAmzDate(stamp);
    if (dateMs !== undefined) return { date: stamp, dateMs };
  } else if (plain !== undefined) {
    const dateMs = parseHttpDate(plain);
    if (dateMs !== undefined) return { date: amzDate(dateMs), dateMs };
  }
  throw new Refusal('AccessDenied', 'A signed request needs a valid x-amz-date or Date header.');
}

function presignedClaim(query: Query, headers: Headers): Claim {
  const refuse = badQuery;
  if (query.get('X-Amz-Algorithm') !== ALGORITHM) {
    throw query.has('Signature')
      ? new Refusal('InvalidRequest', `The only signature that is understood is ${ALGORITHM}.`)
      : refuse(`X-Amz-Algorithm is not ${ALGORITHM}.`);
  }
  const need = (name: string): string => {
    const value = query.get(name);
    if (value === undefined) throw refuse(`${name} is missing.`);
    return value;
  };
  const date = need('X-Amz-Date');
  const dateMs = parseAmzDate(date);
  if (dateMs === undefined) throw refuse('X-Amz-Date is not a date.');
  const expires = need('X-Amz-Expires');
  const expiresSeconds = /^\d{1,7}$/.test(expires) ? Number(expires) : 0;
  if (expiresSeconds < 1 || expiresSeconds > MAX_PRESIGN_SECONDS) {
    throw refuse(`X-Amz-Expires is not a number of seconds from 1 to ${MAX_PRESIGN_SECONDS}.`);
  }
  const signature = need('X-Amz-Signature');
  if (!/^[0-9a-f]{64}$/.test(signature)) throw refuse('X-Amz-Signature is not 64 hex digits.');
  const payload = headers.get('x-amz-content-sha256') ?? query.get('X-Amz-Content-Sha256') ?? UNSIGNED_PAYLOAD;
  checkPayload(payload);
  const signedText = need('X-Amz-SignedHeaders');
  const signed = signedText.split(';');
  const credential = need('X-Amz-Credential');
  return { credential, date, dateMs, signed, signedText, signature, payload, expiresSeconds, refuse };
}

/** `host` and all of `x-amz-*` that came must be signed: what steers a request must not be added on the way. */
function checkSigned(signed: readonly string[], headers: Headers): void {
  if (!signed.includes('host')) throw new Refusal('AccessDenied', 'The header host is not signed.');
  for (const name of headers.keys()) {
    if (name.startsWith('x-amz-') && !signed.includes(name)) {
      throw new Refusal('AccessDenied', `The header ${name} came but is not signed.`);
    }
  }
}

function checkTime(claim: Claim, nowMs: number): void {
  if (claim.expiresSeconds === undefined) {
    if (Math.abs(nowMs - claim.dateMs) <= MAX_SKEW_MS) return;
    throw new Refusal('RequestTimeTooSkewed', undefined, {
      fields: { RequestTime: claim.date, ServerTime: amzDate(nowMs), MaxAllowedSkewMilliseconds: String(MAX_SKEW_MS) },
    });
  }
  if (claim.dateMs > nowMs + MAX_SKEW_MS) throw new Refusal('AccessDenied', 'The presigned URL is not valid yet.');
  if (nowMs > claim.dateMs + claim.expiresSeconds * 1_000) {
    throw new Refusal('AccessDenied', 'The presigned URL has expired.', {
      fields: { Expires: String(claim.expiresSeconds), ServerTime: amzDate(nowMs) },
    });
  }
}

/** The path as it was meant. @throws Refusal SignatureDoesNotMatch */
function verify(request: SignedRequest, claim: Claim, known: KnownCredential): DecodedPath {
  const { method, host, headers } = request;
  const { signed, signedText, payload } = claim;
  const query = request.query.canonical('X-Amz-Signature');
  const header = (name: string): string => (name === 'host' ? host : (headers.get(name) ?? ''));
  // a bare plus is a plus, or a space: the signature says what was meant
  for (const plusIsSpace of request.path.includes('+') ? [false, true] : [false]) {
    const path = decodePath(request.path, plusIsSpace);
    const canonical = canonicalRequest({ method, path: path.canonical, query, signed, signedText, header, payload });
    const expected = known.key.sign(stringToSign(claim.date, known.scopeText, canonical));
    if (sameHex(expected, claim.signature)) return path;
  }
  throw new Refusal('SignatureDoesNotMatch');
}
