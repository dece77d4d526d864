import {
  EMPTY,
  ERROR_CODES,
  type ErrorCode,
  fromUtf8,
  Reader,
  WebdfsError,
  type WebdfsErrorOptions,
  Writer,
} from '@webdfs/base';
import { putU16, putU32, u16At, u32At } from './frame.ts';
import type { Limits } from './limits.ts';
import { type Message, NO_ATTACHMENT } from './transport.ts';

/**
 * The head of CALL, OPEN and POST:
 *
 * ```
 * offset  size  field
 *      0     2  verb
 *      2     2  attached  count of attached buffers, n
 *      4     4  left      milliseconds left; 0 in POST
 *      8     8  trace     the caller's number for this piece of work, below 2^53; 0 = none
 *     16     4  window    OPEN: credit the sender starts with; CALL on a bodies lane: credit the asker grants; else 0
 *     20    4n  lengths   of the attached buffers, in order
 *  20+4n        the verb's own head
 * ```
 */
export interface CallHead {
  readonly verb: number;
  readonly leftMs: number;
  readonly trace: number;
  readonly window: number;
}

export const CALL_HEAD_BYTES = 20;
/** The head of REPLY: `0 u16 attached count n | 2 u16 zero | 4 lengths, u32 × n | the verb's own head`. */
export const REPLY_HEAD_BYTES = 4;

const FAIL_HEAD_BYTES = 8;
const MAX_TEXT = 512;
const MAX_DETAILS = 4096;

/** Why a stream was cancelled; the number in CANCEL. */
export const CANCEL_REASON = { GAVE_UP: 1, TIME_OVER: 2 } as const;
/** Why a connection ends; the number in GOAWAY. */
export const GOAWAY_REASON = { CLOSING: 1, VERSION: 2 } as const;

function attachedBytes(message: Message): number {
  let bytes = 0;
  for (const part of message.attached) bytes += part.length;
  return bytes;
}

/** @throws TOO_LARGE if the message does not fit one frame */
export function checkMessage(message: Message, prefixBytes: number, limits: Limits): void {
  const count = message.attached.length;
  const head = prefixBytes + 4 * count + message.head.length;
  if (count > limits.maxAttached) {
    throw new WebdfsError('TOO_LARGE', `message with ${count} attached buffers, limit ${limits.maxAttached}`);
  }
  if (head > limits.maxHead) {
    throw new WebdfsError('TOO_LARGE', `message head of ${head} bytes, limit ${limits.maxHead}`);
  }
  const bytes = head + attachedBytes(message);
  if (bytes > limits.maxFrame) {
    throw new WebdfsError('TOO_LARGE', `message of ${bytes} bytes, limit ${limits.maxFrame}`);
  }
}

/** Writes the call head and the verb's head at `at`; returns how many bytes. */
export function putCall(bytes: Uint8Array, at: number, head: CallHead, message: Message): number {
  const count = message.attached.length;
  putU16(bytes, at, head.verb);
  putU16(bytes, at + 2, count);
  putU32(bytes, at + 4, head.leftMs);
  putU32(bytes, at + 8, head.trace >>> 0);
  putU32(bytes, at + 12, Math.floor(head.trace / 4_294_967_296));
  putU32(bytes, at + 16, head.window);
  return CALL_HEAD_BYTES + putRest(bytes, at + CALL_HEAD_BYTES, message);
}

/** Writes the reply head and the verb's head at `at`; returns how many bytes. */
export function putReply(bytes: Uint8Array, at: number, message: Message): number {
  putU16(bytes, at, message.attached.length);
  putU16(bytes, at + 2, 0);
  return REPLY_HEAD_BYTES + putRest(bytes, at + REPLY_HEAD_BYTES, message);
}

function putRest(bytes: Uint8Array, at: number, message: Message): number {
  let offset = at;
  for (const part of message.attached) {
    putU32(bytes, offset, part.length);
    offset += 4;
  }
  bytes.set(message.head, offset);
  return offset + message.head.length - at;
}

function corrupt(what: string): WebdfsError {
  return new WebdfsError('WIRE_CORRUPT', what);
}

/** @throws WIRE_CORRUPT */
export function readCallHead(head: Uint8Array): CallHead {
  if (head.length < CALL_HEAD_BYTES) throw corrupt(`call head of ${head.length} bytes`);
  const traceHigh = u32At(head, 12);
  if (traceHigh > 0x1fffff) throw corrupt('trace beyond 2^53');
  return {
    verb: u16At(head, 0),
    leftMs: u32At(head, 4),
    trace: traceHigh * 4_294_967_296 + u32At(head, 8),
    window: u32At(head, 16),
  };
}

/** The message of a CALL, OPEN or POST frame, as views. @throws WIRE_CORRUPT if lengths do not add up */
export function readCallMessage(head: Uint8Array, attached: Uint8Array): Message {
  return readMessage(head, u16At(head, 2), CALL_HEAD_BYTES, attached);
}

