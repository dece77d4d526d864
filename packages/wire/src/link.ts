import { type Clock, type Log, type NodeId, type Timer, WebdfsError } from '@webdfs/base';
import { Asked } from './asked.ts';
import { DeadlineTimer } from './deadlines.ts';
import type { Limits } from './limits.ts';
import { checkOptions } from './options.ts';
import { OutgoingBody } from './outgoing.ts';
import { PendingIncoming } from './pending.ts';
import type { Session } from './session.ts';
import type { CallOptions, Incoming, Link, Message, Outgoing } from './transport.ts';

export interface LinkOptions {
  readonly peer: NodeId;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly log: Log;
  /** The message lane came up, or the link was lost. */
  readonly onChange: (alive: boolean) => void;
}

/** A body that waits for its lane. */
interface Waiting {
  readonly asked: Asked;
  readonly start: (session: Session) => void;
}

/** The three lanes to one peer as one link. Who dials which lane is the transport's business. */
export class PeerLink implements Link {
  readonly peer: NodeId;
  readonly #options: LinkOptions;
  #messages: Session | undefined;
  /** The boot of the process at the other end. */
  #boot: string | undefined;
  /** Dialled here: bodies come in. Accepted here: bodies go out. */
  #reader: Session | undefined;
  #writer: Session | undefined;
  /** A lane for bodies that was accepted before the message lane of the same process. */
  #early: { readonly session: Session; readonly boot: string } | undefined;
  readonly #waiting: Record<'reader' | 'writer', Set<Waiting>> = { reader: new Set(), writer: new Set() };
  readonly #deadlines: DeadlineTimer;
  #lifeTimer: Timer | undefined;
  #pingedAt = 0;

  constructor(options: LinkOptions) {
    this.peer = options.peer;
    this.#options = options;
    this.#deadlines = new DeadlineTimer(options.clock, (now) => this.#expire(now));
  }

  get alive(): boolean {
    return this.#messages !== undefined;
  }

