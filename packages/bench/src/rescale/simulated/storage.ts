import { assert, EMPTY, type NodeId } from '@webdfs/base';
import { type RatesOf, secondsFor } from '@webdfs/rescale';
import type { Storage } from '../parts.ts';
import type { EventQueue } from './event-queue.ts';

/** What it costs a drive to serve several streams in turn. */
export interface Interleaving {
  /** What is read or written in one go before another stream has its turn. */
  readonly runBytes: number;
  /** Seconds until the head stands where the next stream is. */
  readonly switchSeconds: number;
}

/**
 * Devices in virtual time: each does one thing at a time, in the order asked, reads and writes at rates of their own. With interleaving
 * whatever is asked while the device is busy is served in runs, each of which begins with a switch; else there is one to begin with.
 */
export class SimulatedStorage implements Storage {
  readonly #queue: EventQueue;
  readonly #ratesOf: RatesOf;
  readonly #interleaving: Interleaving | undefined;
  readonly #freeAt = new Map<NodeId, number>();
  readonly #held = new Set<string>();

  constructor(queue: EventQueue, ratesOf: RatesOf, interleaving?: Interleaving) {
    this.#queue = queue;
    this.#ratesOf = ratesOf;
    this.#interleaving = interleaving;
  }

  generate(node: NodeId, file: number): void {
    this.#held.add(`${node}:${file}`);
  }

  read(node: NodeId, file: number, bytes: number, done: (payload: Uint8Array) => void): void {
    assert(this.#held.has(`${node}:${file}`), 'what is read is there');
    this.#occupy(node, bytes, this.#ratesOf(node).read, () => done(EMPTY));
  }

  write(node: NodeId, file: number, bytes: number, _payload: Uint8Array, done: () => void): void {
    this.#occupy(node, bytes, this.#ratesOf(node).write, () => {
      this.#held.add(`${node}:${file}`);
      done();
    });
  }

  #occupy(node: NodeId, bytes: number, rate: number, done: () => void): void {
    const { now } = this.#queue;
    const freeAt = this.#freeAt.get(node) ?? 0;
    const end = Math.max(now, freeAt) + secondsFor(bytes, rate) + this.#switching(bytes, freeAt > now);
    this.#freeAt.set(node, end);
    this.#queue.at(end, done);
  }

  #switching(bytes: number, busy: boolean): number {
    if (this.#interleaving === undefined) return 0;
    const { runBytes, switchSeconds } = this.#interleaving;
    return (busy ? Math.ceil(bytes / runBytes) : 1) * switchSeconds;
  }
}
