import { BrokenInvariant, type ErrorCode, WebdfsError } from '@webdfs/base';
import { Refusal, type RefusalCode } from './refusal.ts';

/** Code of the object layer → code of the doors; the only such table, refined below. */
export const REFUSAL_OF: Readonly<Record<ErrorCode, RefusalCode>> = {
  INVALID: 'InvalidArgument',
  NOT_FOUND: 'NoSuchKey',
  ALREADY_EXISTS: 'BucketAlreadyExists',
  NOT_EMPTY: 'BucketNotEmpty',
  PRECONDITION_FAILED: 'PreconditionFailed',
  NOT_MODIFIED: 'NotModified',
  RANGE_NOT_SATISFIABLE: 'InvalidRange',
  TOO_LARGE: 'EntityTooLarge',
  CHECKSUM_MISMATCH: 'BadDigest',
  INCOMPLETE_BODY: 'IncompleteBody',
  ACCESS_DENIED: 'AccessDenied',
  UNSUPPORTED: 'NotImplemented',
  CANCELLED: 'RequestTimeout',
  // the attempt was overtaken by the collector of orphans: the same request, sent anew, is a new attempt
  FENCED: 'SlowDown',
  NOT_PRIMARY: 'SlowDown',
  STALE_BALLOT: 'SlowDown',
  NOT_SYNCED: 'SlowDown',
  NO_QUORUM: 'SlowDown',
  TOO_LATE: 'SlowDown',
  CONFLICT: 'OperationAborted',
  COMPACTED: 'SlowDown',
  BUSY: 'SlowDown',
  PEER_LOST: 'SlowDown',
  TIMEOUT: 'SlowDown',
  UNAVAILABLE: 'SlowDown',
  DISK_FULL: 'InsufficientStorage',
  DISK_FAILED: 'InternalError',
  CORRUPT: 'InternalError',
  LOCKED: 'InternalError',
  LOST: 'InternalError',
  OLD_STORE: 'InternalError',
  WIRE_CORRUPT: 'InternalError',
  WRONG_PEER: 'InternalError',
  BAD_CONFIG: 'InternalError',
  NEWER_FORMAT: 'InternalError',
};

/** What `details.what` makes of a code: the object layer says there what it was about. */
const REFINED: Readonly<Partial<Record<ErrorCode, Readonly<Record<string, RefusalCode>>>>> = {
  NOT_FOUND: { bucket: 'NoSuchBucket', key: 'NoSuchKey', upload: 'NoSuchUpload', part: 'InvalidPart' },
  INVALID: {
    'bucket-name': 'InvalidBucketName',
    checksum: 'InvalidRequest',
    'part-order': 'InvalidPartOrder',
    'part-too-small': 'EntityTooSmall',
    parts: 'MalformedXML',
    size: 'InvalidRequest',
  },
  TOO_LARGE: { key: 'KeyTooLongError', metadata: 'MetadataTooLarge' },
  CHECKSUM_MISMATCH: { part: 'InvalidPart' },
};

function codeFor(error: WebdfsError): RefusalCode {
  const { what = '', exists } = error.details;
  // S3 says of a write that must replace what is not there, that it is not there
  if (error.code === 'PRECONDITION_FAILED' && exists === false) return 'NoSuchKey';
  return REFINED[error.code]?.[String(what)] ?? REFUSAL_OF[error.code];
}

/**
 * Any error as a refusal. What the operator must see stays out of the answer: messages of the caller's and of
 * retryable errors are passed on, all others are replaced by the table's sentence.
 */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (!(error instanceof WebdfsError)) return new Refusal('InternalError', undefined, { cause: error });
  const code = codeFor(error);
  const message = error.remedy === 'caller' ? error.message : undefined;
  return new Refusal(code, message, { cause: error, retryAfterMs: error.retryAfterMs });
}

/** Whether an error is a bug or a sick machine, so that the log must have it. */
export function isOurFault(error: unknown): boolean {
  if (error instanceof Refusal) return error.status >= 500 && error.code === 'InternalError';
  if (error instanceof WebdfsError) return error.remedy === 'operator';
  return true;
}

export function isBroken(error: unknown): error is BrokenInvariant {
  return error instanceof BrokenInvariant;
}
