import { createHash } from 'node:crypto';
import { SeededRandom } from '@webdfs/base';

/** Bytes that somebody wrote, or will write: a value of the history. */
export interface Value {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** As a put in one piece shows it, or an upload of these parts. */
  readonly etag: string;
  readonly parts: readonly Uint8Array[];
}

function md5(bytes: Uint8Array): Buffer {
  return createHash('md5').update(bytes).digest();
}

function etagOf(parts: readonly Uint8Array[]): string {
  if (parts.length === 0) return '';
  const whole = md5(Buffer.concat(parts.map((part) => md5(part))));
  return `${whole.toString('hex')}-${parts.length}`;
}

/** All values of a run. No two have the same bytes, so what is read tells who wrote it, and whether it is whole. */
export class ValueBook {
  readonly #byEtag = new Map<string, Value>();
  #count = 0;

  /** A new value in one piece. */
  whole(size: number): Value {
    const bytes = this.#bytes(size);
    return this.#keep({ bytes, etag: md5(bytes).toString('hex'), parts: [] });
  }

  /** A new value in parts. */
  inParts(sizes: readonly number[]): Value {
    const parts = sizes.map((size) => this.#bytes(size));
    return this.#keep({ bytes: new Uint8Array(Buffer.concat(parts)), etag: etagOf(parts), parts });
  }

  /** The value with this ETag, if anybody ever wrote it. */
  find(etag: string): Value | undefined {
    return this.#byEtag.get(etag);
  }

  #bytes(size: number): Uint8Array {
    this.#count += 1;
    const bytes = new SeededRandom(this.#count * 7_919).bytes(size);
    bytes.set(Buffer.from(`${this.#count};`).subarray(0, size));
    return bytes;
  }

  #keep(value: Omit<Value, 'name'>): Value {
    const named = { ...value, name: `v${this.#byEtag.size + 1}` };
    this.#byEtag.set(value.etag, named);
    return named;
  }
}
