import { WebdfsError } from '@webdfs/base';
import { FLAG, KIND, REQUEST_ID_BYTES, SUMMARY_BYTES } from './entry.ts';
import { MAX_KEY_BYTES } from './limits.ts';

const CLOSES_AT = REQUEST_ID_BYTES + SUMMARY_BYTES;

/**
 * The other key whose row a record takes away in the same step (flag CLOSES); undefined if it closes none. A view.
 *
 * ```
 * meta offset  size  field
 *          48     2  length of the closed key, little-endian
 *          50     n  the closed key
 * ```
 * @throws INVALID if the flag is set and the meta is too short for what it says
 */
export function closesOf(entry: { kind: number; flags: number; meta: Uint8Array }): Uint8Array | undefined {
  if (entry.kind !== KIND.RECORD || (entry.flags & FLAG.CLOSES) === 0) return undefined;
  const { meta } = entry;
  if (meta.length < CLOSES_AT + 2) throw new WebdfsError('INVALID', 'meta is too short to close a key');
  const length = meta[CLOSES_AT]! | (meta[CLOSES_AT + 1]! << 8);
  const from = CLOSES_AT + 2;
  if (length === 0 || length > MAX_KEY_BYTES || from + length > meta.length) {
    throw new WebdfsError('INVALID', `closed key has ${length} bytes, meta ${meta.length}`);
  }
  return meta.subarray(from, from + length);
}

/** The summary of a record, a view. @throws INVALID if the meta is too short */
export function summaryOf(meta: Uint8Array): Uint8Array {
  if (meta.length < CLOSES_AT) throw new WebdfsError('INVALID', `meta of a record has ${meta.length} bytes`);
  return meta.subarray(REQUEST_ID_BYTES, CLOSES_AT);
}
