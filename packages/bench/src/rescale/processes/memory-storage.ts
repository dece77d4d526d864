import { assert, type Clock, type NodeId } from '@webdfs/base';
import { contentOf } from './content.ts';
import { DevicePace, type NodeStorage } from './node-storage.ts';

/** One node's bytes, in this process's memory, at the pace of a device. */
export class MemoryStorage implements NodeStorage {
  readonly #files = new Map<number, Uint8Array>();
  readonly #pace: DevicePace;

  constructor(rates: { readonly read: number; readonly write: number }, clock: Clock) {
    this.#pace = new DevicePace(rates, clock);
  }

  contents(): Iterable<readonly [file: number, bytes: Uint8Array]> {
    return this.#files;
  }

  generate(_node: NodeId, file: number, bytes: number): void {
    this.#files.set(file, contentOf(file, bytes));
  }

  read(_node: NodeId, file: number, bytes: number, done: (payload: Uint8Array) => void): void {
    const payload = this.#files.get(file);
    assert(payload !== undefined, 'what is read is there');
    this.#pace.read(bytes, () => done(payload));
  }

  write(_node: NodeId, file: number, bytes: number, payload: Uint8Array, done: () => void): void {
    this.#pace.write(bytes, () => {
      this.#files.set(file, payload);
      done();
    });
  }

  close(): void {
    this.#files.clear();
  }
}
