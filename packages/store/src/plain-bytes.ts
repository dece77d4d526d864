/**
 * `Buffer.prototype.slice` is a view where `Uint8Array.prototype.slice` is a copy, and a `Buffer` may arrive wherever bytes
 * do. Whoever means one or the other says so with these.
 */

/** A copy, a plain `Uint8Array` that shares nothing. */
export function copyOf(bytes: Uint8Array, from = 0, until = bytes.length): Uint8Array {
  const copy = new Uint8Array(until - from);
  copy.set(from === 0 && until === bytes.length ? bytes : bytes.subarray(from, until));
  return copy;
}

/** A view, a plain `Uint8Array`. */
export function viewPart(bytes: Uint8Array, from: number, until: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + from, until - from);
}
