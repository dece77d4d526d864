import type { Headers } from '../http/headers.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';

/**
 * Headers that ask for what is not there. They are refused rather than ignored: who asks for encryption, or for a lock,
 * must not believe to have it.
 */
const NOT_THERE: readonly (readonly [prefix: string, code: RefusalCode, message: string])[] = [
  ['x-amz-server-side-encryption', 'NotImplemented', 'Encryption at rest is not built yet.'],
  ['x-amz-copy-source-server-side-encryption', 'NotImplemented', 'Encryption at rest is not built yet.'],
  ['x-amz-object-lock-', 'InvalidRequest', 'The bucket has no object lock.'],
  ['x-amz-bucket-object-lock-enabled', 'NotImplemented', 'Object lock is not built yet.'],
  ['x-amz-website-redirect-location', 'NotImplemented', 'Websites are not built yet.'],
  ['x-amz-grant-', 'AccessControlListNotSupported', 'Grants are not supported.'],
  ['x-amz-write-offset-bytes', 'NotImplemented', 'Appending is not built yet.'],
  ['x-amz-if-match-', 'NotImplemented', 'Deletions by size or time are not built yet.'],
  ['x-amz-tagging-directive', 'NotImplemented', 'Tags are not built yet.'],
];

/** S3's canned access lists; those that are not given are refused as such, other words as nonsense. */
const CANNED = new Set([
  'private',
  'public-read',
  'public-read-write',
  'authenticated-read',
  'aws-exec-read',
  'bucket-owner-read',
  'bucket-owner-full-control',
  'log-delivery-write',
]);

/** The canned access list that a request names. @throws Refusal InvalidArgument if S3 has none of this name */
export function cannedAccess(headers: Headers): string | undefined {
  const name = headers.get('x-amz-acl');
  if (name === undefined || CANNED.has(name)) return name;
  throw new Refusal('InvalidArgument', 'x-amz-acl is not the name of a canned access list.', {
    fields: { ArgumentName: 'x-amz-acl', ArgumentValue: name.slice(0, 64) },
  });
}

/** What an object's access may be called: all of them mean "as the bucket". */
const OBJECT_ACCESS = new Set(['private', 'bucket-owner-full-control', 'bucket-owner-read']);

/** @throws Refusal if the request asks for what is not built, or S3 itself would not give */
export function checkFeatures(headers: Headers): void {
  for (const [name, value] of headers) {
    if (!name.startsWith('x-amz-')) continue;
    for (const [prefix, code, message] of NOT_THERE) {
      if (!name.startsWith(prefix)) continue;
      // copying the tags of an object without tags is done
      if (name === 'x-amz-tagging-directive' && value === 'COPY') continue;
      if (name === 'x-amz-bucket-object-lock-enabled' && value.toLowerCase() === 'false') continue;
      throw new Refusal(code, message);
    }
  }
}

/** What only objects have. @throws Refusal InvalidStorageClass, InvalidArgument, AccessControlListNotSupported, NotImplemented */
export function checkObjectFeatures(headers: Headers): void {
  checkFeatures(headers);
  const storageClass = headers.get('x-amz-storage-class');
  if (storageClass !== undefined && storageClass !== 'STANDARD') throw new Refusal('InvalidStorageClass');
  const access = cannedAccess(headers);
  if (access !== undefined && !OBJECT_ACCESS.has(access)) throw new Refusal('AccessControlListNotSupported');
  if ((headers.get('x-amz-tagging') ?? '') !== '') throw new Refusal('NotImplemented', 'Tags are not built yet.');
}
