import { WebdfsError } from '@webdfs/base';
import type { IncomingBody } from './incoming.ts';
import { CANCEL_REASON } from './message.ts';
import type { OutgoingBody } from './outgoing.ts';
import type { CallOptions, Message } from './transport.ts';

/** A request of this node that was not answered yet. It is answered once or fails once. */
export class Asked {
  /** By `Clock.monotonic`. */
  readonly due: number;
  readonly trace: number;
  readonly answer: Promise<Message>;
  stream = 0;
  outgoing: OutgoingBody | undefined;
  incoming: IncomingBody | undefined;
  /** Tells the other end, if it knows of the request; set by whoever has it in a table. */
  onAbandon: ((asked: Asked, reason: number, text: string) => void) | undefined;
  #settled = false;
  #resolve!: (message: Message) => void;
  #reject!: (error: WebdfsError) => void;
  #signal: AbortSignal | undefined;
  #onAbort: (() => void) | undefined;

  constructor(options: CallOptions, now: number) {
    this.due = now + options.deadlineMs;
    this.trace = options.trace ?? 0;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (options.signal !== undefined) this.#follow(options.signal);
  }

  get settled(): boolean {
    return this.#settled;
  }

  resolve(message: Message): void {
    if (this.#settled) return;
    this.#settle();
    this.outgoing?.discard();
    this.#resolve(message);
  }

  fail(error: WebdfsError): void {
    this.outgoing?.fail(error);
    this.incoming?.fail(error);
    if (this.#settled) return;
    this.#settle();
    this.#reject(error);
  }

  /** This end wants it no more: the other end is told, and the answer fails with `error`. */
  abandon(error: WebdfsError): void {
    if (this.#settled) return;
    const reason = error.code === 'TIMEOUT' ? CANCEL_REASON.TIME_OVER : CANCEL_REASON.GAVE_UP;
    this.onAbandon?.(this, reason, error.message);
    this.fail(error);
  }

  #follow(signal: AbortSignal): void {
    this.#signal = signal;
    this.#onAbort = () => this.abandon(new WebdfsError('CANCELLED', 'the caller gave up', { cause: signal.reason }));
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  #settle(): void {
    this.#settled = true;
    if (this.#onAbort !== undefined) this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
