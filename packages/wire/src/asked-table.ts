import { assert, type Clock, type NodeId, WebdfsError } from '@webdfs/base';
import { Asked } from './asked.ts';
import { KIND, type Kind } from './frame.ts';
import type { IncomingBody } from './incoming.ts';
import type { Lane } from './lane.ts';
import type { Limits } from './limits.ts';
import { CALL_HEAD_BYTES, checkMessage, packCancel } from './message.ts';
import type { Role, StreamHost } from './stream-host.ts';
import type { CallOptions, Message } from './transport.ts';

export interface AskedOptions {
  readonly role: Role;
  readonly dialled: boolean;
  readonly peer: NodeId;
  readonly peerWindow: number;
  readonly clock: Clock;
  readonly limits: Limits;
  /** The first stream opened here; for tests of what happens when numbers run out. */
  readonly firstStream?: number;
}

/** What this node asked of a peer over one lane. */
export class AskedTable {
  readonly #lane: Lane;
  readonly #host: StreamHost;
  readonly #options: AskedOptions;
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #asked = new Map<number, Asked>();
  #nextStream: number;

  constructor(lane: Lane, host: StreamHost, options: AskedOptions) {
    this.#lane = lane;
    this.#host = host;
    this.#options = options;
    this.#limits = options.limits;
    this.#clock = options.clock;
    this.#nextStream = options.firstStream ?? (options.dialled ? 1 : 2);
  }

  get size(): number {
    return this.#asked.size;
  }

  get(stream: number): Asked | undefined {
    return this.#asked.get(stream);
  }

  call(verb: number, message: Message, options: CallOptions): Promise<Message> {
    try {
      this.#admit(message, this.#limits.maxCalls);
    } catch (error) {
      return Promise.reject(error);
    }
    const asked = new Asked(options, this.#clock.monotonic());
    this.#ask(asked, KIND.CALL, { verb, window: 0, leftMs: options.deadlineMs }, message);
    return asked.answer;
  }

  /** Opens a body whose pieces may already wait. @throws BUSY, TOO_LARGE */
  open(verb: number, message: Message, asked: Asked): void {
    this.#admit(message, this.#limits.maxBodies);
    const body = asked.outgoing;
    assert(body !== undefined, 'an opened stream has a body');
    const window = Math.min(this.#window(), this.#options.peerWindow);
    this.#ask(asked, KIND.OPEN, { verb, window, leftMs: this.#left(asked) }, message);
    this.#host.carry(body, asked.stream, window);
  }

  /** Asks for a body. @throws BUSY, TOO_LARGE */
  fetch(verb: number, message: Message, asked: Asked, adopt: (body: IncomingBody) => void): void {
    this.#admit(message, this.#limits.maxBodies);
    const window = this.#window();
    const body = this.#host.incoming(window, {
      stream: () => asked.stream,
      onCancel: (reason) => asked.abandon(new WebdfsError('CANCELLED', reason)),
      onDone: () => {
        if (asked.settled) this.#forget(asked);
      },
    });
    asked.incoming = body;
    adopt(body);
    this.#ask(asked, KIND.CALL, { verb, window, leftMs: this.#left(asked) }, message);
  }

  #left(asked: Asked): number {
    return Math.max(1, asked.due - this.#clock.monotonic());
  }

  #window(): number {
    return this.#asked.size >= this.#limits.crowdedBodies ? this.#limits.crowdedWindow : this.#limits.window;
  }

  #admit(message: Message, most: number): void {
    checkMessage(message, CALL_HEAD_BYTES, this.#limits);
    const { peer } = this.#options;
    if (this.#asked.size >= most) throw new WebdfsError('BUSY', `${most} requests under way to node ${peer}`);
    const { queued } = this.#lane;
    if (queued > this.#limits.maxQueued) throw new WebdfsError('BUSY', `${queued} bytes wait for node ${peer}`);
  }

  #ask(asked: Asked, kind: Kind, head: { verb: number; window: number; leftMs: number }, message: Message): void {
    const stream = this.#freeStream();
    asked.stream = stream;
    asked.onAbandon = this.#onAbandon;
    this.#asked.set(stream, asked);
    const { verb, window } = head;
    this.#lane.sendCall(kind, stream, { verb, window, leftMs: Math.ceil(head.leftMs), trace: asked.trace }, message);
    this.#host.watch(asked.due);
  }

  #freeStream(): number {
    for (;;) {
      const stream = this.#nextStream;
      this.#nextStream = stream + 2 > 0xffff_ffff ? 2 - (stream % 2) : stream + 2;
      if (!this.#asked.has(stream)) return stream;
    }
  }

  readonly #onAbandon = (asked: Asked, reason: number, text: string): void => {
    this.#forget(asked);
    this.#lane.sendControl(KIND.CANCEL, asked.stream, packCancel(reason, text));
  };

  #forget(asked: Asked): void {
    if (!this.#asked.delete(asked.stream)) return;
    if (asked.outgoing !== undefined) this.#host.drop(asked.outgoing);
  }

  /** @throws WIRE_CORRUPT if the answer overtakes its body */
  replied(stream: number, message: Message): void {
    const asked = this.#asked.get(stream);
    // Given up meanwhile: the answer is late.
    if (asked === undefined || asked.settled) return;
    if (asked.incoming !== undefined && !asked.incoming.complete) {
      throw new WebdfsError('WIRE_CORRUPT', 'answer before the end of its body');
    }
    asked.resolve(message);
    if (asked.incoming === undefined || asked.incoming.done) this.#forget(asked);
  }

  failed(stream: number, error: WebdfsError): void {
    const asked = this.#asked.get(stream);
    if (asked === undefined || asked.settled) return;
    this.#forget(asked);
    asked.fail(error);
  }

  failAll(error: WebdfsError): void {
    const all = [...this.#asked.values()];
    this.#asked.clear();
    for (const asked of all) {
      asked.onAbandon = undefined;
      asked.fail(error);
    }
  }

  /** Ends what is due; returns the earliest deadline left. */
  expire(now: number): number {
    let next = Infinity;
    for (const asked of this.#asked.values()) {
      if (asked.settled) continue;
      if (asked.due > now) next = Math.min(next, asked.due);
      else asked.abandon(new WebdfsError('TIMEOUT', `node ${this.#options.peer} did not answer in time`));
    }
    return next;
  }
}
