import * as net from 'node:net';
import * as tls from 'node:tls';
import { assert, EMPTY, WebdfsError } from '@webdfs/base';
import type { Network, Pipe, PipeUser } from './pipe.ts';

const EXPORTER_BYTES = 32;
const EXPORTER_LABEL = 'EXPORTER-webdfs-wire-1';

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

/** One connection, plain or under TLS. */
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
    if (!(this.#socket instanceof tls.TLSSocket)) return EMPTY;
    return new Uint8Array(this.#socket.exportKeyingMaterial(EXPORTER_BYTES, EXPORTER_LABEL, Buffer.alloc(0)));
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

/** Gives `user` what comes in, in fresh buffers. */
function readChunks(socket: net.Socket, user: PipeUser): void {
  watchEnd(socket, user);
  socket.on('data', (bytes: Buffer) => {
    if (!user.received(bytes)) socket.pause();
  });
}

/** How sockets are made: plain, or under TLS. */
export interface Sockets {
  readonly server: net.Server;
  /** The server's event for a connection that is fit for frames. */
  readonly event: 'connection' | 'secureConnection';
  /** Whether whoever is at the other end may come in; everybody if missing. */
  readonly isWelcome?: (socket: net.Socket) => boolean;
  /** Ends connections that are not that far yet. */
  readonly endHandshakes?: () => void;
  readonly connect: (options: net.TcpNetConnectOpts) => net.Socket;
}

const PLAIN: () => Sockets = () => ({
  server: net.createServer({ noDelay: true }),
  event: 'connection',
  connect: (options) => net.connect(options),
});

/** TCP, plain unless told otherwise. */
export class TcpNetwork implements Network {
  readonly address: string;
  readonly #sockets: Sockets;
  #accept: ((pipe: Pipe) => PipeUser) | undefined;

  private constructor(sockets: Sockets, host: string) {
    this.#sockets = sockets;
    const bound = sockets.server.address();
    assert(bound !== null && typeof bound === 'object', 'a listening server has a port');
    this.address = formatAddress(host, bound.port);
    sockets.server.on(sockets.event, (socket: net.Socket) => this.#connected(socket));
  }

  /** @throws BAD_CONFIG if the address cannot be listened on */
  static open(host: string, port: number, sockets: Sockets = PLAIN()): Promise<TcpNetwork> {
    const { server } = sockets;
    return new Promise((resolve, reject) => {
      server.once('error', (error) =>
        reject(new WebdfsError('BAD_CONFIG', `cannot listen on ${formatAddress(host, port)}`, { cause: error })),
      );
      server.listen({ host, port, backlog: 511 }, () => resolve(new TcpNetwork(sockets, host)));
    });
  }

  serve(accept: (pipe: Pipe) => PipeUser): void {
    this.#accept = accept;
  }

  #connected(socket: net.Socket): void {
    if (this.#accept === undefined || this.#sockets.isWelcome?.(socket) === false) {
      // nobody listens for its errors any more
      socket.on('error', () => undefined);
      socket.destroy();
      return;
    }
    readChunks(socket, this.#accept(new TcpPipe(socket)));
  }

  dial(address: string, user: PipeUser): Pipe {
    const { host, port } = parseAddress(address);
    const { space } = user;
    const where = { host, port, noDelay: true };
    if (space === undefined) {
      const socket = this.#sockets.connect(where);
      readChunks(socket, user);
      return new TcpPipe(socket);
    }
    const callback = (count: number, buffer: Uint8Array): boolean => user.received(buffer.subarray(0, count));
    const socket = this.#sockets.connect({ ...where, onread: { buffer: space, callback } });
    watchEnd(socket, user);
    return new TcpPipe(socket);
  }

  close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#sockets.server.close(() => resolve()));
    this.#sockets.endHandshakes?.();
    return closed;
  }
}
