import { type Clock, TokenBucket } from '@webdfs/base';
import type { Storage } from '../parts.ts';

/** The storage of one node that is a process of its own. */
export interface NodeStorage extends Storage {
  /** All that it holds, by file, read again from where it lies. */
  contents(): Iterable<readonly [file: number, bytes: Uint8Array]>;
  close(): void;
}

/** Where a node's bytes lie. */
export type StorageKind =
  | { readonly kind: 'memory' }
  /** A file in a folder; past the page cache, every write durable, or through it, where a write is done once it is in memory. */
  | { readonly kind: 'drive'; readonly folder: string; readonly cached: boolean };

/** A device that reads and writes in turn, each at a rate of its own: one bucket for both. */
export class DevicePace {
  readonly #bucket: TokenBucket;
  readonly #readCost: number;
  readonly #writeCost: number;

  /** @param rates  bytes per second; `Infinity` never waits */
  constructor(rates: { readonly read: number; readonly write: number }, clock: Clock) {
    // the bucket counts microseconds of the device
    this.#bucket = new TokenBucket(1e6, clock);
    this.#readCost = 1e6 / rates.read;
    this.#writeCost = 1e6 / rates.write;
  }

  read(bytes: number, action: () => void): void {
    this.#bucket.take(bytes * this.#readCost, action);
  }

  write(bytes: number, action: () => void): void {
    this.#bucket.take(bytes * this.#writeCost, action);
  }
}
