import { crc32c as nativeCrc32c } from '@node-rs/crc32';

/** The unit over which stored and travelling bytes are checksummed, bytes. */
export const CHUNK_BYTES = 65_536;

/**
 * CRC-32C (Castagnoli, RFC 3720 appendix B.4), as an unsigned number.
 *
 * @param seed  the CRC of what went before, 0 at the start
 */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  return nativeCrc32c(bytes as Buffer, seed) >>> 0;
}

/** CRC-32C of each `CHUNK_BYTES` of `bytes`; the last chunk may be short. No bytes, no sums. */
export function chunkSums(bytes: Uint8Array): Uint32Array {
  const count = Math.ceil(bytes.length / CHUNK_BYTES);
  const sums = new Uint32Array(count);
  for (let i = 0; i < count; i++) sums[i] = crc32c(bytes.subarray(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES));
  return sums;
}
