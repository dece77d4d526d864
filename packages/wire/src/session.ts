import { assert, type Clock, type Log, type NodeId, WebdfsError } from '@webdfs/base';
import { Asked } from './asked.ts';
import { DeadlineTimer } from './deadlines.ts';
import { KIND, type Kind, u32At } from './frame.ts';
import { IncomingBody } from './incoming.ts';
import type { Lane, LaneUser } from './lane.ts';
import type { Limits } from './limits.ts';
import {
  CALL_HEAD_BYTES,
  checkMessage,
  packCancel,
  readCallMessage,
  readReply,
  unpackCancel,
  unpackError,
} from './message.ts';
import { type BodyCarrier, OutgoingBody } from './outgoing.ts';
import { ServedTable } from './served-table.ts';
import type { CallOptions, Handlers, Message } from './transport.ts';

/** What a lane carries, seen from this end. */
export type Role = 'messages' | 'reader' | 'writer';

const ALLOWED: Record<Role, ReadonlySet<Kind>> = {
  messages: new Set<Kind>([
    KIND.CALL,
    KIND.REPLY,
    KIND.FAIL,
    KIND.CANCEL,
    KIND.PING,
    KIND.PONG,
    KIND.GOAWAY,
    KIND.POST,
  ]),
  reader: new Set<Kind>([KIND.OPEN, KIND.REPLY, KIND.FAIL, KIND.CANCEL, KIND.GOAWAY]),
  writer: new Set<Kind>([KIND.CALL, KIND.REPLY, KIND.FAIL, KIND.CANCEL, KIND.CREDIT, KIND.GOAWAY]),
};

export interface SessionOptions {
  readonly role: Role;
  /** This end dialled: its streams are odd. */
  readonly dialled: boolean;
  readonly peer: NodeId;
  /** Credit per body that the peer granted in its HELLO. */
  readonly peerWindow: number;
  readonly handlers: Handlers;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly log: Log;
  readonly onClosed: (cause: string) => void;
}

/** The streams of one proven lane: what this node asked, and what it serves. */
export class Session implements LaneUser, BodyCarrier {
  readonly #lane: Lane;
  readonly #options: SessionOptions;
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #asked = new Map<number, Asked>();
  readonly #served: ServedTable;
  readonly #deadlines: DeadlineTimer;
  /** Bodies that can send now; the first goes next and then stands at the end. */
  #lined: OutgoingBody[] = [];
  readonly #streams = new Map<OutgoingBody, number>();
  #nextStream: number;
  #bodies = 0;

  constructor(lane: Lane, options: SessionOptions) {
    this.#lane = lane;
    this.#options = options;
    this.#limits = options.limits;
    this.#clock = options.clock;
    this.#nextStream = options.dialled ? 1 : 2;
    this.#served = new ServedTable(lane, this, options);
    this.#deadlines = new DeadlineTimer(options.clock, (now) => Math.min(this.#expire(now), this.#served.expire(now)));
  }

  /** When the peer was last heard, `Clock.monotonic`. */
  get heardAt(): number {
    return this.#lane.heardAt;
  }

  /** Requests of this node under way. */
  get asked(): number {
    return this.#asked.size;
  }

  /** Requests of the peer under work. */
  get working(): number {
    return this.#served.working;
  }

  // ---- asking ----

