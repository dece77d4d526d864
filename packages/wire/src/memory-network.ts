import { type Clock, type Log, type NodeId, type Random, SeededRandom, silentLog } from '@webdfs/base';
import { type Limits, LIMITS } from './limits.ts';
import { MemoryConnection, type Path } from './memory-pipe.ts';
import { NodeTransport } from './node-transport.ts';
import type { Network, Pipe, PipeUser } from './pipe.ts';
import type { Handlers } from './transport.ts';

export interface MemoryNetworkOptions {
  readonly clock: Clock;
  readonly random?: Random;
  readonly log?: Log;
  readonly limits?: Partial<Limits>;
}

interface Joined {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly connection: MemoryConnection;
}

/** What a node of a simulation has of its own; else it shares that of the network. */
export interface MemoryNodeSeams {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
}

/** How many connections are remembered before closed ones are looked for. */
const SWEEP_AT = 64;

/**
 * The network of a cluster inside one process: the same transport as over TCP, frames and greetings included, on
 * connections whose delay, rate and failures are set by hand and run by the clock. Pieces of bodies are overwritten when
 * they are released, so that a late reader is caught.
 */
export class MemoryNetwork {
  readonly #options: MemoryNetworkOptions;
  readonly #random: Random;
  readonly #accepting = new Map<NodeId, (pipe: Pipe) => PipeUser>();
  readonly #paths = new Map<string, Path>();
  #joined: Joined[] = [];
  #sweepAt = SWEEP_AT;

  constructor(options: MemoryNetworkOptions) {
    this.#options = options;
    this.#random = options.random ?? new SeededRandom(1);
  }

  /** A node begins; disposing the transport ends it, and opening it again is another boot. */
  open(self: NodeId, handlers: Handlers, seams: MemoryNodeSeams = {}): NodeTransport {
    const { clock, log, limits } = { ...this.#options, ...seams };
    return new NodeTransport({
      self,
      cluster: '0'.repeat(32),
      secrets: [new Uint8Array(32)],
      handlers,
      clock,
      random: seams.random ?? this.#random,
      log: log ?? silentLog,
      limits: { ...LIMITS, ...limits },
      network: this.#networkOf(self),
      poison: true,
    });
  }

  /** Where a node is reached, whether it is open or not. */
  address(node: NodeId): string {
    return `memory:${node}`;
  }

  /** Nothing passes between two nodes, and neither is told: what is under way waits. */
  partition(a: NodeId, b: NodeId): void {
    this.#path(a, b).blocked = true;
    this.#path(b, a).blocked = true;
  }

  /** Nothing passes from one node to another; the way back stays open. */
  partitionOneWay(from: NodeId, to: NodeId): void {
    this.#path(from, to).blocked = true;
  }

  heal(a: NodeId, b: NodeId): void {
    this.#path(a, b).blocked = false;
    this.#path(b, a).blocked = false;
    for (const { connection } of this.#between(a, b)) connection.wake();
  }

  /** Time from writing to arrival, each way. */
  delay(a: NodeId, b: NodeId, ms: number): void {
    this.delayOneWay(a, b, ms);
    this.delayOneWay(b, a, ms);
  }

  /** Time from writing to arrival, one way; what is under way keeps its own, and its place. */
  delayOneWay(from: NodeId, to: NodeId, ms: number): void {
    this.#path(from, to).delayMs = ms;
  }

  /** Bytes per millisecond of each connection, each way. */
  slow(a: NodeId, b: NodeId, bytesPerMs: number): void {
    this.#path(a, b).bytesPerMs = bytesPerMs;
    this.#path(b, a).bytesPerMs = bytesPerMs;
  }

  /** Drops all connections between two nodes and what is under way on them; they may connect again. */
  drop(a: NodeId, b: NodeId): void {
    const between = this.#between(a, b);
    this.#joined = this.#joined.filter((joined) => !between.includes(joined));
    for (const { connection } of between) connection.cut();
  }

  /**
   * A node is no more: it is told of nothing, and nothing comes of what it still does. With `reset` a kernel that lives on
   * tells the others that its connections are gone; without, they only notice that it is silent. Another may be opened in its
   * place.
   */
  crash(node: NodeId, options: { readonly reset: boolean }): void {
    this.#accepting.delete(node);
    const gone = this.#joined.filter(({ from, to }) => from === node || to === node);
    this.#joined = this.#joined.filter((joined) => !gone.includes(joined));
    for (const { from, connection } of gone) connection.abandon(from === node ? 'dialler' : 'acceptor', options.reset);
  }

  #path(from: NodeId, to: NodeId): Path {
    const name = `${from}>${to}`;
    const known = this.#paths.get(name);
    if (known !== undefined) return known;
    const path: Path = { blocked: false, delayMs: 0, bytesPerMs: Infinity };
    this.#paths.set(name, path);
    return path;
  }

  #between(a: NodeId, b: NodeId): Joined[] {
    return this.#joined.filter(({ from, to }) => (from === a && to === b) || (from === b && to === a));
  }

  #networkOf(self: NodeId): Network {
    return {
      address: this.address(self),
      serve: (accept) => void this.#accepting.set(self, accept),
      dial: (address, user) => this.#dial(self, address, user),
      close: () => {
        this.#accepting.delete(self);
        return Promise.resolve();
      },
    };
  }

  #dial(from: NodeId, address: string, user: PipeUser): Pipe {
    const to = Number(address.slice('memory:'.length)) as NodeId;
    const connection = new MemoryConnection(this.#options.clock, {
      forth: this.#path(from, to),
      back: this.#path(to, from),
    });
    if (this.#joined.length >= this.#sweepAt) {
      this.#joined = this.#joined.filter((joined) => !joined.connection.over);
      this.#sweepAt = Math.max(SWEEP_AT, this.#joined.length * 2);
    }
    this.#joined.push({ from, to, connection });
    // The acceptor learns of the connection with its first bytes: a partition holds up connecting too.
    let acceptor: PipeUser | undefined;
    connection.join(user, {
      received: (bytes) => {
        acceptor ??= this.#accepting.get(to)?.(connection.acceptor);
        if (acceptor === undefined) connection.acceptor.destroy();
        return acceptor?.received(bytes) ?? true;
      },
      ended: (cause) => acceptor?.ended(cause),
    });
    return connection.dialler;
  }
}
