import { assert, type Clock, type Log, type NodeId, WebdfsError } from '@webdfs/base';
import { Asked } from './asked.ts';
import { DeadlineTimer } from './deadlines.ts';
import { IncomingBody } from './incoming.ts';
import type { Limits } from './limits.ts';
import { CALL_HEAD_BYTES, checkMessage, REPLY_HEAD_BYTES } from './message.ts';
import { checkOptions } from './options.ts';
import { type BodyCarrier, OutgoingBody } from './outgoing.ts';
import { handlerError, Served } from './served.ts';
import type { Lender } from './slabs.ts';
import type { CallOptions, Handlers, Incoming, Link, Message, Outgoing, Piece } from './transport.ts';

interface Pair {
  readonly asked: Asked;
  readonly served: Served;
}

/** A node's link to itself: handlers are called straight, bytes are not copied; limits, deadlines and credit hold all the same. */
export class SelfLink implements Link {
  readonly peer: NodeId;
  readonly #handlers: Handlers;
  readonly #clock: Clock;
  readonly #limits: Limits;
  readonly #log: Log;
  readonly #calls = new Set<Pair>();
  readonly #bodies = new Set<Pair>();
  readonly #deadlines: DeadlineTimer;
  #closed = false;

  constructor(self: NodeId, options: { handlers: Handlers; clock: Clock; limits: Limits; log: Log }) {
    this.peer = self;
    this.#handlers = options.handlers;
    this.#clock = options.clock;
    this.#limits = options.limits;
    this.#log = options.log;
    this.#deadlines = new DeadlineTimer(options.clock, (now) => this.#expire(now));
  }

  call(verb: number, message: Message, options: CallOptions): Promise<Message> {
    const pair = this.#pair(options);
    const refusal = this.#refusal(message, options, this.#calls, this.#limits.maxCalls);
    if (refusal === undefined) {
      this.#run(pair, this.#calls, verb, () => this.#handlers.call(verb, message, pair.served));
    } else pair.asked.fail(refusal);
    return pair.asked.answer;
  }

