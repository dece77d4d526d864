import * as net from 'node:net';
import { parseAddress } from './tcp-network.ts';

/** A wire that tests can cut: forwards TCP connections to another address until told otherwise. */
export class TcpProxy implements AsyncDisposable {
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
