import assert from 'node:assert/strict';
import * as net from 'node:net';
import { test } from 'node:test';
import { asNodeId, makeLog, type NodeId, silentLog, systemClock, SystemRandom } from '@webdfs/base';
import { type TestNetwork, testTransport } from './conformance.ts';
import type { Limits } from './limits.ts';
import type { NodeTransport } from './node-transport.ts';
import { formatAddress, parseAddress } from './tcp-network.ts';
import { openTcpTransport, type TcpTransportOptions } from './tcp-transport.ts';
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
    for (const socket of this.#sockets) socket.destroy();
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

  readonly #tls: boolean;

  constructor(limits: Partial<Limits>, tls: boolean) {
    this.#limits = limits;
    this.#tls = tls;
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
      tls: this.#tls,
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

testTransport('tcp', async (_context, limits) => await Promise.resolve(new LoopbackNetwork(limits, false)));
testTransport('tls', async (_context, limits) => await Promise.resolve(new LoopbackNetwork(limits, true)));

const HANDLERS: Handlers = {
  call: (_verb, message) => message,
  post: () => undefined,
  receive: (_verb, message) => Promise.resolve(message),
  serve: (_verb, message) => Promise.resolve(message),
};

/** Two nodes that know each other's address. */
async function aPair(
  one: Partial<TcpTransportOptions>,
  two: Partial<TcpTransportOptions>,
): Promise<{ met: () => boolean; events: string[] } & AsyncDisposable> {
  const events: string[] = [];
  const log = makeLog({ write: (line) => events.push(line), now: () => 0, least: 'debug' });
  const nodes: NodeTransport[] = [];
  for (const [id, options] of [one, two].entries()) {
    nodes.push(
      await openTcpTransport({
        self: asNodeId(id + 1),
        cluster: 'ab'.repeat(16),
        secret: new Uint8Array(32).fill(1),
        host: '127.0.0.1',
        port: 0,
        handlers: HANDLERS,
        clock: systemClock,
        random,
        log,
        limits: { firstRetryMs: 5, lastRetryMs: 20 },
        ...options,
      }),
    );
  }
  const peers = new Map(nodes.map(({ self, address }) => [self, address]));
  for (const node of nodes) node.setPeers(peers);
  return {
    events,
    met: () => nodes.every((node) => [...peers.keys()].every((peer) => node.alive(peer))),
    [Symbol.asyncDispose]: async () => {
      for (const node of nodes) await node[Symbol.asyncDispose]();
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    assert.ok(i < 20_000, 'what was waited for did not come');
    await new Promise<void>((resolve) => systemClock.after(1, resolve));
  }
}

const OLD = new Uint8Array(32).fill(1);
const FRESH = new Uint8Array(32).fill(2);

test('under TLS a secret is changed one node at a time', async () => {
  const stages: Partial<TcpTransportOptions>[] = [
    { secret: OLD },
    { secret: OLD, otherSecrets: [FRESH] },
    { secret: FRESH, otherSecrets: [OLD] },
    { secret: FRESH },
  ];
  for (let stage = 0; stage + 1 < stages.length; stage++) {
    for (const [a, b] of [
      [stage, stage + 1],
      [stage + 1, stage],
    ] as const) {
      await using pair = await aPair({ ...stages[a], tls: true }, { ...stages[b], tls: true });
      await until(pair.met);
    }
  }
});

const STRANGERS: [string, Partial<TcpTransportOptions>, Partial<TcpTransportOptions>][] = [
  ['another secret', { tls: true }, { tls: true, secret: FRESH }],
  ['another cluster', { tls: true }, { tls: true, cluster: 'cd'.repeat(16) }],
  ['plain to TLS', { tls: false }, { tls: true }],
  ['TLS to plain', { tls: true }, { tls: false }],
];

test('under TLS nobody meets who has another secret, another cluster, or no TLS', async () => {
  for (const [name, one, two] of STRANGERS) {
    await using pair = await aPair(one, two);
    await until(() => pair.events.filter((line) => line.includes('connection failed')).length >= 3);
    assert.equal(pair.met(), false, name);
  }
});

test('MAX_STRANGERS bounds handshakes of TLS under way, and closing does not wait for them', async () => {
  const node = await openTcpTransport({
    self: asNodeId(1),
    cluster: 'ab'.repeat(16),
    secret: OLD,
    host: '127.0.0.1',
    port: 0,
    handlers: HANDLERS,
    clock: systemClock,
    random,
    log: silentLog,
    tls: true,
    limits: { maxStrangers: 3 },
  });
  let closed = 0;
  const connect = async (): Promise<void> => {
    const socket = net.connect(parseAddress(node.address));
    socket.on('error', () => undefined);
    socket.on('close', () => closed++);
    await new Promise<void>((resolve) => socket.on('connect', resolve));
  };
  for (let i = 0; i < 3; i++) await connect();
  await connect();
  await until(() => closed === 1);
  await node[Symbol.asyncDispose]();
  await until(() => closed === 4);
});

test('an address that is taken, or is none, is BAD_CONFIG', async () => {
  const base = {
    self: asNodeId(1),
    cluster: 'ab'.repeat(16),
    secret: OLD,
    host: '127.0.0.1',
    handlers: HANDLERS,
    clock: systemClock,
    random,
    log: silentLog,
  };
  await using first = await openTcpTransport({ ...base, port: 0 });
  const { port } = parseAddress(first.address);
  await assert.rejects(openTcpTransport({ ...base, port }), { code: 'BAD_CONFIG' });
  for (const address of ['', 'host', 'host:', ':1', 'host:0', 'host:70000', 'a:b:1', '[::1', 'host:1x']) {
    assert.throws(() => parseAddress(address), { code: 'BAD_CONFIG' }, address);
  }
  assert.deepEqual(parseAddress('[::1]:9000'), { host: '::1', port: 9000 });
  assert.equal(formatAddress('::1', 9000), '[::1]:9000');
});
