import { type GroupKey, type Log, messageOf, type NodeId, type Revision, WebdfsError } from '@webdfs/base';
import { type LocalMap, revisionOf } from '@webdfs/cluster';
import type { Message } from '@webdfs/wire';
import type { GroupLoop } from './group-loop.ts';
import { judge } from './judge.ts';
import { unpackBatch } from './message-codec.ts';
import type { ProtocolMessage } from './messages.ts';
import type { ReplicaParameters } from './parameters.ts';

export interface PostOfficeOptions {
  readonly self: NodeId;
  readonly map: LocalMap;
  readonly loop: GroupLoop;
  readonly log: Log;
  readonly parameters: ReplicaParameters;
}

interface Held {
  readonly from: NodeId;
  readonly session: Revision;
  readonly message: ProtocolMessage;
}

/** L5 at the door: each message is judged by this node's map before a step sees it; those of a newer ballot wait for the map. */
export class PostOffice {
  readonly #options: PostOfficeOptions;
  #held: Held[] = [];
  #isReading = false;
  dropped = 0;

  constructor(options: PostOfficeOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held.length;
  }

  /** A PROTOCOL post. @throws CORRUPT, TOO_LARGE, NEWER_FORMAT */
  receive(from: NodeId, message: Message): void {
    const { session, messages } = unpackBatch(message);
    const { loop } = this.#options;
    loop.checkSession();
    loop.patience.heard(from, loop.now());
    for (const each of messages) this.#take({ from, session, message: each });
  }

  #take(held: Held): void {
    const { self, map, loop } = this.#options;
    const { from, session, message } = held;
    const key: GroupKey = { policy: message.policy, group: message.group };
    const view = map.view.group(key);
    const verdict = judge(message, { self, from, revision: map.view.revision, view });
    switch (verdict) {
      case 'take':
        return loop.offer(key, { type: 'message', from, session, message, at: loop.now() });
      case 'newer':
        return this.#hold(held, revisionOf(message.ballot));
      case 'catch-up':
        if (message.type === 'stale' && message.revision > map.view.revision) this.#readThrough(message.revision);
        return;
      case 'stale':
        return loop.outbox.send(from, { type: 'stale', ...key, ballot: message.ballot, revision: map.view.revision });
      case 'released':
        return loop.outbox.send(from, { type: 'released', ...key, ballot: message.ballot });
      case 'drop':
        this.dropped++;
        return;
    }
  }

  #hold(held: Held, revision: Revision): void {
    if (this.#held.length >= this.#options.parameters.heldMessages) {
      this.dropped++;
      return;
    }
    this.#held.push(held);
    this.#readThrough(revision);
  }

  /** One reading at a time; what is still newer afterwards is held again. */
  #readThrough(revision: Revision): void {
    if (this.#isReading) return;
    this.#isReading = true;
    const { map, log } = this.#options;
    void map
      .readThrough(revision)
      .then(
        () => undefined,
        (error: unknown) => {
          if (!(error instanceof WebdfsError)) throw error;
          log.warn('the map cannot be read through', { revision, why: messageOf(error) });
          // Whoever sent them asks again.
          this.#held = [];
        },
      )
      .finally(() => {
        this.#isReading = false;
        const held = this.#held;
        this.#held = [];
        for (const each of held) this.#take(each);
      });
  }
}
