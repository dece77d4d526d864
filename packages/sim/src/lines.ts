import type { NodeId } from '@webdfs/base';
import type { MemoryNetwork } from '@webdfs/wire';

/** The lines between nodes. Several things may block one; it opens when the last of them has passed. */
export class Lines {
  readonly #network: MemoryNetwork;
  readonly #blocked = new Map<string, number>();

  constructor(network: MemoryNetwork) {
    this.#network = network;
  }

  block(from: NodeId, to: NodeId): void {
    const name = `${from}>${to}`;
    this.#blocked.set(name, (this.#blocked.get(name) ?? 0) + 1);
    this.#network.partitionOneWay(from, to);
  }

  unblock(from: NodeId, to: NodeId): void {
    const name = `${from}>${to}`;
    this.#blocked.set(name, this.#blocked.get(name)! - 1);
    this.#network.heal(from, to);
    if ((this.#blocked.get(name) ?? 0) > 0) this.#network.partitionOneWay(from, to);
    if ((this.#blocked.get(`${to}>${from}`) ?? 0) > 0) this.#network.partitionOneWay(to, from);
  }
}
