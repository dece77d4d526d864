/** What a door says when it refuses: S3's code, its HTTP status, a sentence. Both doors use this one table. */
const REFUSALS = {
  AccessControlListNotSupported: [400, 'Objects have no access lists of their own here; set the access of the bucket.'],
  AccessDenied: [403, 'This request is not allowed.'],
  AccessForbidden: [403, 'This bucket has no rules for requests from other origins.'],
  AuthorizationHeaderMalformed: [400, 'The Authorization header cannot be understood.'],
  AuthorizationQueryParametersError: [400, 'The signature parameters of the query cannot be understood.'],
  BadDigest: [400, 'The bytes that arrived do not have the checksum that was sent with them.'],
  BadRequest: [400, 'The request is not well formed.'],
  BucketAlreadyExists: [409, 'A bucket of this name exists.'],
  BucketAlreadyOwnedByYou: [409, 'You own a bucket of this name already.'],
  BucketNotEmpty: [409, 'The bucket still holds objects.'],
  EntityTooLarge: [400, 'The object is larger than one request may carry.'],
  EntityTooSmall: [400, 'A part other than the last is smaller than 5 MiB.'],
  ExpectationFailed: [417, 'The only expectation that is met is 100-continue.'],
  IllegalLocationConstraintException: [400, 'The location is not one that this store has.'],
  IncompleteBody: [400, 'The body ended before the length that was announced.'],
  InsufficientStorage: [507, 'The disks are full; nothing was stored.'],
  InternalError: [500, 'Something went wrong here; the log names it by the request id.'],
  InvalidAccessKeyId: [403, 'There is no such access key.'],
  InvalidArgument: [400, 'An argument is not valid.'],
  InvalidBucketName: [400, 'The bucket name is not valid.'],
  InvalidDigest: [400, 'Content-MD5 is not the Base64 of 16 bytes.'],
  InvalidPart: [400, 'A part was not uploaded, or its ETag or checksum differs.'],
  InvalidPartNumber: [416, 'The object has no such part.'],
  InvalidPartOrder: [400, 'The parts are not in ascending order.'],
  InvalidRange: [416, 'No byte of the range exists.'],
  InvalidRequest: [400, 'The request is not valid.'],
  InvalidStorageClass: [400, 'The only storage class is STANDARD.'],
  InvalidToken: [400, 'Session tokens are not issued here.'],
  InvalidURI: [400, 'The request target cannot be understood.'],
  KeyTooLongError: [400, 'The key is longer than 1024 bytes.'],
  MalformedXML: [400, 'The XML document is not well formed or not of the expected shape.'],
  MaxMessageLengthExceeded: [400, 'The request is too large.'],
  MetadataTooLarge: [400, 'User metadata is larger than 2 KiB.'],
  MethodNotAllowed: [405, 'The method is not allowed here.'],
  MissingContentLength: [411, 'The length of the body must be announced.'],
  MissingRequestBodyError: [400, 'The request has no body.'],
  MissingSecurityHeader: [400, 'A required header is missing.'],
  NoSuchBucket: [404, 'There is no such bucket.'],
  NoSuchBucketPolicy: [404, 'The bucket has no policy.'],
  NoSuchCORSConfiguration: [404, 'The bucket has no CORS configuration.'],
  NoSuchKey: [404, 'There is no such key.'],
  NoSuchLifecycleConfiguration: [404, 'The bucket has no lifecycle configuration.'],
  NoSuchObjectLockConfiguration: [404, 'The object has no lock.'],
  NoSuchPublicAccessBlockConfiguration: [404, 'The bucket has no public access block.'],
  NoSuchTagSet: [404, 'The bucket has no tags.'],
  NoSuchUpload: [404, 'There is no such multipart upload; it may have been completed or aborted.'],
  NoSuchVersion: [404, 'There is no such version.'],
  NoSuchWebsiteConfiguration: [404, 'The bucket has no website configuration.'],
  NotImplemented: [501, 'This is not built yet.'],
  NotModified: [304, 'Not modified.'],
  ObjectLockConfigurationNotFoundError: [404, 'The bucket has no object lock.'],
  OperationAborted: [409, 'Another operation on the same thing is under way; try again.'],
  OwnershipControlsNotFoundError: [404, 'The bucket has no ownership controls.'],
  PreconditionFailed: [412, 'A condition of the request does not hold.'],
  ReplicationConfigurationNotFoundError: [404, 'The bucket has no replication configuration.'],
  RequestHeaderSectionTooLarge: [431, 'The headers are too large or too many.'],
  RequestTimeout: [400, 'The connection was idle for too long.'],
  RequestTimeTooSkewed: [403, 'The date of the request differs from our clock by more than 15 minutes.'],
  ServerSideEncryptionConfigurationNotFoundError: [404, 'The bucket has no encryption configuration.'],
  SignatureDoesNotMatch: [
    403,
    'The signature is not the one that the secret key gives; check key, clock and encoding.',
  ],
  SlowDown: [503, 'Please try again in a moment.'],
  Unauthorized: [401, 'The bearer token is not known here.'],
  XAmzContentSHA256Mismatch: [400, 'The bytes that arrived do not have the SHA-256 that was signed.'],
} as const satisfies Record<string, readonly [status: number, message: string]>;

export type RefusalCode = keyof typeof REFUSALS;

export const REFUSAL_CODES = Object.keys(REFUSALS) as readonly RefusalCode[];

/** The HTTP status of a code. */
export function statusOf(code: RefusalCode): number {
  return REFUSALS[code][0];
}

export interface RefusalOptions {
  /** More elements of S3's error document, such as `{ ActualObjectSize: '5' }`. Never a secret. */
  fields?: Readonly<Record<string, string>>;
  /** More headers of the answer, flat: name, value, name, value. */
  headers?: readonly string[];
  /** Say nothing more on this connection: what follows cannot be trusted to be a request. */
  close?: boolean;
  retryAfterMs?: number;
  cause?: unknown;
}

/** A request that is refused, in S3's words. What it asked for did not happen. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly fields: Readonly<Record<string, string>>;
  readonly headers: readonly string[];
  readonly close: boolean;
  readonly retryAfterMs: number;

  constructor(code: RefusalCode, message?: string, options: RefusalOptions = {}) {
    super(message ?? REFUSALS[code][1], options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'Refusal';
    this.code = code;
    this.fields = options.fields ?? {};
    this.headers = options.headers ?? [];
    this.close = options.close ?? false;
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }

  get status(): number {
    return REFUSALS[this.code][0];
  }
}
