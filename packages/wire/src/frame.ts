import { assert, WebdfsError } from '@webdfs/base';
import { crc32 } from './crc32.ts';
import { type Limits, LIMITS } from './limits.ts';

/**
 * The unit in which bytes travel between nodes; all numbers little-endian. docs/formats/frames.md tells the rest.
 *
 * ```
 * offset  size  field
 *      0     4  length    payload bytes
 *      4     4  stream    0 = the connection itself; odd = opened by the dialler, even = by the acceptor
 *      8     1  kind      KIND
 *      9     1  flags     bit 0 = last (DATA only); others zero, a reader refuses them
 *     10     2  head      bytes of the payload that are the message head; the rest are attached bytes
 *     12     4  check     CRC-32 of bytes 0..12 and of the head
 *     16     n  payload   head, then attached bytes
 * ```
 */
export const HEADER_BYTES = 16;

export const KIND = {
  HELLO: 1,
  PROOF: 2,
  CALL: 3,
  REPLY: 4,
  FAIL: 5,
  OPEN: 6,
  DATA: 7,
  CREDIT: 9,
  CANCEL: 10,
  PING: 11,
  PONG: 12,
  GOAWAY: 13,
  POST: 14,
} as const;

/** 8 is reserved: sums of a body travel in the heads and answers of its verb. */
const KNOWN_KINDS: ReadonlySet<number> = new Set<number>(Object.values(KIND));

export type Kind = (typeof KIND)[keyof typeof KIND];

export const FLAG_LAST = 1;

/** Payload limit of a connection that has proven nothing: a HELLO, no more. */
export const STRANGER_BYTES = 96;

export function u32At(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

export function u16At(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8);
}

export function putU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
}

export function putU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
}

export interface FrameHeader {
  readonly kind: Kind;
  readonly flags: number;
  readonly stream: number;
  /** Bytes of the head, which must already lie at `at + HEADER_BYTES`: the check covers it. */
  readonly headBytes: number;
  readonly payloadBytes: number;
}

/** Writes a frame's header in front of its head; `bytes` has room for both. */
export function putHeader(bytes: Uint8Array, at: number, header: FrameHeader): void {
  assert(header.headBytes <= header.payloadBytes, 'a head is part of its payload');
  assert(header.headBytes <= 0xffff, 'a head has a 16-bit length');
  putU32(bytes, at, header.payloadBytes);
  putU32(bytes, at + 4, header.stream);
  bytes[at + 8] = header.kind;
  bytes[at + 9] = header.flags;
  putU16(bytes, at + 10, header.headBytes);
  let check = crc32(bytes, at, at + 12, 0);
  if (header.headBytes > 0) {
    check = crc32(bytes, at + HEADER_BYTES, at + HEADER_BYTES + header.headBytes, check);
  }
  putU32(bytes, at + 12, check);
}

/** A whole frame in bytes of its own; for the greeting and for tests (lanes pack frames in place). */
export function packFrame(kind: Kind, stream: number, head: Uint8Array, attached: Uint8Array, flags = 0): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + head.length + attached.length);
  bytes.set(head, HEADER_BYTES);
  bytes.set(attached, HEADER_BYTES + head.length);
  putHeader(bytes, 0, {
    kind,
    flags,
    stream,
    headBytes: head.length,
    payloadBytes: head.length + attached.length,
  });
  return bytes;
}

export interface FrameSink {
  /** A whole frame of any kind but DATA. Both parts are views of what was pushed, or of a buffer of the frame's own. */
  frame(kind: Kind, stream: number, head: Uint8Array, attached: Uint8Array): void;
  /** The next part of a body, as it came: a frame may arrive in several parts. Views of what was pushed. */
  data(stream: number, bytes: Uint8Array, last: boolean): void;
}

function corrupt(what: string): WebdfsError {
  return new WebdfsError('WIRE_CORRUPT', what);
}

/**
 * Finds the frames in a stream of bytes, however it is cut into chunks. A frame inside one chunk is passed on as views;
 * one across chunks is joined once, in a buffer of its length.
 *
 * After an error nothing can be trusted to be a frame boundary: the connection must end.
 */
export class FrameReader {
  /** Largest payload taken; `STRANGER_BYTES` until `trust`. */
  #payloadLimit = STRANGER_BYTES;
  #trusted = false;
  #stopped = false;
  readonly #limits: Limits;
  readonly #sink: FrameSink;
  readonly #header = new Uint8Array(HEADER_BYTES);
  #headerBytes = 0;
  #kind: Kind = KIND.HELLO;
  #stream = 0;
  #last = false;
  #headBytes = 0;
  #length = 0;
  /** The payload of a frame that spans chunks, and how much of it is there. */
  #joined: Uint8Array | undefined;
  #joinedBytes = 0;
  /** What is to come of a DATA frame. */
  #dataBytes = 0;

  constructor(sink: FrameSink, limits: Limits = LIMITS) {
    this.#sink = sink;
    this.#limits = limits;
  }

  /** The peer has proven who it is: frames of full size from here on, and no more greetings. */
  trust(): void {
    this.#trusted = true;
    this.#payloadLimit = this.#limits.maxFrame;
  }

