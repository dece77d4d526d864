import type { Clock, NodeId, Revision } from '@webdfs/base';
import type { Link } from '@webdfs/wire';
import { BatchWriter, MAX_MESSAGES } from './message-codec.ts';
import type { ProtocolMessage } from './messages.ts';
import { VERB } from './verbs.ts';

/** Bodies in one post: the transport counts attached buffers. */
const MAX_BODIES = 512;

/**
 * What a node says to others in one turn of the event loop, one post per node. A post that cannot be sent is dropped: whoever
 * wants an answer asks again.
 */
export class Outbox {
  readonly #link: (node: NodeId) => Link;
  readonly #clock: Clock;
  readonly #session: () => Revision;
  readonly #postBytes: number;
  readonly #writers = new Map<NodeId, BatchWriter>();
  /** Nodes with something to send; whether the end of this turn is awaited. */
  readonly #filled = new Set<NodeId>();
  #isWaiting = false;
  posts = 0;
  messages = 0;

  constructor(options: { link: (node: NodeId) => Link; clock: Clock; session: () => Revision; postBytes: number }) {
    this.#link = options.link;
    this.#clock = options.clock;
    this.#session = options.session;
    this.#postBytes = options.postBytes;
  }

  send(to: NodeId, message: ProtocolMessage): void {
    let writer = this.#writers.get(to);
    if (writer === undefined) {
      writer = new BatchWriter();
      this.#writers.set(to, writer);
    }
    const size = message.type === 'append' ? message.entry.body.length : 0;
    if (writer.bytes + size > this.#postBytes || writer.count >= MAX_MESSAGES || writer.bodies >= MAX_BODIES) {
      this.#post(to, writer);
    }
    writer.add(message);
    this.#filled.add(to);
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#clock.soon(() => this.flush());
  }

  flush(): void {
    this.#isWaiting = false;
    for (const node of this.#filled) this.#post(node, this.#writers.get(node)!);
    this.#filled.clear();
  }

  #post(to: NodeId, writer: BatchWriter): void {
    if (writer.count === 0) return;
    this.posts++;
    this.messages += writer.count;
    this.#link(to).post(VERB.PROTOCOL, writer.take(this.#session()));
  }
}
