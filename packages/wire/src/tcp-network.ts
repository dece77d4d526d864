import * as net from 'node:net';
import { assert, EMPTY, WebdfsError } from '@webdfs/base';
import type { Network, Pipe, PipeUser } from './pipe.ts';

/** @throws BAD_CONFIG if it is not `host:port` */
export function parseAddress(address: string): { host: string; port: number } {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535) throw new WebdfsError('BAD_CONFIG', `no address: ${address}`);
  return { host: match[1] ?? match[2]!, port };
}

export function formatAddress(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** One TCP connection. */
class TcpPipe implements Pipe {
  readonly #socket: net.Socket;

  constructor(socket: net.Socket) {
    this.#socket = socket;
  }

  get queued(): number {
    return this.#socket.writableLength;
  }

  write(buffers: readonly Uint8Array[], left: () => void): void {
    const socket = this.#socket;
    const last = buffers.length - 1;
    if (last === 0) {
      socket.write(buffers[0]!, left);
      return;
    }
    socket.cork();
    for (let i = 0; i < last; i++) socket.write(buffers[i]!);
    socket.write(buffers[last]!, left);
    socket.uncork();
  }

  resume(): void {
    this.#socket.resume();
  }

  end(): void {
    this.#socket.destroySoon();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  exporter(): Uint8Array {
    return EMPTY;
  }
}

/** Tells `user` once of the end of a socket. */
function watchEnd(socket: net.Socket, user: PipeUser): void {
  let cause = 'closed by the peer';
  socket.on('error', (error: NodeJS.ErrnoException) => {
    cause = error.code ?? error.message;
  });
  socket.on('end', () => socket.destroy());
  socket.on('close', () => user.ended(cause));
}

/** Plain TCP. */
export class TcpNetwork implements Network {
  readonly address: string;
  readonly #server: net.Server;
  #accept: ((pipe: Pipe) => PipeUser) | undefined;

  private constructor(server: net.Server, host: string) {
    this.#server = server;
    const bound = server.address();
    assert(bound !== null && typeof bound === 'object', 'a listening server has a port');
    this.address = formatAddress(host, bound.port);
    server.on('connection', (socket) => this.#connected(socket));
  }

  /** @throws BAD_CONFIG if the address cannot be listened on */
  static open(host: string, port: number): Promise<TcpNetwork> {
    const server = net.createServer({ noDelay: true });
    return new Promise((resolve, reject) => {
      server.once('error', (error) =>
        reject(new WebdfsError('BAD_CONFIG', `cannot listen on ${formatAddress(host, port)}`, { cause: error })),
      );
      server.listen({ host, port, backlog: 511 }, () => resolve(new TcpNetwork(server, host)));
    });
  }

  serve(accept: (pipe: Pipe) => PipeUser): void {
    this.#accept = accept;
  }

  #connected(socket: net.Socket): void {
    if (this.#accept === undefined) {
      socket.destroy();
      return;
    }
    const user = this.#accept(new TcpPipe(socket));
    watchEnd(socket, user);
    socket.on('data', (bytes: Buffer) => {
      if (!user.received(bytes)) socket.pause();
    });
  }

  dial(address: string, user: PipeUser): Pipe {
    const { host, port } = parseAddress(address);
    const { space } = user;
    const where = { host, port, noDelay: true };
    if (space === undefined) {
      const socket = net.connect(where);
      watchEnd(socket, user);
      socket.on('data', (bytes: Buffer) => {
        if (!user.received(bytes)) socket.pause();
      });
      return new TcpPipe(socket);
    }
    const callback = (count: number, buffer: Uint8Array): boolean => user.received(buffer.subarray(0, count));
    const socket = net.connect({ ...where, onread: { buffer: space, callback } });
    watchEnd(socket, user);
    return new TcpPipe(socket);
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
