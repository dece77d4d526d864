import type { Compare, Transaction, Write } from '../map-store.ts';
import type { Fields } from './answers.ts';

/** What is asked of etcd, as its JSON wants it: bytes in base64, numbers of 64 bits as text. */

/**
 * Rewritten by every transaction, so that its revision is that of the newest one. A key that was deleted leaves no revision
 * behind: without this nobody could ask in one look-up whether anything is newer than what was seen.
 */
export const NEWEST_KEY = 'newest';

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** The end of the range of all keys that begin with `prefix`, which ends with an ASCII character. */
function endOf(prefix: string): string {
  const bytes = Buffer.from(prefix);
  bytes[bytes.length - 1]!++;
  return bytes.toString('base64');
}

export function rangeOf(prefix: string): { readonly key: string; readonly range_end: string } {
  return { key: base64(prefix), range_end: endOf(prefix) };
}

function compareOf(prefix: string, compare: Compare): Fields {
  switch (compare.type) {
    case 'modified':
      return { key: base64(prefix + compare.key), target: 'MOD', result: 'EQUAL', mod_revision: String(compare.is) };
    case 'created':
      return {
        key: base64(prefix + compare.key),
        target: 'CREATE',
        result: 'EQUAL',
        create_revision: String(compare.is),
      };
    case 'range':
      return {
        ...rangeOf(prefix + compare.prefix),
        target: 'MOD',
        result: 'LESS',
        mod_revision: String(compare.notAfter + 1),
      };
  }
}

function writeOf(prefix: string, write: Write): Fields {
  const key = base64(prefix + write.key);
  if (write.type === 'delete') return { request_delete_range: { key } };
  const lease = write.lease === undefined ? {} : { lease: String(write.lease) };
  return { request_put: { key, value: base64(write.value), ...lease } };
}

/** The newest revision is written along, or read where nothing is written. */
export function transactionOf(prefix: string, { compare, write }: Transaction): Fields {
  const newest = base64(prefix + NEWEST_KEY);
  const look = { request_range: { key: newest } };
  const success = [...write.map((each) => writeOf(prefix, each)), { request_put: { key: newest, value: '' } }];
  return {
    compare: compare.map((each) => compareOf(prefix, each)),
    success: write.length === 0 ? [look] : success,
    failure: [look],
  };
}
