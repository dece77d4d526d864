import { type FrameHeader, HEADER_BYTES, KIND, type Kind, putHeader } from './frame.ts';
import type { Limits } from './limits.ts';
import { type CallHead, putCall, putReply } from './message.ts';
import type { Message } from './transport.ts';

/** Bytes of one pack buffer. Larger ones leave the allocator's pools and are zeroed anew each time. */
const PACK_BYTES = 32 * 1024;
const KEPT_BUFFERS = 64;

/** Pack buffers that wait for their next use. */
export class PackPool {
  readonly #free: Uint8Array[] = [];

  take(): Uint8Array {
    return this.#free.pop() ?? new Uint8Array(Buffer.allocUnsafeSlow(PACK_BYTES).buffer);
  }

  give(buffer: Uint8Array): void {
    if (this.#free.length < KEPT_BUFFERS) this.#free.push(buffer);
  }
}

/** What leaves in one write: buffers in order, and what to do once they have left. */
export interface Parcel {
  readonly buffers: Uint8Array[];
  readonly bytes: number;
  readonly left: () => void;
}

/**
 * Packs the frames of one turn: heads and attached bytes up to `copyBytes` side by side in pack buffers, larger ones by
 * reference in between.
 */
export class Packer {
  readonly #pool: PackPool;
  readonly #limits: Limits;
  #buffers: Uint8Array[] = [];
  #bytes = 0;
  #used: Uint8Array[] = [];
  #sent: (() => void)[] = [];
  /** The present pack buffer, what of it was handed on, and where it is free. */
  #pack: Uint8Array | undefined;
  #from = 0;
  #at = 0;

  constructor(pool: PackPool, limits: Limits) {
    this.#pool = pool;
    this.#limits = limits;
  }

  /** Bytes packed and not yet taken. */
  get bytes(): number {
    return this.#bytes;
  }

  call(kind: Kind, stream: number, head: CallHead, message: Message): void {
    const at = this.#room(message.head.length + 4 * message.attached.length + 32);
    const headBytes = putCall(this.#pack!, at + HEADER_BYTES, head, message);
    this.#message(kind, stream, headBytes, message);
  }

  reply(stream: number, message: Message): void {
    const at = this.#room(message.head.length + 4 * message.attached.length + 8);
    const headBytes = putReply(this.#pack!, at + HEADER_BYTES, message);
    this.#message(KIND.REPLY, stream, headBytes, message);
  }

  /** A frame that is all head. */
  control(kind: Kind, stream: number, head: Uint8Array): void {
    const at = this.#room(head.length);
    this.#pack!.set(head, at + HEADER_BYTES);
    this.#header({ kind, flags: 0, stream, headBytes: head.length, payloadBytes: head.length });
  }

  /** A frame of a body, by reference; `sent` is called once the bytes have left. */
  data(stream: number, bytes: Uint8Array, flags: number, sent: (() => void) | undefined): void {
    this.#room(0);
    this.#header({ kind: KIND.DATA, flags, stream, headBytes: 0, payloadBytes: bytes.length });
    if (bytes.length > 0) this.#reference(bytes);
    if (sent !== undefined) this.#sent.push(sent);
  }

  /** Hands over all that was packed. */
  take(): Parcel {
    this.#cut();
    const used = this.#used;
    const sent = this.#sent;
    if (this.#pack !== undefined) used.push(this.#pack);
    const parcel: Parcel = {
      buffers: this.#buffers,
      bytes: this.#bytes,
      left: () => {
        for (const buffer of used) this.#pool.give(buffer);
        for (const action of sent) action();
      },
    };
    this.#pack = undefined;
    this.#from = this.#at = 0;
    this.#buffers = [];
    this.#bytes = 0;
    this.#used = [];
    this.#sent = [];
    return parcel;
  }

  #message(kind: Kind, stream: number, headBytes: number, message: Message): void {
    let payloadBytes = headBytes;
    for (const part of message.attached) payloadBytes += part.length;
    this.#header({ kind, flags: 0, stream, headBytes, payloadBytes });
    for (const part of message.attached) this.#attach(part);
  }

  /** Completes a frame whose head lies behind the free place. */
  #header(header: FrameHeader): void {
    putHeader(this.#pack!, this.#at, header);
    const bytes = HEADER_BYTES + header.headBytes;
    this.#at += bytes;
    this.#bytes += bytes;
  }

  #attach(part: Uint8Array): void {
    if (part.length === 0) return;
    if (part.length > this.#limits.copyBytes) {
      this.#reference(part);
      return;
    }
    if (this.#at + part.length > PACK_BYTES) this.#next();
    this.#pack!.set(part, this.#at);
    this.#at += part.length;
    this.#bytes += part.length;
  }

  #reference(bytes: Uint8Array): void {
    this.#cut();
    this.#buffers.push(bytes);
    this.#bytes += bytes.length;
  }

  /** Hands on what lies in the pack buffer so far. */
  #cut(): void {
    if (this.#pack === undefined || this.#at === this.#from) return;
    this.#buffers.push(this.#pack.subarray(this.#from, this.#at));
    this.#from = this.#at;
  }

  #next(): void {
    this.#cut();
    if (this.#pack !== undefined) this.#used.push(this.#pack);
    this.#pack = this.#pool.take();
    this.#from = this.#at = 0;
  }

  /** Makes sure that a header and `headBytes` fit; returns where. */
  #room(headBytes: number): number {
    if (this.#pack === undefined || this.#at + HEADER_BYTES + headBytes > PACK_BYTES) this.#next();
    return this.#at;
  }
}
