import { equalBytes, fromUtf8, SeededRandom, utf8 } from '@webdfs/base';

/** Name of a value: its number and size, from which all its bytes follow. */
const HEAD = /^value (\d+) of (\d+) bytes\n/;
const HEAD_BYTES = 64;

/** The bytes of a value that tells of itself: a line with its number and size, then bytes that follow from the number. */
export function valueBytes(number: number, size: number): Uint8Array {
  const head = utf8(`value ${number} of ${size} bytes\n`);
  const bytes = new SeededRandom(number).bytes(Math.max(size, head.length));
  bytes.set(head);
  return bytes;
}

/** The name of the value whose bytes these are; undefined if they are no value's: somebody else's, cut, mixed or damaged. */
export function valueName(bytes: Uint8Array): string | undefined {
  const found = HEAD.exec(fromUtf8(bytes.subarray(0, HEAD_BYTES).filter((byte) => byte < 128)));
  if (found === null) return undefined;
  const [number, size] = [Number(found[1]), Number(found[2])];
  return Math.abs(bytes.length - size) <= HEAD_BYTES && equalBytes(bytes, valueBytes(number, size))
    ? nameOf(number)
    : undefined;
}

export function nameOf(number: number): string {
  return `v${number}`;
}
