import { WebdfsError } from '@webdfs/base';
import type { Asked } from './asked.ts';
import type { IncomingBody } from './incoming.ts';
import type { Incoming, Piece } from './transport.ts';

/** A body that was asked for, perhaps before there is a lane to ask on. */
export class PendingIncoming implements Incoming {
  readonly #asked: Asked;
  #body: IncomingBody | undefined;
  #waiters: { resolve: () => void; reject: (error: unknown) => void }[] = [];

  constructor(asked: Asked) {
    this.#asked = asked;
    asked.answer.catch((error: unknown) => {
      if (this.#body !== undefined) return;
      for (const waiter of this.#waiters) waiter.reject(error);
      this.#waiters = [];
    });
  }

  /** It was asked for on a lane. */
  begin(body: IncomingBody): void {
    this.#body = body;
    for (const waiter of this.#waiters) body.ready().then(waiter.resolve, waiter.reject);
    this.#waiters = [];
  }

  get ended(): boolean {
    return this.#body?.ended ?? false;
  }

  take(): Piece | undefined {
    return this.#body?.take();
  }

  ready(): Promise<void> {
    if (this.#body !== undefined) return this.#body.ready();
    // The answer can only have failed so far.
    if (this.#asked.settled) return this.#asked.answer.then(() => undefined);
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  cancel(reason: string): void {
    if (this.#body === undefined) this.#asked.abandon(new WebdfsError('CANCELLED', reason));
    else this.#body.cancel(reason);
  }
}