  post(verb: number, message: Message): boolean {
    checkMessage(message, CALL_HEAD_BYTES, this.#limits);
    if (this.#closed) return false;
    queueMicrotask(() => {
      try {
        if (!this.#closed) this.#handlers.post(verb, message, this.peer);
      } catch (error) {
        handlerError(error, this.#log, { verb, from: this.peer });
      }
    });
    return true;
  }

  send(verb: number, message: Message, options: CallOptions): { body: Outgoing; answer: Promise<Message> } {
    const pair = this.#pair(options);
    const { outgoing, incoming } = this.#body(pair);
    pair.asked.outgoing = outgoing;
    pair.served.incoming = incoming;
    this.#begin(pair, message, options, verb, () => this.#handlers.receive(verb, message, incoming, pair.served));
    return { body: outgoing, answer: pair.asked.answer };
  }

  fetch(verb: number, message: Message, options: CallOptions): { body: Incoming; answer: Promise<Message> } {
    const pair = this.#pair(options);
    const { outgoing, incoming } = this.#body(pair);
    pair.asked.incoming = incoming;
    pair.served.outgoing = outgoing;
    this.#begin(pair, message, options, verb, async () => {
      const answer = await this.#handlers.serve(verb, message, outgoing, pair.served);
      outgoing.end();
      if (!outgoing.drained && !pair.served.ended) {
        await new Promise<void>((resolve) => {
          outgoing.onDrained = resolve;
        });
      }
      return answer;
    });
    return { body: incoming, answer: pair.asked.answer };
  }

  /** Whatever is under way fails. */
  close(): void {
    this.#closed = true;
    this.#deadlines.stop();
    for (const { asked } of [...this.#calls, ...this.#bodies]) {
      asked.abandon(new WebdfsError('PEER_LOST', 'this node is closing'));
    }
  }

  #pair(options: CallOptions): Pair {
    const asked = new Asked(options, this.#clock.monotonic());
    const { due, trace } = asked;
    const served = new Served({ from: this.peer, deadlineMs: options.deadlineMs, trace, due, bytes: 0 });
    return { asked, served };
  }

  #refusal(message: Message, options: CallOptions, under: ReadonlySet<Pair>, most: number): WebdfsError | undefined {
    if (this.#closed) return new WebdfsError('PEER_LOST', 'this node is closing');
    try {
      checkMessage(message, CALL_HEAD_BYTES, this.#limits);
    } catch (error) {
      assert(error instanceof WebdfsError, 'a message is refused with a code');
      return error;
    }
    if (under.size >= most) return new WebdfsError('BUSY', `${under.size} requests under way to this node itself`);
    return checkOptions(options, this.#limits);
  }

  #begin(pair: Pair, message: Message, options: CallOptions, verb: number, work: () => Promise<Message>): void {
    pair.asked.answer.catch(() => undefined);
    const refusal = this.#refusal(message, options, this.#bodies, this.#limits.maxBodies);
    if (refusal === undefined) this.#run(pair, this.#bodies, verb, work);
    else pair.asked.fail(refusal);
  }

  #run(pair: Pair, under: Set<Pair>, verb: number, work: () => Promise<Message> | Message): void {
    const { asked, served } = pair;
    under.add(pair);
    asked.onAbandon = (_asked, _reason, text) => served.abort(new WebdfsError('CANCELLED', text));
    this.#deadlines.watch(asked.due);
    const done = (message: Message): void => {
      under.delete(pair);
      served.incoming?.dispose(new WebdfsError('CANCELLED', 'the handler is done'));
      try {
        checkMessage(message, REPLY_HEAD_BYTES, this.#limits);
        asked.resolve(message);
      } catch (error) {
        assert(error instanceof WebdfsError, 'a message is refused with a code');
        asked.fail(error);
      }
    };
    const failed = (error: unknown): void => {
      under.delete(pair);
      const told = handlerError(error, this.#log, { verb, from: this.peer });
      served.incoming?.dispose(told);
      served.outgoing?.fail(told);
      asked.fail(told);
    };
    try {
      const result = work();
      if (result instanceof Promise) result.then(done, failed);
      else done(result);
    } catch (error) {
      failed(error);
    }
  }

  /** Both ends of a body, joined: what one packs the other gets, credit goes straight back. */
  #body(pair: Pair): { outgoing: OutgoingBody; incoming: IncomingBody } {
    const cancel = (reason: string): void => {
      const error = new WebdfsError('CANCELLED', reason);
      pair.asked.abandon(error);
      pair.served.abort(error);
    };
    const incoming = new IncomingBody({
      window: this.#limits.window,
      onCredit: (bytes) => outgoing.addCredit(bytes),
      onCancel: cancel,
      onDone: () => undefined,
    });
    const carrier: BodyCarrier = {
      wake: (body) => {
        while (body.sendable) {
          body.pack((bytes, flags, sent) =>
            incoming.push(bytes.length, flags !== 0, () => new PassedPiece(bytes, incoming, sent)),
          );
        }
      },
    };
    // no wire, no frames: pieces pass as they are, as far as the window goes
    const outgoing = new OutgoingBody({ ...this.#limits, frameBytes: this.#limits.window }, cancel);
    outgoing.start(this.#limits.window, carrier);
    return { outgoing, incoming };
  }

  #expire(now: number): number {
    let next = Infinity;
    for (const { asked } of [...this.#calls, ...this.#bodies]) {
      if (asked.settled) continue;
      if (asked.due > now) next = Math.min(next, asked.due);
      else asked.abandon(new WebdfsError('TIMEOUT', 'this node did not answer itself in time'));
    }
    return next;
  }
}

/** A piece on its way from one hand to the other: the first one's release waits for the second's. */
class PassedPiece implements Piece {
  readonly bytes: Uint8Array;
  readonly #lender: Lender;
  readonly #sent: (() => void) | undefined;
  #references = 1;

  constructor(bytes: Uint8Array, lender: Lender, sent: (() => void) | undefined) {
    this.bytes = bytes;
    this.#lender = lender;
    this.#sent = sent;
  }

  hold(): void {
    assert(this.#references > 0, 'a released piece is not held again');
    this.#references++;
  }

  release(): void {
    assert(this.#references > 0, 'a piece is released as often as it was held');
    if (--this.#references > 0) return;
    const bytes = this.bytes.length;
    this.#sent?.();
    this.#lender.released(bytes);
  }
}
