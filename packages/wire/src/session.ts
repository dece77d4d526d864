import { type Clock, type Log, type NodeId, WebdfsError } from '@webdfs/base';
import { AskedTable } from './asked-table.ts';
import type { Asked } from './asked.ts';
import { DeadlineTimer } from './deadlines.ts';
import { KIND, type Kind, putU32, u32At } from './frame.ts';
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
import type { BodyCarrier, OutgoingBody } from './outgoing.ts';
import { ServedTable } from './served-table.ts';
import type { BodyWatcher, Role, StreamHost } from './stream-host.ts';
import type { CallOptions, Handlers, Message } from './transport.ts';

const EVERYWHERE: readonly Kind[] = [KIND.REPLY, KIND.FAIL, KIND.CANCEL, KIND.GOAWAY];
const ALLOWED: Record<Role, ReadonlySet<Kind>> = {
  messages: new Set<Kind>([...EVERYWHERE, KIND.CALL, KIND.POST, KIND.PING, KIND.PONG]),
  reader: new Set<Kind>([...EVERYWHERE, KIND.OPEN]),
  writer: new Set<Kind>([...EVERYWHERE, KIND.CALL, KIND.CREDIT]),
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
  readonly firstStream?: number;
}

type FrameHandler = (stream: number, head: Uint8Array, attached: Uint8Array) => void;

/** The streams of one proven lane: what this node asked, what it serves, and the bodies of both. */
export class Session implements LaneUser, BodyCarrier, StreamHost {
  readonly #lane: Lane;
  readonly #options: SessionOptions;
  readonly #asked: AskedTable;
  readonly #served: ServedTable;
  readonly #deadlines: DeadlineTimer;
  readonly #frames: Partial<Record<Kind, FrameHandler>>;
  /** Bodies that can send now; the first goes next and then stands at the end. */
  #lined: OutgoingBody[] = [];
  readonly #streams = new Map<OutgoingBody, number>();

  constructor(lane: Lane, options: SessionOptions) {
    this.#lane = lane;
    this.#options = options;
    this.#asked = new AskedTable(lane, this, options);
    this.#served = new ServedTable(lane, this, options);
    this.#deadlines = new DeadlineTimer(options.clock, (now) =>
      Math.min(this.#asked.expire(now), this.#served.expire(now)),
    );
    this.#frames = this.#frameHandlers();
  }

  /** When the peer was last heard, `Clock.monotonic`. */
  get heardAt(): number {
    return this.#lane.heardAt;
  }

  call(verb: number, message: Message, options: CallOptions): Promise<Message> {
    return this.#asked.call(verb, message, options);
  }

  post(verb: number, message: Message): boolean {
    checkMessage(message, CALL_HEAD_BYTES, this.#options.limits);
    if (this.#lane.closed || this.#lane.queued > this.#options.limits.maxQueued) return false;
    this.#lane.sendCall(KIND.POST, 0, { verb, leftMs: 0, trace: 0, window: 0 }, message);
    return true;
  }

  /** Opens a body whose pieces may already wait. @throws BUSY, TOO_LARGE */
  open(verb: number, message: Message, asked: Asked): void {
    this.#asked.open(verb, message, asked);
  }

  /** Asks for a body. @throws BUSY, TOO_LARGE */
  fetch(verb: number, message: Message, asked: Asked, adopt: (body: IncomingBody) => void): void {
    this.#asked.fetch(verb, message, asked, adopt);
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

  // ---- for the tables ----

  watch(due: number): void {
    this.#deadlines.watch(due);
  }

  carry(body: OutgoingBody, stream: number, credit: number): void {
    this.#streams.set(body, stream);
    body.start(credit, this);
  }

  drop(body: OutgoingBody): void {
    this.#streams.delete(body);
  }

  incoming(window: number, watcher: BodyWatcher): IncomingBody {
    const onCredit = (bytes: number): void => {
      const head = new Uint8Array(4);
      putU32(head, 0, bytes);
      this.#lane.sendControl(KIND.CREDIT, watcher.stream(), head);
    };
    return new IncomingBody({ window, onCredit, onCancel: watcher.onCancel, onDone: watcher.onDone });
  }

  // ---- for bodies and the lane ----

  wake(body: OutgoingBody): void {
    if (!body.lined) {
      body.lined = true;
      this.#lined.push(body);
    }
    this.#lane.wake();
  }

  fill(): void {
    while (this.#lined.length > 0 && this.#lane.queued < this.#options.limits.socketBytes) {
      const body = this.#lined.shift()!;
      const stream = this.#streams.get(body);
      if (stream !== undefined && body.sendable) {
        body.pack((bytes, flags, sent) => this.#lane.sendData(stream, bytes, flags, sent));
      }
      if (stream !== undefined && body.sendable) this.#lined.push(body);
      else body.lined = false;
    }
  }

  /** @throws WIRE_CORRUPT if the frame has no place here */
  frame(kind: Kind, stream: number, head: Uint8Array, attached: Uint8Array): void {
    const handler = ALLOWED[this.#options.role].has(kind) ? this.#frames[kind] : undefined;
    if (handler === undefined) {
      throw new WebdfsError('WIRE_CORRUPT', `frame of kind ${kind} on a lane of role ${this.#options.role}`);
    }
    handler(stream, head, attached);
  }

  #frameHandlers(): Partial<Record<Kind, FrameHandler>> {
    const serve =
      (kind: Kind): FrameHandler =>
      (stream, head, attached) => {
        if (stream === 0 || this.#mine(stream)) {
          throw new WebdfsError('WIRE_CORRUPT', `stream ${stream} is not the peer's`);
        }
        this.#served.serve(kind, stream, head, attached);
      };
    return {
      [KIND.CALL]: serve(KIND.CALL),
      [KIND.OPEN]: serve(KIND.OPEN),
      [KIND.POST]: (_stream, head, attached) => this.#served.post(head, readCallMessage(head, attached)),
      [KIND.REPLY]: (stream, head, attached) => this.#asked.replied(stream, readReply(head, attached)),
      [KIND.FAIL]: (stream, head) => this.#asked.failed(stream, unpackError(head)),
      [KIND.CANCEL]: (stream, head) => this.#served.cancel(stream, unpackCancel(head)),
      [KIND.CREDIT]: (stream, head) => this.#credit(stream, head),
      [KIND.PING]: (_stream, head) => this.#lane.sendControl(KIND.PONG, 0, head),
      [KIND.PONG]: () => undefined,
      [KIND.GOAWAY]: () => this.#lane.close('the peer is closing'),
    };
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
    this.#asked.failAll(error);
    this.#served.abortAll(error);
    this.#lined = [];
    this.#streams.clear();
    this.#options.onClosed(cause);
  }

  #mine(stream: number): boolean {
    return (stream % 2 === 1) === this.#options.dialled;
  }

  /** @throws WIRE_CORRUPT */
  #credit(stream: number, head: Uint8Array): void {
    if (head.length !== 4) throw new WebdfsError('WIRE_CORRUPT', `credit head of ${head.length} bytes`);
    const body = this.#mine(stream) ? this.#asked.get(stream)?.outgoing : this.#served.get(stream)?.outgoing;
    body?.addCredit(u32At(head, 0));
  }
}
