import { asNodeId, EMPTY, ManualClock, silentLog, utf8, WebdfsError } from '@webdfs/base';
import { FrameReader, KIND, type Kind, packFrame, putU32 } from './frame.ts';
import { Lane, type LaneUser } from './lane.ts';
import { type Limits, LIMITS } from './limits.ts';
import { type CallHead, putCall, putReply } from './message.ts';
import { PackPool } from './packer.ts';
import type { Pipe } from './pipe.ts';
import { Session } from './session.ts';
import { SlabPool } from './slabs.ts';
import type { Role } from './stream-host.ts';
import type { Handlers, Message } from './transport.ts';

/** What leaves at the end of a turn leaves when the test says so. */
export class TurnClock extends ManualClock {
  #actions: (() => void)[] = [];

  override soon(action: () => void): void {
    this.#actions.push(action);
  }

  turn(): void {
    const actions = this.#actions;
    this.#actions = [];
    for (const action of actions) action();
  }
}

export interface Sent {
  readonly kind: Kind;
  readonly stream: number;
  readonly head: Uint8Array;
  readonly bytes: Uint8Array;
}

const refusing = (): never => {
  throw new WebdfsError('UNSUPPORTED', 'not expected');
};
export const HANDLERS: Handlers = { call: refusing, post: () => undefined, receive: refusing, serve: refusing };
export const GREETING: LaneUser = { frame: refusing, data: refusing, fill: () => undefined, closed: () => undefined };
export const hello = (text: string): Message => ({ head: utf8(text), attached: [] });

/** A session at one end; the test is the other end. */
export class Harness {
  readonly clock = new TurnClock();
  readonly slabs: SlabPool;
  readonly session: Session;
  readonly sent: Sent[] = [];
  /** Why the lane was closed. */
  ended: string | undefined;
  /** While false, nothing leaves. */
  reads = true;
  /** Bytes that the pipe was given and did not send. */
  held = 0;
  readonly #lane: Lane;

  constructor(
    role: Role,
    options: { handlers?: Partial<Handlers>; limits?: Partial<Limits>; firstStream?: number } = {},
  ) {
    const limits = { ...LIMITS, ...options.limits };
    const { clock } = this;
    this.slabs = new SlabPool({ slabs: 4, copiedBytes: 1 << 20, poison: true });
    const base = { clock, limits, packs: new PackPool() };
    this.#lane = new Lane(GREETING, role === 'reader' ? { ...base, slabs: this.slabs } : base);
    this.session = new Session(this.#lane, {
      role,
      dialled: role !== 'writer',
      peer: asNodeId(7),
      peerWindow: LIMITS.window,
      handlers: { ...HANDLERS, ...options.handlers },
      clock,
      limits,
      log: silentLog,
      onClosed: (cause) => (this.ended = cause),
      ...(options.firstStream === undefined ? {} : { firstStream: options.firstStream }),
    });
    this.#lane.attach(this.#pipe());
    this.#lane.trust(this.session);
  }

  #pipe(): Pipe {
    const reader = new FrameReader({
      frame: (kind, stream, head, attached) =>
        void this.sent.push({ kind, stream, head: head.slice(), bytes: attached.slice() }),
      data: (stream, bytes) => void this.sent.push({ kind: KIND.DATA, stream, head: EMPTY, bytes: bytes.slice() }),
    });
    reader.trust();
    const queued = (): number => this.held;
    return {
      get queued() {
        return queued();
      },
      write: (buffers, left) => {
        if (!this.reads) {
          for (const buffer of buffers) this.held += buffer.length;
          return;
        }
        for (const buffer of buffers) reader.push(buffer);
        left();
      },
      resume: () => undefined,
      end: () => undefined,
      destroy: () => undefined,
      exporter: () => EMPTY,
    };
  }

  /** The peer sends a frame. */
  feed(kind: Kind, stream: number, head: Uint8Array = EMPTY, bytes: Uint8Array = EMPTY, flags = 0): void {
    const frame = packFrame(kind, stream, head, bytes, flags);
    const space = this.#lane.space?.();
    if (space === undefined) {
      this.#lane.received(frame);
      return;
    }
    space.set(frame);
    this.#lane.received(space.subarray(0, frame.length));
  }

  /** Lets handlers run and what they answered leave; returns what has left since. */
  async turn(): Promise<Sent[]> {
    for (let i = 0; i < 5; i++) {
      await new Promise(setImmediate);
      this.clock.turn();
    }
    return this.sent.splice(0);
  }
}

export const callHead = (change: Partial<CallHead> = {}, message: Message = hello('')): Uint8Array => {
  const bytes = new Uint8Array(1024);
  return bytes.subarray(0, putCall(bytes, 0, { verb: 1, leftMs: 1000, trace: 0, window: 0, ...change }, message));
};
export const replyHead = (text: string): Uint8Array => {
  const bytes = new Uint8Array(1024);
  return bytes.subarray(0, putReply(bytes, 0, hello(text)));
};
export const u32 = (value: number): Uint8Array => {
  const bytes = new Uint8Array(4);
  putU32(bytes, 0, value);
  return bytes;
};
export const deadline = { deadlineMs: 1000 };

export function code(expected: string): (error: unknown) => boolean {
  return (error) => error instanceof WebdfsError && error.code === expected;
}

/** A promise's outcome so far. */
export function watch<T>(promise: Promise<T>): { value?: T; error?: unknown } {
  const outcome: { value?: T; error?: unknown } = {};
  promise.then(
    (value) => (outcome.value = value),
    (error: unknown) => (outcome.error = error),
  );
  return outcome;
}

export const pieceOf = (
  bytes: Uint8Array,
  release: () => void = () => undefined,
): { bytes: Uint8Array; hold: () => void; release: () => void } => ({
  bytes,
  hold: () => undefined,
  release,
});
