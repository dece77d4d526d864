import type { IncomingBody } from './incoming.ts';
import type { OutgoingBody } from './outgoing.ts';

/** What a lane carries, seen from this end: messages, or bodies that come in, or bodies that go out. */
export type Role = 'messages' | 'reader' | 'writer';

/** What an incoming body tells the table that its stream is in. */
export interface BodyWatcher {
  readonly stream: () => number;
  readonly onCancel: (reason: string) => void;
  readonly onDone: () => void;
}

/** What the tables of a session need of it. */
export interface StreamHost {
  /** A deadline that ends something in a table. */
  watch(due: number): void;
  incoming(window: number, watcher: BodyWatcher): IncomingBody;
  /** Lets a body send on a stream. */
  carry(body: OutgoingBody, stream: number, credit: number): void;
  drop(body: OutgoingBody): void;
}
