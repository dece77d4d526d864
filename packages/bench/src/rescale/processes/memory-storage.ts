import { assert, type Clock, crc32c, type NodeId } from '@webdfs/base';
import type { Storage } from '../parts.ts';
import { TokenBucket } from './token-bucket.ts';

const STAMP_BYTES = 8;

/** What a file's bytes are: the same everywhere, and no two files alike. */
export function contentOf(file: number, bytes: number): Uint8Array {
  const content = new Uint8Array(bytes).fill((file * 31 + 7) & 255);
  if (bytes >= STAMP_BYTES) new DataView(content.buffer).setFloat64(0, file + 0.5, true);
  return content;
}

/** Whether some bytes are those of a file. */
export function isIntact(file: number, payload: Uint8Array): boolean {
  return crc32c(payload) === crc32c(contentOf(file, payload.length));
}

/** One node's bytes, in this process's memory, behind a device of a given rate. */
export class MemoryStorage implements Storage {
  readonly #files = new Map<number, Uint8Array>();
  readonly #reading: TokenBucket;
  readonly #device: TokenBucket;
  readonly #readCost: number;

  /** @param rates  of the device, which reads and writes in turn; bytes per second */
  constructor(rates: { readonly read: number; readonly write: number }, clock: Clock) {
    // one device: bytes that are read count as many as could be written meanwhile
    this.#readCost = rates.read === Infinity ? 0 : rates.write / rates.read;
    this.#device = new TokenBucket(rates.write, clock);
    this.#reading = this.#readCost === 0 ? new TokenBucket(Infinity, clock) : this.#device;
  }

  get files(): ReadonlyMap<number, Uint8Array> {
    return this.#files;
  }

  generate(_node: NodeId, file: number, bytes: number): void {
    this.#files.set(file, contentOf(file, bytes));
  }

  read(_node: NodeId, file: number, bytes: number, done: (payload: Uint8Array) => void): void {
    const payload = this.#files.get(file);
    assert(payload !== undefined, 'what is read is there');
    this.#reading.take(bytes * this.#readCost, () => done(payload));
  }

  write(_node: NodeId, file: number, bytes: number, payload: Uint8Array, done: () => void): void {
    this.#device.take(bytes, () => {
      this.#files.set(file, payload);
      done();
    });
  }
}
