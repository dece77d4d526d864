import { EMPTY, type NodeId } from '@webdfs/base';
import { type RatesOf, secondsFor } from '@webdfs/rescale';
import type { Storage } from '../parts.ts';
import type { EventQueue } from './event-queue.ts';

/** Devices in virtual time: each does one thing at a time, in the order asked, reads and writes at rates of their own. */
export class SimulatedStorage implements Storage {
  readonly busySeconds = new Map<NodeId, number>();
  readonly #queue: EventQueue;
  readonly #ratesOf: RatesOf;
  readonly #freeAt = new Map<NodeId, number>();

  constructor(queue: EventQueue, ratesOf: RatesOf) {
    this.#queue = queue;
    this.#ratesOf = ratesOf;
  }

  generate(): void {
    // bytes that nobody reads need no memory
  }

  read(node: NodeId, _file: number, bytes: number, done: (payload: Uint8Array) => void): void {
    this.#occupy(node, secondsFor(bytes, this.#ratesOf(node).read), () => done(EMPTY));
  }

  write(node: NodeId, _file: number, bytes: number, _payload: Uint8Array, done: () => void): void {
    this.#occupy(node, secondsFor(bytes, this.#ratesOf(node).write), done);
  }

  #occupy(node: NodeId, seconds: number, done: () => void): void {
    const end = Math.max(this.#queue.now, this.#freeAt.get(node) ?? 0) + seconds;
    this.#freeAt.set(node, end);
    this.busySeconds.set(node, (this.busySeconds.get(node) ?? 0) + seconds);
    this.#queue.at(end, done);
  }
}
