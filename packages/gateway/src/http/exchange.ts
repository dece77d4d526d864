import type { IncomingMessage, ServerResponse } from 'node:http';
import { Refusal } from '../refusal.ts';
import { Body, type BodyOptions } from './body.ts';
import { type Headers, readHeaders } from './headers.ts';
import { secondsFor, type Ticking, type Wheel } from './wheel.ts';
import { Query } from './query.ts';
import { parseTarget, type Target } from './target.ts';

export interface ExchangeOptions {
  readonly id: string;
  readonly nowMs: number;
  readonly wheel: Wheel;
  /** The client waits for `100 Continue`. */
  readonly expects: boolean;
}

const EMPTY_HEADERS: Headers = new Map();
const NO_TARGET: Target = { path: '/', query: '', authority: undefined };

/** One request and its answer, from the first header to the last byte. */
export class Exchange implements Ticking {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly id: string;
  /** The wall clock at the request's beginning: one reading for all that needs the time. */
  readonly nowMs: number;
  readonly method: string;
  headers: Headers = EMPTY_HEADERS;
  target: Target = NO_TARGET;
  query: Query = Query.NONE;
  /** What stands for the Host header. */
  host = '';
  readonly #wheel: Wheel;
  #expects: boolean;
  #controller: AbortController | undefined;
  #gone = false;
  #bodyTaken = false;
  /** Seconds that what is being sent has not moved, and how many it may. */
  #seconds = 0;
  #allowed = 0;

  constructor(request: IncomingMessage, response: ServerResponse, options: ExchangeOptions) {
    this.request = request;
    this.response = response;
    this.id = options.id;
    this.nowMs = options.nowMs;
    this.method = request.method ?? '';
    this.#wheel = options.wheel;
    this.#expects = options.expects;
  }

  /**
   * Reads target, query and headers.
   *
   * @throws Refusal for what HTTP or S3 do not allow
   */
  parse(): void {
    this.headers = readHeaders(this.request.rawHeaders);
    this.target = parseTarget(this.request.url ?? '');
    const host = this.target.authority ?? this.headers.get('host');
    if (host === undefined || host === '') throw new Refusal('InvalidRequest', 'The Host header is missing.');
    this.host = host;
    const coding = this.headers.get('transfer-encoding');
    if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
      throw new Refusal('NotImplemented', 'The only transfer coding is chunked.', { close: true });
    }
    this.query = Query.parse(this.target.query);
  }

  /** Length of the body on the wire; undefined if it comes in HTTP's chunks. */
  get announced(): number | undefined {
    const length = this.headers.get('content-length');
    if (length !== undefined) return Number(length);
    return this.headers.has('transfer-encoding') ? undefined : 0;
  }

  /** Whether the request says that a body follows, be it an empty one. */
  get announcesBody(): boolean {
    return this.headers.has('content-length') || this.headers.has('transfer-encoding');
  }

  /** Aborted when the client goes away. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#gone) this.#controller.abort();
    return this.#controller.signal;
  }

  /** The client went away before the answer was out. */
  abort(): void {
    this.#gone = true;
    this.#controller?.abort();
  }

  /** The body, once. `100 Continue` goes out when its first byte is asked for. */
  body(options: Pick<BodyOptions, 'framing' | 'tap'> = {}): Body {
    this.#bodyTaken = true;
    return new Body(this.request, { ...options, wheel: this.#wheel, begin: () => this.#begin() });
  }

  #begin(): void {
    if (!this.#expects) return;
    this.#expects = false;
    this.response.writeContinue();
  }

  /** Whether the client still waits for `100 Continue`: it has sent nothing of the body and we have not asked. */
  get waitsForContinue(): boolean {
    return this.#expects;
  }

  /** Whether bytes of the body may still be on their way. */
  get hasUnreadBody(): boolean {
    return this.announced !== 0 && !(this.#bodyTaken && this.request.complete);
  }

  /** So many bytes were handed to the socket; they must move at the door's pace. */
  sending(bytes: number): void {
    this.#seconds = 0;
    this.#allowed = secondsFor(bytes);
  }

  /** Nothing waits for the client. */
  rest(): void {
    this.#allowed = 0;
  }

  tick(): void {
    if (this.#allowed === 0) return;
    this.#seconds += 1;
    if (this.#seconds >= this.#allowed) this.request.socket.destroy();
  }
}