  call(verb: number, message: Message, options: CallOptions): Promise<Message> {
    try {
      this.#admit(message, this.#limits.maxCalls, this.#asked.size, 'calls');
    } catch (error) {
      return Promise.reject(error);
    }
    const asked = new Asked(options, this.#clock.monotonic());
    this.#ask(asked, KIND.CALL, { verb, window: 0, leftMs: options.deadlineMs }, message);
    return asked.answer;
  }

  post(verb: number, message: Message): boolean {
    checkMessage(message, CALL_HEAD_BYTES, this.#limits);
    if (this.#lane.closed || this.#lane.queued > this.#limits.maxQueued) return false;
    this.#lane.sendCall(KIND.POST, 0, { verb, leftMs: 0, trace: 0, window: 0 }, message);
    return true;
  }

  /** Opens a body whose pieces may already wait. @throws BUSY, TOO_LARGE */
  open(verb: number, message: Message, asked: Asked): void {
    this.#admit(message, this.#limits.maxBodies, this.#bodies, 'bodies');
    const body = asked.outgoing;
    assert(body !== undefined, 'an opened stream has a body');
    const window = Math.min(this.#window(), this.#options.peerWindow);
    this.#ask(asked, KIND.OPEN, { verb, window, leftMs: this.#left(asked) }, message);
    this.carry(body, asked.stream, window);
  }

  /** Asks for a body. @throws BUSY, TOO_LARGE */
  fetch(verb: number, message: Message, asked: Asked, adopt: (body: IncomingBody) => void): void {
    this.#admit(message, this.#limits.maxBodies, this.#bodies, 'bodies');
    const window = this.#window();
    asked.incoming = this.incoming(window, {
      stream: () => asked.stream,
      onCancel: (reason) => asked.abandon(new WebdfsError('CANCELLED', reason)),
      onDone: () => {
        if (asked.settled) this.#forget(asked);
      },
    });
    adopt(asked.incoming);
    this.#ask(asked, KIND.CALL, { verb, window, leftMs: this.#left(asked) }, message);
  }

  #left(asked: Asked): number {
    return Math.max(1, Math.ceil(asked.due - this.#clock.monotonic()));
  }

  #window(): number {
    return this.#bodies >= this.#limits.crowdedBodies ? this.#limits.crowdedWindow : this.#limits.window;
  }

  #admit(message: Message, limit: number, count: number, what: string): void {
    checkMessage(message, CALL_HEAD_BYTES, this.#limits);
    if (count >= limit) throw new WebdfsError('BUSY', `${count} ${what} under way to node ${this.#options.peer}`);
    if (this.#lane.queued > this.#limits.maxQueued) {
      throw new WebdfsError('BUSY', `${this.#lane.queued} bytes wait for node ${this.#options.peer}`);
    }
  }

  #ask(asked: Asked, kind: Kind, head: { verb: number; window: number; leftMs: number }, message: Message): void {
    const stream = this.#freeStream();
    asked.stream = stream;
    asked.onAbandon = this.#onAbandon;
    this.#asked.set(stream, asked);
    if (this.#options.role !== 'messages') this.#bodies++;
    this.#lane.sendCall(kind, stream, { ...head, leftMs: Math.ceil(head.leftMs), trace: asked.trace }, message);
    this.#deadlines.watch(asked.due);
  }

  #freeStream(): number {
    for (;;) {
      const stream = this.#nextStream;
      this.#nextStream = stream + 2 > 0xffff_ffff ? (stream % 2 === 1 ? 1 : 2) : stream + 2;
      if (!this.#asked.has(stream)) return stream;
    }
  }

  readonly #onAbandon = (asked: Asked, reason: number, text: string): void => {
    this.#forget(asked);
    this.#lane.sendControl(KIND.CANCEL, asked.stream, packCancel(reason, text));
  };

  #forget(asked: Asked): void {
    if (!this.#asked.delete(asked.stream)) return;
    if (asked.outgoing !== undefined) this.drop(asked.outgoing);
    if (this.#options.role !== 'messages') this.#bodies--;
  }

  // ---- bodies ----

  /** Lets a body send, on a stream of either side. */
  carry(body: OutgoingBody, stream: number, credit: number): void {
    this.#streams.set(body, stream);
    body.start(credit, this);
  }

  drop(body: OutgoingBody): void {
    this.#streams.delete(body);
  }

  incoming(
    window: number,
    stream: { stream: () => number; onCancel: (reason: string) => void; onDone: () => void },
  ): IncomingBody {
    return new IncomingBody({
      window,
      onCredit: (bytes) => this.#lane.sendControl(KIND.CREDIT, stream.stream(), packU32(bytes)),
      onCancel: stream.onCancel,
      onDone: stream.onDone,
    });
  }

  wake(body: OutgoingBody): void {
    if (!body.lined) {
      body.lined = true;
      this.#lined.push(body);
    }
    this.#lane.wake();
  }

  fill(): void {
    while (this.#lined.length > 0 && this.#lane.queued < this.#limits.socketBytes) {
      const body = this.#lined.shift()!;
      const stream = this.#streams.get(body);
      if (stream !== undefined && body.sendable) {
        body.pack((bytes, flags, sent) => this.#lane.sendData(stream, bytes, flags, sent));
      }
      if (stream !== undefined && body.sendable) this.#lined.push(body);
      else body.lined = false;
    }
  }

  // ---- what arrives ----

  frame(kind: Kind, stream: number, head: Uint8Array, attached: Uint8Array): void {
    if (!ALLOWED[this.#options.role].has(kind)) {
      throw new WebdfsError('WIRE_CORRUPT', `frame of kind ${kind} on a lane of ${this.#options.role}`);
    }
    switch (kind) {
      case KIND.CALL:
      case KIND.OPEN:
        this.#checkTheirs(stream);
        return this.#served.serve(kind, stream, head, attached);
      case KIND.POST:
        return this.#served.post(head, readCallMessage(head, attached));
      case KIND.REPLY:
        return this.#replied(stream, readReply(head, attached));
      case KIND.FAIL:
        return this.#failed(stream, unpackError(head));
      case KIND.CANCEL:
        return this.#served.cancel(stream, unpackCancel(head));
      case KIND.CREDIT:
        return this.#credit(stream, head);
      case KIND.PING:
        return this.#lane.sendControl(KIND.PONG, 0, head.slice());
      case KIND.PONG:
        return;
      case KIND.GOAWAY:
        return this.#lane.close('the peer is closing');
      case KIND.HELLO:
      case KIND.PROOF:
      case KIND.DATA:
        throw new WebdfsError('WIRE_CORRUPT', `frame of kind ${kind} out of place`);
    }
  }

  data(stream: number, bytes: Uint8Array, last: boolean): void {
    if (this.#options.role !== 'reader') throw new WebdfsError('WIRE_CORRUPT', 'a body on a lane that is not for it');
    const body = this.#mine(stream) ? this.#asked.get(stream)?.incoming : this.#served.get(stream)?.incoming;
    // A stream that was cancelled, or whose handler is done: what is still on its way is dropped.
    if (body === undefined) return;
    body.push(bytes.length, last, () => this.#lane.lend(bytes, body));
  }

  closed(cause: string): void {
    this.#deadlines.stop();
    const error = new WebdfsError('PEER_LOST', `connection to node ${this.#options.peer} lost: ${cause}`);
    const asked = [...this.#asked.values()];
    this.#asked.clear();
    for (const one of asked) {
      one.onAbandon = undefined;
      one.fail(error);
    }
    this.#served.abortAll(error);
    this.#lined = [];
    this.#streams.clear();
    this.#options.onClosed(cause);
  }

  #mine(stream: number): boolean {
    return (stream % 2 === 1) === this.#options.dialled;
  }

  #checkTheirs(stream: number): void {
    if (stream === 0 || this.#mine(stream)) throw new WebdfsError('WIRE_CORRUPT', `stream ${stream} is not the peer's`);
  }

  #replied(stream: number, message: Message): void {
    const asked = this.#asked.get(stream);
    if (asked === undefined || asked.settled) return;
    if (asked.incoming !== undefined && !asked.incoming.complete) {
      throw new WebdfsError('WIRE_CORRUPT', 'answer before the end of its body');
    }
    asked.resolve(message);
    if (asked.incoming === undefined || asked.incoming.done) this.#forget(asked);
  }

  #failed(stream: number, error: WebdfsError): void {
    const asked = this.#asked.get(stream);
    if (asked === undefined || asked.settled) return;
    this.#forget(asked);
    asked.fail(error);
  }

  #credit(stream: number, head: Uint8Array): void {
    if (head.length !== 4) throw new WebdfsError('WIRE_CORRUPT', `credit head of ${head.length} bytes`);
    const body = this.#mine(stream) ? this.#asked.get(stream)?.outgoing : this.#served.get(stream)?.outgoing;
    body?.addCredit(u32At(head, 0));
  }

  // ---- upkeep ----

  /** A deadline to watch; for requests served. */
  watch(due: number): void {
    this.#deadlines.watch(due);
  }

  ping(): void {
    this.#lane.sendControl(KIND.PING, 0, new Uint8Array(8));
  }

  /** Says good-bye and closes. */
  goAway(reason: number): void {
    this.#lane.sendControl(KIND.GOAWAY, 0, packCancel(reason, ''));
    this.#lane.end();
  }

  close(cause: string): void {
    this.#lane.close(cause);
  }

  #expire(now: number): number {
    let next = Infinity;
    for (const asked of this.#asked.values()) {
      if (asked.settled) continue;
      if (asked.due > now) next = Math.min(next, asked.due);
      else asked.abandon(new WebdfsError('TIMEOUT', `node ${this.#options.peer} did not answer in time`));
    }
    return next;
  }
}

function packU32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}
