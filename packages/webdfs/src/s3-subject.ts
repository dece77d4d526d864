import { buffer } from 'node:stream/consumers';
import { codeOf, WebdfsError } from '@webdfs/base';
import type { Subject } from '@webdfs/history';
import type { S3Client } from './s3-client.ts';

function etagOf(headers: Readonly<Record<string, string | string[] | undefined>>): string {
  const etag = headers['etag'];
  if (typeof etag !== 'string') throw new WebdfsError('UNSUPPORTED', 'the store gives no ETag');
  return etag.replaceAll('"', '');
}

function isNothing(error: unknown): boolean {
  return error instanceof WebdfsError && error.code === 'NOT_FOUND' && error.details['s3Code'] !== 'NoSuchBucket';
}

/**
 * A bucket, or what lies below a prefix of it, as keys and values whose history can be recorded.
 *
 * Errors that leave the outcome open (503, a connection that broke, no answer within `timeoutMs`) come as UNAVAILABLE, BUSY,
 * CONFLICT, DISK_FULL or CANCELLED.
 */
export function s3Subject(
  client: S3Client,
  options: { readonly bucket: string; readonly prefix: string; readonly timeoutMs: number },
): Subject {
  const { bucket, prefix, timeoutMs } = options;
  const place = (key: string): { bucket: string; key: string; signal: AbortSignal } => {
    return { bucket, key: `${prefix}${key}`, signal: AbortSignal.timeout(timeoutMs) };
  };
  return {
    async read(key) {
      try {
        const { signal } = place(key);
        const answer = await client.get(bucket, `${prefix}${key}`, { signal });
        const bytes = await buffer(answer).catch((error: unknown) => {
          throw new WebdfsError('UNAVAILABLE', 'the answer broke off', { cause: error });
        });
        return { bytes: new Uint8Array(bytes), tag: etagOf(answer.headers) };
      } catch (error) {
        if (isNothing(error)) return undefined;
        throw error;
      }
    },
    async write(key, bytes, condition) {
      const headers: Record<string, string> =
        condition === undefined
          ? {}
          : condition === 'absent'
            ? { 'if-none-match': '*' }
            : { 'if-match': `"${condition.tag}"` };
      try {
        const answer = await client.call({ method: 'PUT', ...place(key), headers, body: bytes });
        return etagOf(answer.headers);
      } catch (error) {
        const isRefused = codeOf(error) === 'PRECONDITION_FAILED' || isNothing(error);
        if (condition !== undefined && isRefused) return undefined;
        throw error;
      }
    },
    async remove(key) {
      await client.call({ method: 'DELETE', ...place(key) });
    },
    async list() {
      const found = new Map<string, string>();
      let token: string | undefined;
      do {
        const page = await client.listPage(bucket, { prefix, ...(token === undefined ? {} : { token }) });
        for (const { key, etag } of page.objects) found.set(key.slice(prefix.length), etag);
        token = page.next;
      } while (token !== undefined);
      return found;
    },
  };
}
