import { utf8 } from '@webdfs/base';
import { UsageError } from './command.ts';

/** `s3://bucket/key`; the key is empty for a bucket. */
export interface Address {
  readonly bucket: string;
  readonly key: string;
}

/** @throws UsageError if `text` is no `s3://` address */
export function parseAddress(text: string): Address {
  const match = /^s3:\/\/([^/]+)(?:\/(.*))?$/s.exec(text);
  if (match === null) throw new UsageError(`expected an address like s3://bucket/key, got ${text}`);
  const key = match[2] ?? '';
  if (utf8(key).length > 1024) throw new UsageError(`the key has ${utf8(key).length} bytes, the limit is 1024`);
  return { bucket: match[1]!, key };
}

/** What keys of a folder begin with: `logs/` for `logs` and `logs/`, so that `logs-old/b` is not one; all keys for none. */
export function folderOf(key: string): string {
  return key === '' || key.endsWith('/') ? key : `${key}/`;
}
