import { closeSync, constants, fdatasync, openSync, read, readSync, rmSync, write, writeSync } from 'node:fs';
import { join } from 'node:path';
import { assert, type Clock, type NodeId, WebdfsError } from '@webdfs/base';
import { contentOf } from './content.ts';
import { DevicePace, type NodeStorage } from './node-storage.ts';

/** What a drive reads and writes in one go; so begin the slots. */
const SECTOR = 4096;
/** WebAssembly's memory begins at a page of the machine, as reading past the page cache wants; an ordinary buffer may not. */
const WASM_PAGE = 65_536;

/** What of it is used here; the types of Node.js leave it to those of browsers. */
declare const WebAssembly: {
  readonly Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

interface Slot {
  readonly position: number;
  readonly bytes: number;
}

function sectors(bytes: number): number {
  return Math.ceil(bytes / SECTOR) * SECTOR;
}

function alignedBuffer(bytes: number): Uint8Array {
  const pages = Math.ceil(bytes / WASM_PAGE);
  return new Uint8Array(new WebAssembly.Memory({ initial: pages, maximum: pages }).buffer);
}

/**
 * One node's bytes, in a file. Past the page cache (`O_DIRECT`) a write is done when it is durable; through the cache it is done when it is
 * in memory, and what is read was often never gone: figures of memory that look like those of a drive.
 */
export class DriveStorage implements NodeStorage {
  readonly #path: string;
  readonly #cached: boolean;
  readonly #descriptor: number;
  readonly #pace: DevicePace;
  readonly #slots = new Map<number, Slot>();
  /** Buffers that are not in use; there are as many as were ever in use at once. */
  readonly #buffers: Uint8Array[] = [];
  #end = 0;

  constructor(
    place: { readonly folder: string; readonly node: NodeId; readonly cached: boolean },
    rates: { readonly read: number; readonly write: number },
    clock: Clock,
  ) {
    this.#path = join(place.folder, `node-${place.node}`);
    this.#cached = place.cached;
    const { O_RDWR, O_CREAT, O_TRUNC, O_DIRECT } = constants;
    this.#descriptor = openSync(this.#path, O_RDWR | O_CREAT | O_TRUNC | (place.cached ? 0 : O_DIRECT));
    this.#pace = new DevicePace(rates, clock);
  }

  *contents(): Iterable<readonly [file: number, bytes: Uint8Array]> {
    for (const [file, { position, bytes }] of this.#slots) {
      const buffer = this.#take(bytes);
      readSync(this.#descriptor, buffer, 0, sectors(bytes), position);
      const content = buffer.slice(0, bytes);
      this.#buffers.push(buffer);
      yield [file, content];
    }
  }

  generate(_node: NodeId, file: number, bytes: number): void {
    const buffer = this.#take(bytes);
    buffer.set(contentOf(file, bytes));
    writeSync(this.#descriptor, buffer, 0, sectors(bytes), this.#slotOf(file, bytes).position);
    this.#buffers.push(buffer);
  }

  read(_node: NodeId, file: number, bytes: number, done: (payload: Uint8Array) => void): void {
    const slot = this.#slots.get(file);
    assert(slot !== undefined, 'what is read is there');
    const buffer = this.#take(bytes);
    this.#pace.read(bytes, () => {
      read(this.#descriptor, buffer, 0, sectors(bytes), slot.position, (error) => {
        this.#check(error);
        const payload = buffer.slice(0, bytes);
        this.#buffers.push(buffer);
        done(payload);
      });
    });
  }

  write(_node: NodeId, file: number, bytes: number, payload: Uint8Array, done: () => void): void {
    const buffer = this.#take(bytes);
    buffer.set(payload);
    const { position } = this.#slotOf(file, bytes);
    this.#pace.write(bytes, () => {
      write(this.#descriptor, buffer, 0, sectors(bytes), position, (error) => {
        this.#check(error);
        this.#buffers.push(buffer);
        if (this.#cached) return done();
        fdatasync(this.#descriptor, (failure) => {
          this.#check(failure);
          done();
        });
      });
    });
  }

  close(): void {
    closeSync(this.#descriptor);
    rmSync(this.#path, { force: true });
  }

  #slotOf(file: number, bytes: number): Slot {
    const slot = { position: this.#end, bytes };
    this.#slots.set(file, slot);
    this.#end += sectors(bytes);
    return slot;
  }

  #take(bytes: number): Uint8Array {
    const free = this.#buffers.pop();
    return free !== undefined && free.length >= sectors(bytes) ? free : alignedBuffer(sectors(bytes));
  }

  #check(error: Error | null): void {
    if (error !== null) throw new WebdfsError('DISK_FAILED', `${this.#path}: ${error.message}`, { cause: error });
  }
}
