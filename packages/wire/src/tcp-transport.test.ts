import { type NodeId, silentLog, systemClock, SystemRandom } from '@webdfs/base';
import { type TestNetwork, testTransport } from './conformance.ts';
import type { Limits } from './limits.ts';
import type { NodeTransport } from './node-transport.ts';
import { TcpProxy } from './tcp-proxy.testing.ts';
import { openTcpTransport } from './tcp-transport.ts';
import type { Handlers } from './transport.ts';

const random = new SystemRandom();

/** Nodes on loopback; each reaches each other one through a proxy of that pair, which can be cut. */
class LoopbackNetwork implements TestNetwork {
  readonly #limits: Partial<Limits>;
  readonly #secret = random.bytes(32);
  readonly #nodes = new Map<NodeId, NodeTransport>();
  readonly #all: NodeTransport[] = [];
  readonly #proxies = new Map<string, TcpProxy>();

  constructor(limits: Partial<Limits>) {
    this.#limits = limits;
  }

  async open(self: NodeId, handlers: Handlers): Promise<NodeTransport> {
    const node = await openTcpTransport({
      self,
      cluster: 'ab'.repeat(16),
      secret: this.#secret,
      host: '127.0.0.1',
      port: 0,
      handlers,
      clock: systemClock,
      random,
      log: silentLog,
      limits: this.#limits,
      poison: true,
    });
    for (const other of this.#nodes.keys()) {
      if (other === self) continue;
      await this.#connect(self, other);
      await this.#connect(other, self);
    }
    this.#nodes.set(self, node);
    this.#all.push(node);
    return node;
  }

  async #connect(from: NodeId, to: NodeId): Promise<void> {
    const name = `${from}>${to}`;
    if (this.#proxies.has(name)) return;
    this.#proxies.set(name, await TcpProxy.open(() => this.#nodes.get(to)?.address));
  }

  meet(): void {
    for (const [self, node] of this.#nodes) {
      const others = [...this.#nodes.keys()].filter((other) => other !== self);
      node.setPeers(new Map(others.map((other) => [other, this.#proxies.get(`${self}>${other}`)!.address])));
    }
  }

  async step(): Promise<void> {
    await new Promise<void>((resolve) => systemClock.after(1, resolve));
  }

  #between(a: NodeId, b: NodeId): TcpProxy[] {
    return [this.#proxies.get(`${a}>${b}`)!, this.#proxies.get(`${b}>${a}`)!];
  }

  drop(a: NodeId, b: NodeId): void {
    for (const proxy of this.#between(a, b)) proxy.drop();
  }

  partition(a: NodeId, b: NodeId): void {
    for (const proxy of this.#between(a, b)) proxy.stall();
  }

  heal(a: NodeId, b: NodeId): void {
    for (const proxy of this.#between(a, b)) proxy.resume();
  }

  lent(): number {
    return this.#all.reduce((sum, node) => sum + node.lent, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.#all) await node[Symbol.asyncDispose]();
    for (const proxy of this.#proxies.values()) await proxy[Symbol.asyncDispose]();
  }
}

testTransport('tcp', async (_context, limits) => await Promise.resolve(new LoopbackNetwork(limits)));
