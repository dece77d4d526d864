import { WebdfsError } from '@webdfs/base';
import type { Handlers } from '@webdfs/wire';

/**
 * Handlers that stand in until the node is complete: its transport opens first, because the address it listens on is part
 * of what the node registers with. Callers are told to come back; a post may be lost, so one that comes too early is.
 */
export class LateHandlers implements Handlers {
  #handlers: Handlers | undefined;

  complete(handlers: Handlers): void {
    this.#handlers = handlers;
  }

  #ready(): Handlers {
    if (this.#handlers === undefined) {
      throw new WebdfsError('UNAVAILABLE', 'the node is starting', { retryAfterMs: 100 });
    }
    return this.#handlers;
  }

  readonly call: Handlers['call'] = (verb, message, context) => this.#ready().call(verb, message, context);
  readonly post: Handlers['post'] = (verb, message, from) => this.#handlers?.post(verb, message, from);
  readonly receive: Handlers['receive'] = async (verb, message, body, context) =>
    await this.#ready().receive(verb, message, body, context);
  readonly serve: Handlers['serve'] = async (verb, message, body, context) =>
    await this.#ready().serve(verb, message, body, context);
}
