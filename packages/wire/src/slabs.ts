import { assert } from '@webdfs/base';
import type { Piece } from './transport.ts';

export const SLAB_BYTES = 256 * 1024;
/** A slab with less room than this is not read into any more. */
const LEAST_ROOM = 64 * 1024;

/** Receives what a lent piece gives back. */
export interface Lender {
  /** The last reference to so many bytes of a body was released. */
  released(bytes: number): void;
}

class Slab {
  readonly bytes: Uint8Array = new Uint8Array(SLAB_BYTES);
  /** One for the lane that reads into it, one for each piece. */
  references = 0;
}

/**
 * All receive buffers of a node: at most `slabs` of 256 KiB, reused. When they run short, pieces are copied off them as
 * they arrive (at most `copiedBytes` together), so that a slow reader of one body does not hold what others need.
 */
export class SlabPool {
  readonly #slabs: number;
  readonly #copiedLimit: number;
  readonly #poison: boolean;
  readonly #free: Slab[] = [];
  #made = 0;
  #copied = 0;
  #lent = 0;
  #waiting: (() => void)[] = [];

  /** @param options.poison  overwrites released pieces, so that a late reader is caught; for tests */
  constructor(options: { slabs: number; copiedBytes: number; poison?: boolean }) {
    this.#slabs = options.slabs;
    this.#copiedLimit = options.copiedBytes;
    this.#poison = options.poison ?? false;
  }

  /** Pieces lent and not yet released. */
  get lent(): number {
    return this.#lent;
  }

  /** Slabs that exist. */
  get made(): number {
    return this.#made;
  }

  get copiedBytes(): number {
    return this.#copied;
  }

  get #available(): number {
    return this.#free.length + this.#slabs - this.#made;
  }

  /** Calls `action` once a slab is free. */
  wait(action: () => void): void {
    this.#waiting.push(action);
  }

  hasFree(): boolean {
    return this.#available > 0;
  }

  take(): Slab | undefined {
    let slab = this.#free.pop();
    if (slab === undefined) {
      if (this.#made === this.#slabs) return undefined;
      this.#made++;
      slab = new Slab();
    }
    slab.references = 1;
    return slab;
  }

  drop(slab: Slab): void {
    assert(slab.references > 0, 'a slab is released as often as it was held');
    if (--slab.references > 0) return;
    this.#free.push(slab);
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const action of waiting) action();
  }

  /** Lends a part of a slab, or (without one, or when slabs are short) a copy of the bytes. */
  lend(bytes: Uint8Array, slab: Slab | undefined, lender: Lender): Piece {
    this.#lent++;
    const short = this.#available * 4 < this.#slabs && this.#copied < this.#copiedLimit;
    if (slab !== undefined && !short) {
      slab.references++;
      return new LentPiece(bytes, slab, lender, this);
    }
    this.#copied += bytes.length;
    return new LentPiece(bytes.slice(), undefined, lender, this);
  }

  /** The last reference to a piece is gone. */
  giveBack(bytes: Uint8Array, slab: Slab | undefined, lender: Lender): void {
    this.#lent--;
    if (this.#poison) bytes.fill(0xdb);
    if (slab === undefined) this.#copied -= bytes.length;
    else this.drop(slab);
    lender.released(bytes.length);
  }
}

class LentPiece implements Piece {
  readonly bytes: Uint8Array;
  readonly #slab: Slab | undefined;
  readonly #lender: Lender;
  readonly #pool: SlabPool;
  #references = 1;

  constructor(bytes: Uint8Array, slab: Slab | undefined, lender: Lender, pool: SlabPool) {
    this.bytes = bytes;
    this.#slab = slab;
    this.#lender = lender;
    this.#pool = pool;
  }

  hold(): void {
    assert(this.#references > 0, 'a released piece is not held again');
    this.#references++;
  }

  release(): void {
    assert(this.#references > 0, 'a piece is released as often as it was held');
    if (--this.#references === 0) this.#pool.giveBack(this.bytes, this.#slab, this.#lender);
  }
}

/** The receiving side of one lane: says where the next bytes go, and lends what has come. */
export class SlabReader {
  readonly #pool: SlabPool;
  #slab: Slab | undefined;
  #at = 0;
  /** Read into when no slab is free; what lands here is copied on. */
  #spill: Uint8Array | undefined;
  #closed = false;

  constructor(pool: SlabPool) {
    this.#pool = pool;
  }

  /** Where the next bytes go. */
  space(): Uint8Array {
    if (this.#slab?.references === 1) this.#at = 0;
    if (this.#slab !== undefined && SLAB_BYTES - this.#at < LEAST_ROOM) this.#leave();
    if (this.#slab === undefined && !this.#closed) {
      this.#slab = this.#pool.take();
      this.#at = 0;
    }
    if (this.#slab !== undefined) return this.#slab.bytes.subarray(this.#at);
    this.#spill ??= new Uint8Array(LEAST_ROOM);
    return this.#spill;
  }

  /** So many bytes were read into the last `space`. */
  filled(count: number): void {
    if (this.#slab !== undefined) this.#at += count;
  }

  /** Whether there is a slab for the next read. */
  get ready(): boolean {
    if (this.#slab !== undefined && (this.#slab.references === 1 || SLAB_BYTES - this.#at >= LEAST_ROOM)) return true;
    return this.#pool.hasFree();
  }

  lend(bytes: Uint8Array, lender: Lender): Piece {
    return this.#pool.lend(bytes, this.#slab, lender);
  }

  whenReady(action: () => void): void {
    this.#pool.wait(action);
  }

  close(): void {
    this.#closed = true;
    this.#leave();
    this.#spill = undefined;
  }

  #leave(): void {
    const slab = this.#slab;
    this.#slab = undefined;
    if (slab !== undefined) this.#pool.drop(slab);
  }
}
