import { assert, EMPTY, WebdfsError } from '@webdfs/base';
import { FLAG_LAST } from './frame.ts';
import type { Limits } from './limits.ts';
import type { Outgoing, Piece } from './transport.ts';

/** What a body asks of the session it is sent by. */
export interface BodyCarrier {
  /** The body has something to send. */
  wake(body: OutgoingBody): void;
}

/** Packs a frame of a body; `Lane.sendData`. */
export type SendData = (bytes: Uint8Array, flags: number, sent: (() => void) | undefined) => void;

/** More credit than any window makes sense for: a peer that grants it is broken. */
const MOST_CREDIT = 64 * 1024 * 1024;

/** The sending end of a body: pieces wait here for their turn and for credit. */
export class OutgoingBody implements Outgoing {
  readonly #limits: Limits;
  readonly #onCancel: (reason: string) => void;
  #pieces: Piece[] = [];
  /** Bytes of the first piece that have been packed. */
  #at = 0;
  #queuedBytes = 0;
  #credit: number;
  #carrier: BodyCarrier | undefined;
  #ending = false;
  #lastSent = false;
  #error: WebdfsError | undefined;
  /** The other end wants no more, and that is fine. */
  #discarding = false;
  #waiters: { resolve: () => void; reject: (error: WebdfsError) => void }[] = [];
  /** True while it stands in its session's queue. */
  lined = false;
  /** Called once, after the last frame was packed. */
  onDrained: (() => void) | undefined;

  /** @param onCancel  what `cancel` does beyond this end */
  constructor(limits: Limits, onCancel: (reason: string) => void) {
    this.#limits = limits;
    this.#onCancel = onCancel;
    this.#credit = limits.window;
  }

  /** The stream is open: `credit` bytes may be sent by `carrier`. */
  start(credit: number, carrier: BodyCarrier): void {
    this.#credit = credit;
    this.#carrier = carrier;
    if (this.sendable) carrier.wake(this);
  }

  get #open(): boolean {
    return this.#error === undefined && !this.#discarding;
  }

  get #full(): boolean {
    return this.#queuedBytes >= this.#credit;
  }

  /** Whether a frame could be packed now. */
  get sendable(): boolean {
    if (!this.#open || this.#carrier === undefined || this.#lastSent) return false;
    return this.#pieces.length > 0 ? this.#credit > 0 : this.#ending;
  }

  /** The last frame was packed. */
  get drained(): boolean {
    return this.#lastSent;
  }

  write(piece: Piece): boolean {
    if (!this.#open) {
      piece.release();
      return this.#error === undefined;
    }
    assert(!this.#ending, 'a body is written before its end');
    assert(this.#queuedBytes <= 2 * this.#limits.window, 'the writer of a body waits until it is ready');
    if (piece.bytes.length === 0) {
      piece.release();
      return !this.#full;
    }
    this.#pieces.push(piece);
    this.#queuedBytes += piece.bytes.length;
    if (this.#credit > 0) this.#carrier?.wake(this);
    return !this.#full;
  }

  ready(): Promise<void> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#discarding || !this.#full) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  end(): void {
    if (this.#ending) return;
    this.#ending = true;
    if (this.sendable) this.#carrier?.wake(this);
  }

  cancel(reason: string): void {
    if (!this.#open || this.#lastSent) return;
    this.fail(new WebdfsError('CANCELLED', reason));
    this.#onCancel(reason);
  }

  /** @throws WIRE_CORRUPT if it is more than a peer could have to give */
  addCredit(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > MOST_CREDIT) throw new WebdfsError('WIRE_CORRUPT', `credit of ${this.#credit} bytes`);
    if (this.sendable) this.#carrier?.wake(this);
    if (!this.#full) this.#resolve();
  }

  /** Packs one frame; only while `sendable`. */
  pack(send: SendData): void {
    const piece = this.#pieces[0];
    if (piece === undefined) {
      send(EMPTY, FLAG_LAST, undefined);
      this.#sentLast();
      return;
    }
    const length = Math.min(this.#limits.frameBytes, piece.bytes.length - this.#at, this.#credit);
    const from = this.#at;
    const whole = from + length === piece.bytes.length;
    this.#at = whole ? 0 : from + length;
    if (whole) this.#pieces.shift();
    this.#queuedBytes -= length;
    this.#credit -= length;
    const last = this.#ending && this.#pieces.length === 0;
    const bytes = from === 0 && whole ? piece.bytes : piece.bytes.subarray(from, from + length);
    // Each frame on its way holds the piece, so that a body that fails meanwhile does not give its bytes to others.
    if (!whole) piece.hold();
    send(bytes, last ? FLAG_LAST : 0, () => piece.release());
    if (last) this.#sentLast();
  }

  #sentLast(): void {
    this.#lastSent = true;
    const drained = this.onDrained;
    this.onDrained = undefined;
    drained?.();
  }

  /** The stream has failed: nothing more is sent, and whoever waits learns why. */
  fail(error: WebdfsError): void {
    if (!this.#open) return;
    this.#error = error;
    this.#drop();
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(error);
  }

  /** The answer came before the end: the rest is not wanted. */
  discard(): void {
    if (!this.#open) return;
    this.#discarding = true;
    this.#drop();
    this.#resolve();
  }

  #drop(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#queuedBytes = 0;
    for (const piece of pieces) piece.release();
  }

  #resolve(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.resolve();
  }
}