  /** Drops whatever follows, also the rest of the chunk being pushed. */
  stop(): void {
    this.#stopped = true;
    this.#joined = undefined;
  }

  /** @throws WIRE_CORRUPT at a bad check, kind, flag or length */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && !this.#stopped) {
      if (this.#dataBytes > 0) at = this.#passData(chunk, at);
      else if (this.#joined !== undefined) at = this.#join(chunk, at);
      else if (this.#headerBytes > 0 || chunk.length - at < HEADER_BYTES) at = this.#fillHeader(chunk, at);
      else {
        this.#readHeader(chunk, at);
        at = this.#body(chunk, at + HEADER_BYTES, chunk, at);
      }
    }
  }

  #fillHeader(chunk: Uint8Array, at: number): number {
    const count = Math.min(HEADER_BYTES - this.#headerBytes, chunk.length - at);
    this.#header.set(chunk.subarray(at, at + count), this.#headerBytes);
    this.#headerBytes += count;
    if (this.#headerBytes < HEADER_BYTES) return at + count;
    this.#headerBytes = 0;
    this.#readHeader(this.#header, 0);
    return this.#body(chunk, at + count, this.#header, 0);
  }

  #readHeader(bytes: Uint8Array, at: number): void {
    const length = u32At(bytes, at);
    const kind = bytes[at + 8]!;
    const flags = bytes[at + 9]!;
    const headBytes = u16At(bytes, at + 10);
    if (!KNOWN_KINDS.has(kind)) throw corrupt(`frame of unknown kind ${kind}`);
    if (kind <= KIND.PROOF === this.#trusted) throw corrupt(`frame of kind ${kind} at the wrong time`);
    if (length > this.#payloadLimit) throw corrupt(`frame of ${length} bytes, limit ${this.#payloadLimit}`);
    if (headBytes > length || headBytes > this.#limits.maxHead) {
      throw corrupt(`head of ${headBytes} bytes in a frame of ${length}`);
    }
    if (flags !== 0 && (kind !== KIND.DATA || flags !== FLAG_LAST)) {
      throw corrupt(`flags ${flags} in a frame of kind ${kind}`);
    }
    this.#kind = kind as Kind;
    this.#stream = u32At(bytes, at + 4);
    this.#last = flags === FLAG_LAST;
    this.#headBytes = headBytes;
    this.#length = length;
    if (kind === KIND.DATA) this.#checkData();
  }

  #checkData(): void {
    if (this.#length > this.#limits.frameBytes) {
      throw corrupt(`body frame of ${this.#length} bytes, limit ${this.#limits.frameBytes}`);
    }
    if (this.#length === 0 && !this.#last) throw corrupt('empty body frame that is not the last');
    if (this.#headBytes !== 0) throw corrupt('body frame with a head');
  }

  /** After a header (at `headerAt` of `header`): takes what the chunk has of the payload, or prepares to join it. */
  #body(chunk: Uint8Array, at: number, header: Uint8Array, headerAt: number): number {
    if (this.#kind === KIND.DATA) {
      this.#verify(header, headerAt, chunk, at);
      if (this.#length === 0) {
        this.#sink.data(this.#stream, chunk.subarray(at, at), true);
        return at;
      }
      this.#dataBytes = this.#length;
      return at < chunk.length ? this.#passData(chunk, at) : at;
    }
    if (chunk.length - at >= this.#length) {
      this.#verify(header, headerAt, chunk, at);
      this.#deliver(chunk, at);
      return at + this.#length;
    }
    if (header !== this.#header) this.#header.set(header.subarray(headerAt, headerAt + HEADER_BYTES));
    this.#joined = new Uint8Array(this.#length);
    this.#joinedBytes = 0;
    return this.#join(chunk, at);
  }

  #join(chunk: Uint8Array, at: number): number {
    const joined = this.#joined!;
    const count = Math.min(joined.length - this.#joinedBytes, chunk.length - at);
    joined.set(chunk.subarray(at, at + count), this.#joinedBytes);
    this.#joinedBytes += count;
    if (this.#joinedBytes === joined.length) {
      this.#joined = undefined;
      this.#verify(this.#header, 0, joined, 0);
      this.#deliver(joined, 0);
    }
    return at + count;
  }

  #passData(chunk: Uint8Array, at: number): number {
    const count = Math.min(this.#dataBytes, chunk.length - at);
    this.#dataBytes -= count;
    this.#sink.data(this.#stream, chunk.subarray(at, at + count), this.#last && this.#dataBytes === 0);
    return at + count;
  }

  #verify(header: Uint8Array, headerAt: number, payload: Uint8Array, at: number): void {
    let check = crc32(header, headerAt, headerAt + 12, 0);
    if (this.#headBytes > 0) check = crc32(payload, at, at + this.#headBytes, check);
    if (check !== u32At(header, headerAt + 12)) throw corrupt(`bad check in a frame of kind ${this.#kind}`);
  }

  #deliver(payload: Uint8Array, at: number): void {
    const split = at + this.#headBytes;
    this.#sink.frame(this.#kind, this.#stream, payload.subarray(at, split), payload.subarray(split, at + this.#length));
  }
}
