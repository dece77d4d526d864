import { readFileSync } from 'node:fs';
import { assert } from '@webdfs/base';
import { originalKey } from './original-locators.ts';

const UUID_BYTES = 16;
export const ORIGINAL_NAME_COUNT = 10_000;

/** The object names of July 2009, in their order; see `data/README.md`. */
export function originalNames(): string[] {
  const bytes = readFileSync(new URL('../../../data/original-names.bin', import.meta.url));
  assert(bytes.length === ORIGINAL_NAME_COUNT * UUID_BYTES, 'the file of names is whole');
  return Array.from({ length: ORIGINAL_NAME_COUNT }, (_, i) => {
    const hex = bytes.toString('hex', i * UUID_BYTES, (i + 1) * UUID_BYTES).toUpperCase();
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  });
}

/** Their 15-bit keys. */
export function originalKeys(): Uint16Array {
  return Uint16Array.from(originalNames(), originalKey);
}
