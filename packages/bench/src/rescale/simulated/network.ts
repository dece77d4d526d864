import type { NodeId } from '@webdfs/base';
import { type RatesOf, secondsFor, type Transfer } from '@webdfs/rescale';
import type { Network } from '../parts.ts';
import type { EventQueue } from './event-queue.ts';

/**
 * A switch without contention in virtual time: each node sends at its rate and, at the same time, receives at it, one transfer after
 * the other each way. What a receiver cannot take yet waits in the switch; its window bounds how much that is.
 */
export class SimulatedNetwork implements Network {
  readonly #queue: EventQueue;
  readonly #ratesOf: RatesOf;
  readonly #latency: number;
  readonly #sendFreeAt = new Map<NodeId, number>();
  readonly #receiveFreeAt = new Map<NodeId, number>();

  /** @param latency  seconds that a message takes besides its bytes */
  constructor(queue: EventQueue, ratesOf: RatesOf, latency: number) {
    this.#queue = queue;
    this.#ratesOf = ratesOf;
    this.#latency = latency;
  }

  ask(_transfer: Transfer, arrived: () => void): void {
    this.#queue.at(this.#queue.now + this.#latency, arrived);
  }

  send(
    { from, to, bytes }: Transfer,
    payload: Uint8Array,
    on: { sent: () => void; received: (payload: Uint8Array) => void },
  ): void {
    const queue = this.#queue;
    const start = Math.max(queue.now, this.#sendFreeAt.get(from) ?? 0);
    const sent = start + secondsFor(bytes, this.#ratesOf(from).network);
    this.#sendFreeAt.set(from, sent);
    queue.at(start, () => {
      const begin = Math.max(start, this.#receiveFreeAt.get(to) ?? 0);
      const taken = Math.max(sent, begin + secondsFor(bytes, this.#ratesOf(to).network));
      this.#receiveFreeAt.set(to, taken);
      queue.at(taken + this.#latency, () => on.received(payload));
    });
    queue.at(sent, on.sent);
  }
}
