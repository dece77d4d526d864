import { utf8, WebdfsError } from '@webdfs/base';
import type { Transaction } from './map-store.ts';

/** etcd's `max-txn-ops` is 128, and its house adds one of its own; what is proposed to any house must fit there. */
const MAX_OPERATIONS = 127;
const MAX_KEY_BYTES = 256;
const MAX_VALUE_BYTES = 1024 * 1024;
const MIN_TTL_MS = 10;
const MAX_TTL_MS = 3_600_000;

/** What every house of the map store refuses before it looks any further. @throws INVALID, TOO_LARGE */
export function checkTransaction({ compare, write }: Transaction): void {
  if (compare.length > MAX_OPERATIONS || write.length > MAX_OPERATIONS) {
    throw new WebdfsError(
      'INVALID',
      `a transaction of ${compare.length} compares and ${write.length} writes, limit ${MAX_OPERATIONS}`,
    );
  }
  const keys = new Set(write.map(({ key }) => key));
  if (keys.size !== write.length) throw new WebdfsError('INVALID', 'a transaction writes a key twice');
  for (const key of keys) {
    if (key.length === 0 || utf8(key).length > MAX_KEY_BYTES) {
      throw new WebdfsError('INVALID', `a key of ${utf8(key).length} bytes, allowed are 1 to ${MAX_KEY_BYTES}`);
    }
  }
  const values = write.reduce((sum, each) => sum + (each.type === 'put' ? utf8(each.value).length : 0), 0);
  if (values > MAX_VALUE_BYTES) {
    throw new WebdfsError('TOO_LARGE', `a transaction writes ${values} bytes, limit ${MAX_VALUE_BYTES}`);
  }
}

/** @throws INVALID for a lease's time out of bounds */
export function checkLease(ttlMs: number): void {
  if (Number.isFinite(ttlMs) && ttlMs >= MIN_TTL_MS && ttlMs <= MAX_TTL_MS) return;
  throw new WebdfsError('INVALID', `a lease of ${ttlMs} ms, allowed are ${MIN_TTL_MS} to ${MAX_TTL_MS}`);
}