  call(verb: number, message: Message, options: CallOptions): Promise<Message> {
    const refusal = checkOptions(options, this.#options.limits) ?? this.#lost();
    if (refusal !== undefined) return Promise.reject(refusal);
    return this.#messages!.call(verb, message, options);
  }

  post(verb: number, message: Message): boolean {
    return this.#messages?.post(verb, message) ?? false;
  }

  send(verb: number, message: Message, options: CallOptions): { body: Outgoing; answer: Promise<Message> } {
    const asked = new Asked(options, this.#options.clock.monotonic());
    const body = new OutgoingBody(this.#options.limits, (reason) =>
      asked.abandon(new WebdfsError('CANCELLED', reason)),
    );
    asked.outgoing = body;
    this.#begin('writer', asked, options, (session) => session.open(verb, message, asked));
    return { body, answer: asked.answer };
  }

  fetch(verb: number, message: Message, options: CallOptions): { body: Incoming; answer: Promise<Message> } {
    const asked = new Asked(options, this.#options.clock.monotonic());
    const body = new PendingIncoming(asked);
    this.#begin('reader', asked, options, (session) =>
      session.fetch(verb, message, asked, (incoming) => body.begin(incoming)),
    );
    return { body, answer: asked.answer };
  }

  #lost(): WebdfsError | undefined {
    if (this.#messages !== undefined) return undefined;
    return new WebdfsError('PEER_LOST', `no connection to node ${this.peer}`);
  }

  /** Starts a body now, or when its lane comes up. */
  #begin(lane: 'reader' | 'writer', asked: Asked, options: CallOptions, start: (session: Session) => void): void {
    // Who only looks at the body learns of failures there; the answer then fails unheard.
    asked.answer.catch(() => undefined);
    const refusal = checkOptions(options, this.#options.limits) ?? this.#lost();
    if (refusal !== undefined) return asked.fail(refusal);
    const session = lane === 'reader' ? this.#reader : this.#writer;
    if (session !== undefined) return this.#start({ asked, start }, session);
    const waiting = this.#waiting[lane];
    if (waiting.size >= this.#options.limits.maxBodies) {
      return asked.fail(new WebdfsError('BUSY', `${waiting.size} bodies wait for node ${this.peer}`));
    }
    const one: Waiting = { asked, start };
    asked.onAbandon = () => void waiting.delete(one);
    waiting.add(one);
    this.#deadlines.watch(asked.due);
  }

  #start(one: Waiting, session: Session): void {
    if (one.asked.settled) return;
    one.asked.onAbandon = undefined;
    try {
      one.start(session);
    } catch (error) {
      if (!(error instanceof WebdfsError)) throw error;
      one.asked.fail(error);
    }
  }

  #expire(now: number): number {
    let next = Infinity;
    for (const { asked } of [...this.#waiting.reader, ...this.#waiting.writer]) {
      if (asked.due > now) next = Math.min(next, asked.due);
      else asked.abandon(new WebdfsError('TIMEOUT', `no lane for bodies to node ${this.peer}`));
    }
    return next;
  }

  // ---- lanes come and go ----

  /** The message lane stands. An older one is of no use any more: its dialler has given it up. */
  messagesUp(session: Session, boot: string): void {
    const early = this.#early;
    this.#early = undefined;
    this.lose('replaced by a new connection');
    this.#messages = session;
    this.#boot = boot;
    this.#pingedAt = 0;
    this.#watchLife();
    if (early?.boot === boot) this.bodiesUp('writer', early.session, boot);
    else early?.session.close('of another process');
    this.#options.onChange(true);
  }

  messagesDown(session: Session, cause: string): void {
    if (this.#messages === session) this.lose(cause);
  }

  /** A lane for bodies stands; it is used with a message lane to the same process only. */
  bodiesUp(lane: 'reader' | 'writer', session: Session, boot: string): void {
    if (this.#messages === undefined || boot !== this.#boot) {
      if (lane === 'reader') return session.close('of another process');
      this.#early?.session.close('replaced by a new connection');
      this.#early = { session, boot };
      return;
    }
    const former = lane === 'reader' ? this.#reader : this.#writer;
    if (lane === 'reader') this.#reader = session;
    else this.#writer = session;
    former?.close('replaced by a new connection');
    const waiting = [...this.#waiting[lane]];
    this.#waiting[lane].clear();
    for (const one of waiting) this.#start(one, session);
  }

  bodiesDown(lane: 'reader' | 'writer', session: Session): void {
    if (lane === 'reader' && this.#reader === session) this.#reader = undefined;
    if (lane === 'writer' && this.#writer === session) this.#writer = undefined;
    if (this.#early?.session === session) this.#early = undefined;
  }

  /** Ends all lanes: whatever is under way fails with PEER_LOST. */
  lose(cause: string): void {
    const sessions = [this.#messages, this.#reader, this.#writer, this.#early?.session];
    const wasAlive = this.alive;
    this.#early = undefined;
    this.#messages = this.#reader = this.#writer = undefined;
    this.#lifeTimer?.cancel();
    for (const session of sessions) session?.close(cause);
    const error = new WebdfsError('PEER_LOST', `connection to node ${this.peer} lost: ${cause}`);
    for (const waiting of [this.#waiting.reader, this.#waiting.writer]) {
      const all = [...waiting];
      waiting.clear();
      for (const { asked } of all) asked.fail(error);
    }
    this.#deadlines.stop();
    if (!wasAlive) return;
    this.#options.log.info('link lost', { peer: this.peer, cause });
    this.#options.onChange(false);
  }

  /** Says good-bye on all lanes. */
  goAway(reason: number): void {
    const sessions = [this.#reader, this.#writer, this.#messages];
    for (const session of sessions) session?.goAway(reason);
    this.lose('closed here');
  }

  // ---- signs of life ----

  #watchLife(): void {
    const session = this.#messages;
    if (session === undefined) return;
    const { clock, limits } = this.#options;
    const now = clock.monotonic();
    const silentMs = now - session.heardAt;
    // If this process was held up, signs of life may have come that it has not read: it reads first, then judges.
    if (silentMs >= limits.silenceMs) return clock.soon(() => this.#judge(session));
    if (silentMs >= limits.pingAfterMs && this.#pingedAt <= session.heardAt) {
      this.#pingedAt = now;
      session.ping();
    }
    const next = silentMs >= limits.pingAfterMs ? now + limits.pingAfterMs : session.heardAt + limits.pingAfterMs;
    const at = Math.min(next, session.heardAt + limits.silenceMs);
    this.#lifeTimer = clock.after(Math.max(1, at - now), () => this.#watchLife());
  }

  #judge(session: Session): void {
    if (session !== this.#messages) return;
    const { clock, limits } = this.#options;
    const silentMs = clock.monotonic() - session.heardAt;
    if (silentMs >= limits.silenceMs) this.lose(`silent for ${Math.round(silentMs)} ms`);
    else this.#watchLife();
  }
}
