import { BrokenInvariant, type Log, messageOf, type NodeId, WebdfsError } from '@webdfs/base';
import type { IncomingBody } from './incoming.ts';
import type { OutgoingBody } from './outgoing.ts';
import type { CallContext } from './transport.ts';

/** A peer's request under work here. */
export class Served implements CallContext {
  readonly from: NodeId;
  readonly deadlineMs: number;
  readonly trace: number;
  /** By `Clock.monotonic`. */
  readonly due: number;
  /** Bytes of the request. */
  readonly bytes: number;
  incoming: IncomingBody | undefined;
  outgoing: OutgoingBody | undefined;
  /** Why nobody waits for the answer any more. */
  #ended: WebdfsError | undefined;
  #controller: AbortController | undefined;

  constructor(facts: { from: NodeId; deadlineMs: number; trace: number; due: number; bytes: number }) {
    this.from = facts.from;
    this.deadlineMs = facts.deadlineMs;
    this.trace = facts.trace;
    this.due = facts.due;
    this.bytes = facts.bytes;
  }

  /** Made when first asked for: most handlers never do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#ended !== undefined) this.#controller.abort(this.#ended);
    }
    return this.#controller.signal;
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Nobody waits any more: the handler is told, its bodies fail. */
  abort(error: WebdfsError): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.incoming?.dispose(error);
    this.outgoing?.fail(error);
    this.#controller?.abort(error);
  }
}

/** What a handler threw, as an error that may travel. A broken invariant of ours ends the process all the same. */
export function handlerError(error: unknown, log: Log, facts: { verb: number; from: NodeId }): WebdfsError {
  if (error instanceof WebdfsError) return error;
  if (error instanceof BrokenInvariant) {
    queueMicrotask(() => {
      throw error;
    });
  }
  log.error('handler failed', { verb: facts.verb, from: facts.from, error: messageOf(error) });
  return new WebdfsError('UNAVAILABLE', `handler failed: ${messageOf(error)}`);
}
