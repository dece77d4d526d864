import { type Reader, WebdfsError, type Writer } from '@webdfs/base';

/*
 * A run of keys, each as what it does not share with the one before: u16 shared, u16 rest, bytes. Neighbouring keys of a
 * bucket share most of their bytes.
 */

/** The keys one after another, in their order. */
export function packKeys(writer: Writer, keys: readonly Uint8Array[]): void {
  let before: Uint8Array | undefined;
  for (const key of keys) {
    const shared = before === undefined ? 0 : sharedBytes(before, key);
    writer.u16(shared).short(key.subarray(shared));
    before = key;
  }
}

/**
 * The next key of a run; a copy.
 *
 * @param before  the key before it, undefined at the start
 * @throws CORRUPT, TOO_LARGE
 */
export function unpackKey(reader: Reader, before: Uint8Array | undefined, limit: number): Uint8Array {
  const shared = reader.u16();
  const rest = reader.short();
  const known = before === undefined ? 0 : before.length;
  if (shared > known) throw new WebdfsError('CORRUPT', `key shares ${shared} bytes with one of ${known}`);
  const length = shared + rest.length;
  if (length > limit) throw new WebdfsError('TOO_LARGE', `key has ${length} bytes, limit ${limit}`);
  const key = new Uint8Array(length);
  if (before !== undefined) key.set(before.subarray(0, shared));
  key.set(rest, shared);
  return key;
}

/** @throws CORRUPT, TOO_LARGE */
export function unpackKeys(reader: Reader, count: number, limit: number): Uint8Array[] {
  const keys: Uint8Array[] = [];
  for (let i = 0; i < count; i++) keys.push(unpackKey(reader, keys[i - 1], limit));
  return keys;
}

/** How many leading bytes two keys have in common. */
export function sharedBytes(a: Uint8Array, b: Uint8Array): number {
  const limit = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < limit && a[shared] === b[shared]) shared++;
  return shared;
}