/** The message of a REPLY frame, as views. @throws WIRE_CORRUPT if lengths do not add up */
export function readReply(head: Uint8Array, attached: Uint8Array): Message {
  if (head.length < REPLY_HEAD_BYTES) throw corrupt(`reply head of ${head.length} bytes`);
  if (u16At(head, 2) !== 0) throw corrupt('reply head with reserved bytes set');
  return readMessage(head, u16At(head, 0), REPLY_HEAD_BYTES, attached);
}

function readMessage(head: Uint8Array, count: number, listAt: number, attached: Uint8Array): Message {
  const headAt = listAt + 4 * count;
  if (headAt > head.length) throw corrupt(`${count} attached buffers in a head of ${head.length} bytes`);
  if (count === 0 && attached.length === 0) return { head: head.subarray(headAt), attached: NO_ATTACHMENT };
  const parts: Uint8Array[] = [];
  let offset = 0;
  for (let i = 0; i < count; i++) {
    const length = u32At(head, listAt + 4 * i);
    if (length > attached.length - offset) throw corrupt('attached buffers are longer than the frame');
    parts.push(attached.subarray(offset, offset + length));
    offset += length;
  }
  if (offset !== attached.length) throw corrupt('attached buffers are shorter than the frame');
  return { head: head.subarray(headAt), attached: parts };
}

const REMEDY_NUMBER = { caller: 0, retry: 1, operator: 2 } as const;

function shortText(text: string): Uint8Array {
  const bytes = new Uint8Array(MAX_TEXT);
  return bytes.subarray(0, new TextEncoder().encodeInto(text, bytes).written);
}

/**
 * The head of FAIL: `0 u16 code | 2 u8 remedy (0 caller, 1 retry, 2 operator) | 3 u8 zero | 4 u32 retry after ms |
 * 8 u16 length, message UTF-8 ≤ 512 | u16 length, details as JSON ≤ 4 096 (larger ones are left out)`.
 */
export function packError(error: WebdfsError): Uint8Array {
  const details = new TextEncoder().encode(JSON.stringify(error.details));
  return new Writer(64)
    .u16(ERROR_CODES.indexOf(error.code))
    .u8(REMEDY_NUMBER[error.remedy])
    .u8(0)
    .u32(Math.min(error.retryAfterMs, 0xffff_ffff))
    .short(shortText(error.message))
    .short(details.length <= 2 || details.length > MAX_DETAILS ? EMPTY : details)
    .take();
}

/** The error of a FAIL; one of a newer peer whose code is unknown here is UNAVAILABLE. @throws WIRE_CORRUPT */
export function unpackError(head: Uint8Array): WebdfsError {
  if (head.length < FAIL_HEAD_BYTES) throw corrupt(`fail head of ${head.length} bytes`);
  try {
    const reader = new Reader(head);
    const number = reader.u16();
    reader.u16();
    const retryAfterMs = reader.u32();
    const message = reader.text();
    const details = readDetails(reader.short());
    reader.end();
    const known: ErrorCode | undefined = ERROR_CODES[number];
    if (known === undefined) {
      return new WebdfsError('UNAVAILABLE', message, { details: { ...details, foreignCode: number }, retryAfterMs });
    }
    return new WebdfsError(known, message, { details, retryAfterMs });
  } catch (error) {
    throw new WebdfsError('WIRE_CORRUPT', 'unreadable fail head', { cause: error });
  }
}

function readDetails(bytes: Uint8Array): NonNullable<WebdfsErrorOptions['details']> {
  if (bytes.length === 0) return {};
  if (bytes.length > MAX_DETAILS) throw corrupt(`error details of ${bytes.length} bytes`);
  const value: unknown = JSON.parse(fromUtf8(bytes));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw corrupt('error details are no object');
  const facts: Record<string, string | number | boolean> = {};
  for (const [name, fact] of Object.entries(value)) {
    if (typeof fact === 'string' || typeof fact === 'number' || typeof fact === 'boolean') facts[name] = fact;
  }
  return facts;
}

/** The head of CANCEL: `0 u16 reason | UTF-8 ≤ 512`. */
export function packCancel(reason: number, text: string): Uint8Array {
  return new Writer(32).u16(reason).raw(shortText(text)).take();
}

/** @throws WIRE_CORRUPT */
export function unpackCancel(head: Uint8Array): WebdfsError {
  if (head.length < 2 || head.length > 2 + MAX_TEXT) throw corrupt(`cancel head of ${head.length} bytes`);
  const text = new TextDecoder().decode(head.subarray(2));
  if (u16At(head, 0) === CANCEL_REASON.TIME_OVER) return new WebdfsError('TIMEOUT', text);
  return new WebdfsError('CANCELLED', text);
}
