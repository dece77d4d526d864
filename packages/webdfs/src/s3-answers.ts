import { type ErrorCode, WebdfsError } from '@webdfs/base';

/** Reads the few S3 answers that our own client asks for. */

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replaceAll(/&(#x?[0-9a-fA-F]+|\w+);/g, (whole, name: string) => {
    if (!name.startsWith('#')) return ENTITIES[name] ?? whole;
    const code = name.startsWith('#x') ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
    return String.fromCodePoint(code);
  });
}

/** The texts inside every `<tag>…</tag>`, still escaped, in order. */
export function elementsOf(xml: string, tag: string): string[] {
  return Array.from(xml.matchAll(new RegExp(`<${tag}(?:\\s[^>]*)?>(.*?)</${tag}>`, 'gs')), (match) => match[1]!);
}

/** The unescaped text of the first `<tag>`, or undefined. */
export function textOf(xml: string, tag: string): string | undefined {
  const [inner] = elementsOf(xml, tag);
  return inner === undefined ? undefined : unescapeXml(inner);
}

const BY_S3_CODE: Readonly<Record<string, ErrorCode>> = {
  NoSuchBucket: 'NOT_FOUND',
  NoSuchKey: 'NOT_FOUND',
  NoSuchUpload: 'NOT_FOUND',
  BucketAlreadyOwnedByYou: 'ALREADY_EXISTS',
  BucketAlreadyExists: 'ALREADY_EXISTS',
  BucketNotEmpty: 'NOT_EMPTY',
  PreconditionFailed: 'PRECONDITION_FAILED',
  AccessDenied: 'ACCESS_DENIED',
  InvalidAccessKeyId: 'ACCESS_DENIED',
  SignatureDoesNotMatch: 'ACCESS_DENIED',
  RequestTimeTooSkewed: 'ACCESS_DENIED',
  SlowDown: 'UNAVAILABLE',
  ServiceUnavailable: 'UNAVAILABLE',
  InsufficientStorage: 'DISK_FULL',
  EntityTooLarge: 'TOO_LARGE',
  BadDigest: 'CHECKSUM_MISMATCH',
  NotImplemented: 'UNSUPPORTED',
};

const BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  403: 'ACCESS_DENIED',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  412: 'PRECONDITION_FAILED',
  416: 'RANGE_NOT_SATISFIABLE',
  500: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  507: 'DISK_FULL',
};

/**
 * An S3 error answer as an error of ours. HEAD answers have no body: the status decides.
 *
 * @param what  what was asked, to begin the message with; empty if the store's message says it
 */
export function errorOf(status: number, body: string, what: string): WebdfsError {
  const s3Code = textOf(body, 'Code');
  const message = textOf(body, 'Message');
  const code = (s3Code === undefined ? undefined : BY_S3_CODE[s3Code]) ?? BY_STATUS[status] ?? 'INVALID';
  const reason = message ?? `answered ${status}`;
  return new WebdfsError(
    code,
    `${what === '' ? '' : `${what}: `}${reason}${s3Code === undefined ? '' : ` (${s3Code})`}`,
    {
      details: { status, ...(s3Code === undefined ? {} : { s3Code }) },
    },
  );
}

export interface ListedKey {
  readonly key: string;
  readonly size: number;
  readonly modified: string;
  readonly etag: string;
}

export interface ListAnswer {
  readonly objects: readonly ListedKey[];
  readonly prefixes: readonly string[];
  readonly next: string | undefined;
}

/** A ListObjectsV2 answer that was asked for with `encoding-type=url`. */
export function listOf(xml: string): ListAnswer {
  const decode = (text: string): string => decodeURIComponent(text.replaceAll('+', '%20'));
  return {
    objects: elementsOf(xml, 'Contents').map((entry) => ({
      key: decode(textOf(entry, 'Key') ?? ''),
      size: Number(textOf(entry, 'Size') ?? 0),
      modified: textOf(entry, 'LastModified') ?? '',
      etag: (textOf(entry, 'ETag') ?? '').replaceAll('"', ''),
    })),
    prefixes: elementsOf(xml, 'CommonPrefixes').map((entry) => decode(textOf(entry, 'Prefix') ?? '')),
    next: textOf(xml, 'NextContinuationToken'),
  };
}
