import { assert, type Clock, type Log, type NodeId, WebdfsError } from '@webdfs/base';
import { KIND, type Kind } from './frame.ts';
import type { Lane } from './lane.ts';
import type { Limits } from './limits.ts';
import { type CallHead, checkMessage, packError, readCallHead, readCallMessage, REPLY_HEAD_BYTES } from './message.ts';
import { OutgoingBody } from './outgoing.ts';
import { handlerError, Served } from './served.ts';
import type { Role, StreamHost } from './stream-host.ts';
import type { Handlers, Message } from './transport.ts';

export interface ServedOptions {
  readonly role: Role;
  readonly peer: NodeId;
  readonly handlers: Handlers;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly log: Log;
}

/** What a peer asked of this node over one lane. */
export class ServedTable {
  readonly #lane: Lane;
  readonly #host: StreamHost;
  readonly #options: ServedOptions;
  readonly #served = new Map<number, Served>();
  /** Handlers that have not settled, also those for whom nobody waits any more; and the bytes of their requests. */
  #working = 0;
  #workingBytes = 0;

  constructor(lane: Lane, host: StreamHost, options: ServedOptions) {
    this.#lane = lane;
    this.#host = host;
    this.#options = options;
  }

  get(stream: number): Served | undefined {
    return this.#served.get(stream);
  }

  post(head: Uint8Array, message: Message): void {
    const { verb } = readCallHead(head);
    try {
      this.#options.handlers.post(verb, message, this.#options.peer);
    } catch (error) {
      const told = handlerError(error, this.#options.log, { verb, from: this.#options.peer });
      if (told === error) this.#options.log.warn('post refused', { verb, from: this.#options.peer, code: told.code });
    }
  }

  /** A CALL or OPEN has come. @throws WIRE_CORRUPT */
  serve(kind: Kind, stream: number, head: Uint8Array, attached: Uint8Array): void {
    const call = readCallHead(head);
    const message = readCallMessage(head, attached);
    if (this.#served.has(stream)) throw new WebdfsError('WIRE_CORRUPT', `stream ${stream} is open already`);
    if (kind === KIND.OPEN && call.window > this.#options.limits.window) {
      throw new WebdfsError('WIRE_CORRUPT', `body opened with a window of ${call.window} bytes`);
    }
    const bytes = head.length + attached.length;
    // Its time was over before it came: the asker has given up already.
    if (call.leftMs === 0) return;
    const refusal = this.#refusal(bytes);
    if (refusal !== undefined) return this.#sendFail(stream, refusal);
    const deadlineMs = Math.min(call.leftMs, this.#options.limits.maxDeadlineMs);
    const due = this.#options.clock.monotonic() + deadlineMs;
    const served = new Served({ from: this.#options.peer, deadlineMs, trace: call.trace, due, bytes });
    this.#served.set(stream, served);
    this.#working++;
    this.#workingBytes += bytes;
    this.#host.watch(due);
    this.#start(kind, stream, served, call, message);
  }

  #refusal(bytes: number): WebdfsError | undefined {
    const { limits, role } = this.#options;
    const most = role === 'messages' ? limits.maxCalls : limits.maxBodies;
    if (this.#working >= most) return new WebdfsError('BUSY', `${this.#working} requests under work here`);
    if (this.#workingBytes + bytes > limits.maxCallBytes) {
      return new WebdfsError('BUSY', `${this.#workingBytes} bytes of requests under work here`);
    }
    if (this.#lane.queued > limits.maxQueued) {
      return new WebdfsError('BUSY', `${this.#lane.queued} bytes of answers wait here`);
    }
    return undefined;
  }

  #start(kind: Kind, stream: number, served: Served, call: CallHead, message: Message): void {
    const failed = (error: unknown): void => {
      const told = handlerError(error, this.#options.log, { verb: call.verb, from: served.from });
      this.#finish(stream, served, told);
    };
    try {
      const result = this.#run(kind, stream, served, call, message);
      if (result instanceof Promise) result.then((answer) => this.#finish(stream, served, answer), failed);
      else this.#finish(stream, served, result);
    } catch (error) {
      failed(error);
    }
  }

  #run(kind: Kind, stream: number, served: Served, call: CallHead, message: Message): Promise<Message> | Message {
    const { handlers, role } = this.#options;
    if (role === 'messages') return handlers.call(call.verb, message, served);
    const giveUp = (reason: string): void => {
      this.#served.delete(stream);
      const error = new WebdfsError('CANCELLED', reason);
      served.abort(error);
      this.#sendFail(stream, error);
    };
    if (kind === KIND.OPEN) {
      served.incoming = this.#host.incoming(call.window, {
        stream: () => stream,
        onCancel: giveUp,
        onDone: () => undefined,
      });
      return handlers.receive(call.verb, message, served.incoming, served);
    }
    served.outgoing = new OutgoingBody(this.#options.limits, giveUp);
    this.#host.carry(served.outgoing, stream, call.window);
    return handlers.serve(call.verb, message, served.outgoing, served);
  }

  /** A handler has settled. */
  #finish(stream: number, served: Served, result: Message | WebdfsError): void {
    this.#working--;
    this.#workingBytes -= served.bytes;
    const { incoming, outgoing } = served;
    incoming?.dispose(new WebdfsError('CANCELLED', 'the handler is done'));
    if (served.ended) return this.#forget(stream, served);
    if (result instanceof WebdfsError) {
      outgoing?.fail(result);
      this.#forget(stream, served);
      return this.#sendFail(stream, result);
    }
    if (outgoing === undefined) return this.#answer(stream, served, result);
    outgoing.end();
    if (outgoing.drained) this.#answer(stream, served, result);
    else outgoing.onDrained = () => this.#answer(stream, served, result);
  }

  #answer(stream: number, served: Served, message: Message): void {
    this.#forget(stream, served);
    try {
      checkMessage(message, REPLY_HEAD_BYTES, this.#options.limits);
    } catch (error) {
      assert(error instanceof WebdfsError, 'a message is refused with a code');
      return this.#sendFail(stream, error);
    }
    this.#lane.sendReply(stream, message);
  }

  #forget(stream: number, served: Served): void {
    if (this.#served.get(stream) === served) this.#served.delete(stream);
    if (served.outgoing !== undefined) this.#host.drop(served.outgoing);
  }

  #sendFail(stream: number, error: WebdfsError): void {
    this.#lane.sendControl(KIND.FAIL, stream, packError(error));
  }

  /** The asker gave up. */
  cancel(stream: number, error: WebdfsError): void {
    const served = this.#served.get(stream);
    if (served === undefined) return;
    this.#forget(stream, served);
    served.abort(error);
  }

  abortAll(error: WebdfsError): void {
    const all = [...this.#served.values()];
    this.#served.clear();
    for (const served of all) served.abort(error);
  }

  /** Ends what is due; returns the earliest deadline left. */
  expire(now: number): number {
    let next = Infinity;
    for (const [stream, served] of this.#served) {
      if (served.due > now) {
        next = Math.min(next, served.due);
        continue;
      }
      this.#forget(stream, served);
      served.abort(new WebdfsError('TIMEOUT', 'the time of the request is over'));
    }
    return next;
  }
}
