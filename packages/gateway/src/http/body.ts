import type { IncomingMessage } from 'node:http';
import { assert, concat, EMPTY, WebdfsError } from '@webdfs/base';
import { Refusal } from '../refusal.ts';
import { BODY_QUEUE_BYTES, GATHER_BYTES, PACE_BYTES, PACE_SECONDS, SMALL_PIECE_BYTES } from './limits.ts';
import type { Ticking, Wheel } from './wheel.ts';

/** Takes what arrives and hands on what is the object's: nothing is joined or copied. */
export interface Framing {
  /** @throws Refusal if the framing is broken */
  push(chunk: Uint8Array, emit: (piece: Uint8Array) => void): void;
  /** The body has ended. @throws Refusal if it ended too early */
  end(): void;
}

export interface BodyOptions {
  readonly wheel: Wheel;
  /** Called before the first byte is asked for: the moment to say `100 Continue`. */
  readonly begin: () => void;
  readonly framing?: Framing | undefined;
  /** Sees every piece of the object's bytes as it passes, still in the cache: hashes. */
  readonly tap?: ((piece: Uint8Array) => void) | undefined;
}

interface Waiter {
  resolve(result: IteratorResult<Uint8Array, undefined>): void;
  reject(error: unknown): void;
}

const DONE: IteratorResult<Uint8Array, undefined> = { done: true, value: undefined };

/**
 * A request's body as pieces, pulled: `data` events with `pause` and `resume` underneath. At most `BODY_QUEUE_BYTES` and
 * one read wait here. Pieces are handed over, not lent: the taker may keep them.
 *
 * Errors: CANCELLED if the client went away; Refusal RequestTimeout if it is slower than `PACE_BYTES` in `PACE_SECONDS`;
 * what the framing throws.
 */
export class Body implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array, undefined>, Ticking {
  readonly #request: IncomingMessage;
  readonly #options: BodyOptions;
  #queue: Uint8Array[] = [];
  #queued = 0;
  #started = false;
  #paused = false;
  #ended = false;
  #error: unknown;
  #waiter: Waiter | undefined;
  #whole: { limit: number } | undefined;
  #seconds = 0;
  #moved = 0;

  constructor(request: IncomingMessage, options: BodyOptions) {
    this.#request = request;
    this.#options = options;
  }

  /** All bytes in one array; with a single piece it is that piece. @throws Refusal MaxMessageLengthExceeded */
  async whole(limit: number): Promise<Uint8Array> {
    assert(!this.#started, 'a body is taken once');
    this.#whole = { limit };
    if (!this.#ended) await this.#wait();
    const [only] = this.#queue;
    const bytes = this.#queue.length === 1 && only !== undefined ? only : concat(this.#queue);
    this.#queue = [];
    return bytes;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#error !== undefined) return Promise.reject(asError(this.#error));
    if (this.#queue.length > 0) return Promise.resolve({ done: false, value: this.#take() });
    if (this.#ended) return Promise.resolve(DONE);
    return this.#wait();
  }

  /** The taker wants no more: what is still to come is dropped by whoever answers. */
  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#fail(new WebdfsError('CANCELLED', 'the body was given up'));
    return Promise.resolve(DONE);
  }

  tick(): void {
    if (this.#paused) return;
    this.#seconds += 1;
    if (this.#seconds < PACE_SECONDS) return;
    const slow = this.#moved < PACE_BYTES;
    this.#seconds = 0;
    this.#moved = 0;
    if (slow) this.#fail(new Refusal('RequestTimeout', undefined, { close: true }));
  }

  #wait(): Promise<IteratorResult<Uint8Array, undefined>> {
    assert(this.#waiter === undefined, 'one piece is asked for at a time');
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      if (!this.#started) this.#start();
    });
  }

  #start(): void {
    this.#started = true;
    const request = this.#request;
    if (request.destroyed && !request.complete) return this.#fail(gone());
    this.#options.begin();
    this.#options.wheel.add(this);
    request.on('data', this.#onData);
    request.on('end', this.#onEnd);
    request.on('error', this.#onClose);
    request.on('close', this.#onClose);
  }

  readonly #onData = (chunk: Uint8Array): void => {
    this.#moved += chunk.length;
    const { framing } = this.#options;
    try {
      if (framing === undefined) this.#emit(chunk);
      else framing.push(chunk, this.#emit);
    } catch (error) {
      return this.#fail(error);
    }
    if (this.#queue.length > 0 && this.#whole === undefined) {
      this.#settle((waiter) => waiter.resolve({ done: false, value: this.#take() }));
    }
    if (this.#queued >= BODY_QUEUE_BYTES && this.#whole === undefined) this.#pause();
  };

  readonly #emit = (piece: Uint8Array): void => {
    if (piece.length === 0) return;
    this.#options.tap?.(piece);
    this.#queue.push(piece);
    this.#queued += piece.length;
    if (this.#whole !== undefined && this.#queued > this.#whole.limit) throw new Refusal('MaxMessageLengthExceeded');
  };

  readonly #onEnd = (): void => {
    try {
      this.#options.framing?.end();
    } catch (error) {
      return this.#fail(error);
    }
    this.#ended = true;
    this.#stop();
    this.#settle((waiter) => waiter.resolve(DONE));
  };

  readonly #onClose = (): void => {
    if (!this.#ended && !this.#request.complete) this.#fail(gone());
  };

  #take(): Uint8Array {
    const [first] = this.#queue;
    assert(first !== undefined, 'a piece waits');
    const piece = first.length < SMALL_PIECE_BYTES && this.#queue.length > 1 ? this.#gather() : first;
    if (piece === first) this.#queue.shift();
    this.#queued -= piece.length;
    if (this.#paused && this.#queued < BODY_QUEUE_BYTES / 2) {
      this.#paused = false;
      this.#request.resume();
    }
    return piece;
  }

  /** Small pieces that wait become one, so that what follows is not paid for each of them. */
  #gather(): Uint8Array {
    let count = 0;
    let length = 0;
    for (const piece of this.#queue) {
      if (length + piece.length > GATHER_BYTES) break;
      length += piece.length;
      count += 1;
    }
    return concat(this.#queue.splice(0, count));
  }

  #pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#request.pause();
  }

  #settle(act: (waiter: Waiter) => void): void {
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    this.#waiter = undefined;
    act(waiter);
  }

  #fail(error: unknown): void {
    if (this.#error !== undefined || this.#ended) return;
    this.#error = error;
    this.#queue = [];
    this.#stop();
    this.#settle((waiter) => waiter.reject(error));
  }

  #stop(): void {
    this.#options.wheel.delete(this);
    const request = this.#request;
    request.off('data', this.#onData);
    request.off('end', this.#onEnd);
    request.off('close', this.#onClose);
    // the error listener stays: an abort that comes later must not be an uncaught exception
  }
}

/** A body of no bytes. */
export const NO_BODY: Uint8Array = EMPTY;

function gone(): WebdfsError {
  return new WebdfsError('CANCELLED', 'the client went away');
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
