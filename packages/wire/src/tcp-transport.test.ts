import * as net from 'node:net';
import { type NodeId, silentLog, systemClock, SystemRandom } from '@webdfs/base';
import { type TestNetwork, testTransport } from './conformance.ts';
import type { Limits } from './limits.ts';
import type { NodeTransport } from './node-transport.ts';
import { parseAddress } from './tcp-network.ts';
import { openTcpTransport } from './tcp-transport.ts';
import type { Handlers } from './transport.ts';

const random = new SystemRandom();

/** A wire that tests can cut: forwards TCP connections to another address until told otherwise. */
class TcpProxy implements AsyncDisposable {
  readonly address: string;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  #stalled = false;

  private constructor(server: net.Server, target: () => string | undefined) {
    this.#server = server;
    this.address = `127.0.0.1:${(server.address() as net.AddressInfo).port}`;
    server.on('connection', (socket) => this.#forward(socket, target()));
  }

  /** @param target  where to, asked at each connection; undefined refuses it */
  static async open(target: () => string | undefined): Promise<TcpProxy> {
    const server = net.createServer({ noDelay: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new TcpProxy(server, target);
  }

  #forward(from: net.Socket, target: string | undefined): void {
    if (target === undefined) {
      from.destroy();
      return;
    }
    const to = net.connect({ ...parseAddress(target), noDelay: true });
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => undefined);
      one.on('data', (bytes) => {
        if (!other.write(bytes)) one.pause();
      });
      one.on('drain', () => {
        if (!this.#stalled) other.resume();
      });
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      if (this.#stalled) one.pause();
    }
  }

  /** Ends all connections. */
  drop(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Nothing is forwarded any more, and nobody is told. */
  stall(): void {
    this.#stalled = true;
    for (const socket of this.#sockets) socket.pause();
  }

  resume(): void {
    this.#stalled = false;
    for (const socket of this.#sockets) socket.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.drop();
    await closed;
  }
}

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
