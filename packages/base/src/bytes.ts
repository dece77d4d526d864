import { WebdfsError } from './errors.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

export const EMPTY: Uint8Array = new Uint8Array(0);

export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** @throws TypeError if the bytes are not UTF-8 */
export function fromUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** @throws WebdfsError INVALID if `text` is not an even number of hex digits */
export function fromHex(text: string): Uint8Array {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) throw new WebdfsError('INVALID', 'not hexadecimal digits');
  return new Uint8Array(Buffer.from(text, 'hex'));
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/**
 * The same bytes as a plain `Uint8Array`: `slice` of a `Buffer` is a view of it, that of a `Uint8Array` a copy. Copies only
 * the wrapper.
 */
export function plain(bytes: Uint8Array): Uint8Array {
  if (Object.getPrototypeOf(bytes) === Uint8Array.prototype) return bytes;
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Lexicographic order of bytes: negative, 0 or positive. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && Buffer.compare(a, b) === 0;
}

/** Packs little-endian fields into a buffer that grows; `take` gives a copy of what was written. */
export class Writer {
  #bytes: Uint8Array;
  #view: DataView;
  #length = 0;

  constructor(size = 256) {
    this.#bytes = new Uint8Array(size);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  #room(count: number): number {
    const offset = this.#length;
    const needed = offset + count;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, offset));
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#length = needed;
    return offset;
  }

  u8(value: number): this {
    const offset = this.#room(1);
    this.#view.setUint8(offset, value);
    return this;
  }

  u16(value: number): this {
    const offset = this.#room(2);
    this.#view.setUint16(offset, value, true);
    return this;
  }

  u32(value: number): this {
    const offset = this.#room(4);
    this.#view.setUint32(offset, value, true);
    return this;
  }

  /** An integer of 0..2^53−1 in eight bytes. */
  u53(value: number): this {
    const offset = this.#room(8);
    this.#view.setUint32(offset, value >>> 0, true);
    this.#view.setUint32(offset + 4, Math.floor(value / 4_294_967_296), true);
    return this;
  }

  raw(bytes: Uint8Array): this {
    const offset = this.#room(bytes.length);
    this.#bytes.set(bytes, offset);
    return this;
  }

  /** u16 length, then the bytes. */
  short(bytes: Uint8Array): this {
    if (bytes.length > 65_535) throw new WebdfsError('TOO_LARGE', `field has ${bytes.length} bytes, limit 65535`);
    return this.u16(bytes.length).raw(bytes);
  }

  /** u32 length, then the bytes. */
  long(bytes: Uint8Array): this {
    return this.u32(bytes.length).raw(bytes);
  }

  /** UTF-8 text of at most 65 535 bytes, u16 length first. */
  text(text: string): this {
    return this.short(utf8(text));
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }
}

/** Reads what `Writer` wrote, from foreign bytes: every read is checked. */
export class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #offset: number;

  constructor(bytes: Uint8Array, offset = 0) {
    // so that `slice` of what is read is a copy, wherever the bytes came from
    this.#bytes = plain(bytes);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#offset = offset;
  }

  get offset(): number {
    return this.#offset;
  }

  get left(): number {
    return this.#bytes.length - this.#offset;
  }

  #take(count: number): number {
    const offset = this.#offset;
    if (offset + count > this.#bytes.length) {
      throw new WebdfsError('CORRUPT', `message ends at byte ${this.#bytes.length}, wanted ${count} at ${offset}`);
    }
    this.#offset = offset + count;
    return offset;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  /** @throws WebdfsError CORRUPT if the number is 2^53 or more */
  u53(): number {
    const offset = this.#take(8);
    const high = this.#view.getUint32(offset + 4, true);
    if (high > 0x1fffff) throw new WebdfsError('CORRUPT', 'number beyond 2^53');
    return high * 4_294_967_296 + this.#view.getUint32(offset, true);
  }

  /** A view, not a copy. */
  raw(count: number): Uint8Array {
    const offset = this.#take(count);
    return this.#bytes.subarray(offset, offset + count);
  }

  short(): Uint8Array {
    return this.raw(this.u16());
  }

  long(): Uint8Array {
    return this.raw(this.u32());
  }

  text(): string {
    return fromUtf8(this.short());
  }

  /** The rest, as a view. */
  rest(): Uint8Array {
    return this.raw(this.left);
  }

  /** @throws WebdfsError CORRUPT if bytes are left over */
  end(): void {
    if (this.left !== 0) throw new WebdfsError('CORRUPT', `${this.left} bytes after the end of the message`);
  }
}
