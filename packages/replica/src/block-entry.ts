import { Reader } from '@webdfs/base';
import { takeSums } from './attachment.ts';

/** A BLOCK entry's body: `size u32 | CRC-32C of each 64 KiB, u32 each`, little-endian. */
export function packBlockBody(size: number, sums: Uint32Array): Uint8Array {
  const body = new Uint8Array(4 + sums.length * 4);
  const view = new DataView(body.buffer);
  view.setUint32(0, size, true);
  for (let i = 0; i < sums.length; i++) view.setUint32(4 + i * 4, sums[i]!, true);
  return body;
}

/** @throws WebdfsError CORRUPT */
export function unpackBlockBody(body: Uint8Array): { size: number; sums: Uint32Array } {
  const reader = new Reader(body);
  const size = reader.u32();
  const sums = takeSums(reader, Math.floor(reader.left / 4));
  reader.end();
  return { size, sums };
}
