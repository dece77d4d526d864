import { concat, fromUtf8, messageOf, utf8, WebdfsError } from '@webdfs/base';

/** A frame is a length (u32, little-endian) and as many bytes of JSON. */
export const MAX_FRAME_BYTES = 8 * 1024 * 1024;
const LENGTH_BYTES = 4;

export function packFrame(message: unknown): Uint8Array {
  const payload = utf8(JSON.stringify(message));
  if (payload.length > MAX_FRAME_BYTES) {
    throw new WebdfsError('TOO_LARGE', `a message of ${payload.length} bytes, limit ${MAX_FRAME_BYTES}`);
  }
  const frame = new Uint8Array(LENGTH_BYTES + payload.length);
  new DataView(frame.buffer).setUint32(0, payload.length, true);
  frame.set(payload, LENGTH_BYTES);
  return frame;
}

/** Cuts a stream of bytes into frames. Holds at most one unfinished frame. */
export class FrameReader {
  #parts: Uint8Array[] = [];
  #length = 0;

  /** @throws WIRE_CORRUPT if a frame is too long or not an object in JSON */
  push(bytes: Uint8Array): Record<string, unknown>[] {
    this.#parts.push(bytes);
    this.#length += bytes.length;
    const messages: Record<string, unknown>[] = [];
    while (this.#length >= LENGTH_BYTES) {
      const first = this.#gather(LENGTH_BYTES);
      const length = new DataView(first.buffer, first.byteOffset).getUint32(0, true);
      if (length > MAX_FRAME_BYTES) {
        throw new WebdfsError('WIRE_CORRUPT', `a frame of ${length} bytes, limit ${MAX_FRAME_BYTES}`);
      }
      if (this.#length < LENGTH_BYTES + length) break;
      const whole = this.#gather(LENGTH_BYTES + length);
      messages.push(parseMessage(whole.subarray(LENGTH_BYTES, LENGTH_BYTES + length)));
      this.#drop(LENGTH_BYTES + length);
    }
    return messages;
  }

  /** The first part, made at least `count` bytes long. */
  #gather(count: number): Uint8Array {
    if (this.#parts[0]!.length < count) this.#parts = [concat(this.#parts)];
    return this.#parts[0]!;
  }

  #drop(count: number): void {
    const rest = this.#parts[0]!.subarray(count);
    if (rest.length > 0) this.#parts[0] = rest;
    else this.#parts.shift();
    this.#length -= count;
  }
}

function parseMessage(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(fromUtf8(bytes));
  } catch (error) {
    throw new WebdfsError('WIRE_CORRUPT', `a frame is not JSON: ${messageOf(error)}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new WebdfsError('WIRE_CORRUPT', 'a frame is not an object');
  }
  return value as Record<string, unknown>;
}
