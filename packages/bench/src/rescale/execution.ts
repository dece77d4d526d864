import { assert, type NodeId } from '@webdfs/base';
import type { IOEffect, IOEvent, Transfer } from '@webdfs/rescale';
import type { Dispatch, Network, Storage } from './parts.ts';

/** What one node did. */
export interface NodeFigures {
  received: number;
  sent: number;
  read: number;
  written: number;
  /** When its last byte was durable; 0 if it got none. */
  finishedAt: number;
}

export interface Surroundings {
  readonly storage: Storage;
  readonly network: Network;
  /** Seconds since the start. */
  readonly now: () => number;
  readonly wait: (seconds: number, over: () => void) => void;
  /** Called for every transfer whose bytes are durable. */
  readonly onWritten: (transfer: Transfer) => void;
}

/** Step three: does what a dispatcher says with a storage and a network, and tells it what happened. */
export class Execution {
  readonly figures: ReadonlyMap<NodeId, NodeFigures>;
  readonly #dispatch: Dispatch;
  readonly #around: Surroundings;
  /** What the dispatcher keeps in memory, by node and file. */
  readonly #kept = new Map<string, Uint8Array>();

  constructor(dispatch: Dispatch, nodes: readonly NodeId[], around: Surroundings) {
    this.#dispatch = dispatch;
    this.#around = around;
    this.figures = new Map(nodes.map((node) => [node, { received: 0, sent: 0, read: 0, written: 0, finishedAt: 0 }]));
  }

  start(): void {
    this.#handle({ type: 'started' });
  }

  /** Another process wants a transfer that this one serves. */
  asked(transfer: Transfer): void {
    this.#handle({ type: 'asked', transfer });
  }

  /** A transfer's bytes came from another process. */
  received(transfer: Transfer, payload: Uint8Array): void {
    this.#of(transfer.to).received += transfer.bytes;
    this.#handle({ type: 'received', transfer }, payload);
  }

  /** Tells the dispatcher what happened, and does what it says. @param payload  the bytes that just came, if some did */
  #handle(event: IOEvent, payload?: Uint8Array): void {
    for (const effect of this.#dispatch.step(event)) this.#perform(effect, payload);
  }

  #perform(effect: IOEffect, payload: Uint8Array | undefined): void {
    switch (effect.type) {
      case 'ask':
        this.#around.network.ask(effect.transfer, () => this.asked(effect.transfer));
        return;
      case 'read':
        this.#read(effect.node, effect.parcel, effect.bytes);
        return;
      case 'keep':
        assert(payload !== undefined, 'what is kept has just come');
        this.#kept.set(`${effect.node}:${effect.parcel}`, payload);
        return;
      case 'forget':
        this.#kept.delete(`${effect.node}:${effect.parcel}`);
        return;
      case 'send':
        this.#send(effect.transfer);
        return;
      case 'write':
        this.#write(effect.transfer);
        return;
      case 'wait':
        this.#around.wait(effect.seconds, () => this.#handle({ type: 'woke' }));
    }
  }

  #read(node: NodeId, parcel: number, bytes: number): void {
    this.#around.storage.read(node, parcel, bytes, (payload) => {
      this.#of(node).read += bytes;
      this.#handle({ type: 'read', node, parcel }, payload);
    });
  }

  #keptOf(node: NodeId, parcel: number): Uint8Array {
    const payload = this.#kept.get(`${node}:${parcel}`);
    assert(payload !== undefined, 'what is sent or written is in memory');
    return payload;
  }

  #send(transfer: Transfer): void {
    const { from, parcel, bytes } = transfer;
    this.#around.network.send(transfer, this.#keptOf(from, parcel), {
      sent: () => {
        this.#of(from).sent += bytes;
        this.#handle({ type: 'sent', transfer });
      },
      received: (arrived) => this.received(transfer, arrived),
    });
  }

  #write(transfer: Transfer): void {
    const { to, parcel, bytes } = transfer;
    this.#around.storage.write(to, parcel, bytes, this.#keptOf(to, parcel), () => {
      const figures = this.#of(to);
      figures.written += bytes;
      figures.finishedAt = this.#around.now();
      this.#around.onWritten(transfer);
      this.#handle({ type: 'written', transfer });
    });
  }

  #of(node: NodeId): NodeFigures {
    const figures = this.figures.get(node);
    assert(figures !== undefined, 'every node that acts is one of the run');
    return figures;
  }
}
