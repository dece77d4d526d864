import { WebdfsError } from '@webdfs/base';
import type { Lender } from './slabs.ts';
import type { Incoming, Piece } from './transport.ts';

export interface IncomingOptions {
  /** Credit that the sender starts with. */
  readonly window: number;
  /** Gives the sender more. */
  readonly onCredit: (bytes: number) => void;
  readonly onCancel: (reason: string) => void;
  /** The body is over for good: taken to its end and released, or failed. */
  readonly onDone: () => void;
}

/** The receiving end of a body. Credit is given back when pieces are released, not when they arrive. */
export class IncomingBody implements Incoming, Lender {
  readonly #options: IncomingOptions;
  #pieces: Piece[] = [];
  /** What the sender may still send, and what it is owed. */
  #allowed: number;
  #owed = 0;
  /** Bytes of pieces that were not released yet. */
  #lent = 0;
  #complete = false;
  #error: WebdfsError | undefined;
  #done = false;
  #waiters: { resolve: () => void; reject: (error: WebdfsError) => void }[] = [];

  constructor(options: IncomingOptions) {
    this.#options = options;
    this.#allowed = options.window;
  }

  /** The sender has sent its last byte. */
  get complete(): boolean {
    return this.#complete;
  }

  /** Over for good: taken to its end and released, or failed. */
  get done(): boolean {
    return this.#done;
  }

  get ended(): boolean {
    return this.#complete && this.#pieces.length === 0;
  }

  /** The next bytes have come; `lend` makes a piece of them, if they are wanted. @throws WIRE_CORRUPT beyond the credit */
  push(count: number, last: boolean, lend: () => Piece): void {
    if (this.#complete) throw new WebdfsError('WIRE_CORRUPT', 'bytes after the end of a body');
    this.#allowed -= count;
    if (this.#allowed < 0) throw new WebdfsError('WIRE_CORRUPT', 'more bytes of a body than credit');
    if (this.#error !== undefined) return;
    if (count > 0) {
      this.#lent += count;
      this.#pieces.push(lend());
    }
    if (last) this.#complete = true;
    if (count > 0 || last) this.#resolve();
    if (last) this.#settle();
  }

  take(): Piece | undefined {
    return this.#pieces.shift();
  }

  ready(): Promise<void> {
    if (this.#pieces.length > 0 || this.#complete) return Promise.resolve();
    if (this.#error !== undefined) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  cancel(reason: string): void {
    if (this.#error !== undefined || this.ended) return;
    const wasComplete = this.#complete;
    this.dispose(new WebdfsError('CANCELLED', reason));
    if (!wasComplete) this.#options.onCancel(reason);
  }

  /** Nobody wants the rest, even if it has come. */
  dispose(error: WebdfsError): void {
    if (this.ended) return;
    this.#complete = false;
    this.fail(error);
  }

  /** The stream has failed. A body that has already come whole stays whole. */
  fail(error: WebdfsError): void {
    if (this.#error !== undefined || this.#complete) return;
    this.#error = error;
    const pieces = this.#pieces;
    this.#pieces = [];
    for (const piece of pieces) piece.release();
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(error);
    this.#settle();
  }

  released(bytes: number): void {
    this.#lent -= bytes;
    if (!this.#complete && this.#error === undefined) {
      this.#owed += bytes;
      if (this.#owed * 2 >= this.#options.window) {
        this.#allowed += this.#owed;
        this.#options.onCredit(this.#owed);
        this.#owed = 0;
      }
    }
    this.#settle();
  }

  #settle(): void {
    if (this.#done || this.#lent > 0 || !(this.#complete || this.#error !== undefined)) return;
    this.#done = true;
    this.#options.onDone();
  }

  #resolve(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.resolve();
  }
}
