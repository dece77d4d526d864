import type { Clock, Timer } from '@webdfs/base';
import { type Answer, type Piece, PieceBody, SlowBody } from './answer.ts';
import type { Exchange } from './exchange.ts';
import { DRAIN_BYTES, LINGER_SECONDS, PIECES_IN_FLIGHT, STAY_ALIVE_MS } from './limits.ts';

export interface SendOptions {
  readonly clock: Clock;
  /** Flat headers that every answer carries. */
  readonly common: readonly string[];
  /** Close the connection after this answer. */
  readonly close: boolean;
  /** The document for an error of a slow answer that has begun. */
  readonly documentOf: (error: unknown) => string;
  /** The answer for an error of a slow answer that has not begun. */
  readonly answerOf: (error: unknown) => Answer;
}

const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
/** How much of a piece is written at once, bytes; a write's callback is what tells that it moved. */
const SLICE_BYTES = 262_144;

/**
 * Sends an answer: one head, and for whole bodies one write for head and body. Never throws for what the client does; an
 * error of the body's source after the head has gone destroys the connection, because a body shorter than its length is the
 * only honest signal left.
 *
 * @throws what the body's source throws
 */
export async function send(exchange: Exchange, answer: Answer, options: SendOptions): Promise<void> {
  const { body } = answer;
  if (exchange.response.destroyed) return;
  if (body instanceof SlowBody) return await sendSlow(exchange, answer, body, options);
  if (body instanceof PieceBody) return await sendPieces(exchange, answer, body, options);
  sendWhole(exchange, answer, body, options);
}

function headOf(exchange: Exchange, answer: Answer, length: number | undefined, options: SendOptions): string[] {
  const head = [...answer.headers, 'x-amz-request-id', exchange.id, ...options.common];
  if (length !== undefined) head.push('Content-Length', String(length));
  if (options.close || exchange.waitsForContinue || tooMuchUnread(exchange)) head.push('Connection', 'close');
  return head;
}

function tooMuchUnread(exchange: Exchange): boolean {
  return exchange.hasUnreadBody && (exchange.announced ?? Infinity) > DRAIN_BYTES;
}

function sendWhole(
  exchange: Exchange,
  answer: Answer,
  body: string | Uint8Array | undefined,
  options: SendOptions,
): void {
  const { response } = exchange;
  const size = typeof body === 'string' ? Buffer.byteLength(body) : (body?.length ?? 0);
  const bodiless = answer.status === 304 || answer.status === 204;
  const head = headOf(exchange, answer, bodiless ? undefined : (answer.length ?? size), options);
  exchange.sending(size);
  response.writeHead(answer.status, head);
  const shown = exchange.method === 'HEAD' || bodiless ? undefined : body;
  if (exchange.hasUnreadBody && !exchange.waitsForContinue) return linger(exchange, shown, options);
  response.end(shown);
}

/**
 * Answers while the client may still be sending. Closing at once would reset the connection and take the answer with
 * it: so the rest is read and dropped, for a while.
 */
function linger(exchange: Exchange, body: string | Uint8Array | undefined, options: SendOptions): void {
  const { request, response } = exchange;
  const closes = tooMuchUnread(exchange) || options.close;
  if (body !== undefined) response.write(body);
  else response.flushHeaders();
  const finish = (): void => {
    timer.cancel();
    request.off('end', finish);
    response.end();
  };
  const timer = options.clock.after(LINGER_SECONDS * 1_000, () => {
    finish();
    if (!closes) request.socket.destroy();
  });
  response.once('close', () => timer.cancel());
  request.on('error', () => undefined);
  request.once('end', finish);
  request.resume();
}

/** The first piece is there before the head goes out: what fails until then is still answered as an error. */
async function sendPieces(exchange: Exchange, answer: Answer, body: PieceBody, options: SendOptions): Promise<void> {
  const { response } = exchange;
  const pieces = body.pieces[Symbol.asyncIterator]();
  let next = await pieces.next();
  const outlet = new Outlet(exchange);
  let sent = 0;
  try {
    response.writeHead(answer.status, headOf(exchange, answer, body.length, options));
    for (; next.done !== true; next = await pieces.next()) {
      const piece = next.value;
      sent += piece.bytes.length;
      if (sent > body.length || !outlet.open) {
        piece.release();
        break;
      }
      outlet.write(piece);
      if (outlet.inFlight >= PIECES_IN_FLIGHT) await outlet.room();
    }
  } catch (error) {
    exchange.request.socket.destroy();
    throw error;
  }
  if (next.done !== true) await pieces.return?.();
  if (!outlet.open) return;
  if (sent === body.length) response.end();
  else exchange.request.socket.destroy();
}

/** Pieces between the object layer and the socket: each is released once, when it has left or the connection has. */
class Outlet {
  readonly #exchange: Exchange;
  readonly #held = new Set<Piece>();
  #closed = false;
  #wake: (() => void) | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    this.#closed = exchange.response.destroyed;
    exchange.response.once('close', () => this.#close());
  }

  get open(): boolean {
    return !this.#closed;
  }

  get inFlight(): number {
    return this.#held.size;
  }

  write(piece: Piece): void {
    const { bytes } = piece;
    this.#held.add(piece);
    if (this.inFlight === 1) this.#exchange.sending(SLICE_BYTES);
    let offset = 0;
    for (; offset + SLICE_BYTES < bytes.length; offset += SLICE_BYTES) {
      this.#exchange.response.write(bytes.subarray(offset, offset + SLICE_BYTES), this.#moved);
    }
    this.#exchange.response.write(bytes.subarray(offset), () => this.#release(piece));
  }

  /** Resolves when one piece more may be written, or none ever. */
  room(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closed || this.inFlight < PIECES_IN_FLIGHT) return resolve();
      this.#wake = resolve;
    });
  }

  readonly #moved = (): void => {
    this.#exchange.sending(SLICE_BYTES);
  };

  #release(piece: Piece): void {
    if (!this.#held.delete(piece)) return;
    piece.release();
    if (this.inFlight > 0) this.#moved();
    else this.#exchange.rest();
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  #close(): void {
    this.#closed = true;
    for (const piece of this.#held) this.#release(piece);
    this.#wake?.();
  }
}

async function sendSlow(exchange: Exchange, answer: Answer, body: SlowBody, options: SendOptions): Promise<void> {
  const { response } = exchange;
  let timer: Timer | undefined;
  let begun = false;
  const stayAlive = (): void => {
    if (response.destroyed) return;
    if (begun) response.write(' ');
    else {
      begun = true;
      response.writeHead(answer.status, headOf(exchange, answer, undefined, options));
      response.write(XML_DECLARATION);
    }
    timer = options.clock.after(STAY_ALIVE_MS, stayAlive);
  };
  timer = options.clock.after(STAY_ALIVE_MS, stayAlive);
  try {
    const document = await body.work;
    timer.cancel();
    if (begun) response.end(document);
    else sendWhole(exchange, answer, XML_DECLARATION + document, options);
  } catch (error) {
    timer.cancel();
    const refused = options.answerOf(error);
    if (begun) response.end(options.documentOf(error));
    else await send(exchange, refused, options);
  }
}
