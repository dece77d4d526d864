import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, type Random, WebdfsError } from '@webdfs/base';
import { Exchange } from './exchange.ts';
import { MAX_CONNECTIONS, MAX_HEADER_BYTES, MAX_HEADERS, MAX_PIPELINED, MAX_REQUESTS } from './limits.ts';
import { RequestIds } from './request-ids.ts';
import { Wheel } from './wheel.ts';

/** What listens for requests; it answers each of them, and never throws. */
export interface Serving {
  serve(exchange: Exchange): Promise<void>;
  /** Beyond `MAX_REQUESTS`. */
  busy(exchange: Exchange): Promise<void>;
  /** An expectation other than 100-continue. */
  unexpected(exchange: Exchange): Promise<void>;
  /** A whole answer, head and all, for a socket without a request that could be read; the connection ends after it. */
  raw(code: 'BadRequest' | 'RequestHeaderSectionTooLarge' | 'RequestTimeout' | 'SlowDown' | 'MethodNotAllowed'): string;
}

export interface ServerLimits {
  readonly connections: number;
  readonly requests: number;
  readonly headersTimeoutMs: number;
}

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly reusePort: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: Partial<ServerLimits>;
}

const FAULTS: Readonly<Record<string, 'RequestHeaderSectionTooLarge' | 'RequestTimeout'>> = {
  HPE_HEADER_OVERFLOW: 'RequestHeaderSectionTooLarge',
  ERR_HTTP_REQUEST_TIMEOUT: 'RequestTimeout',
};

const KEEP_ALIVE_MS = 65_000;

/** A connection serves one request at a time: those sent ahead wait, so that their effects keep their order. */
interface Connection {
  serving: Exchange | undefined;
  readonly waiting: Exchange[];
  /** Requests were sent ahead at least once. */
  held: boolean;
  /** The answer to what came behind them and is no request; the connection ends with it. */
  fault: string | undefined;
}

/** The HTTP/1.1 server under both doors: limits, order, the ends of connections. It knows nothing of S3. */
export class HttpServer {
  readonly wheel: Wheel;
  readonly #server: Server;
  readonly #options: ServerOptions;
  readonly #limits: ServerLimits;
  readonly #serving: Serving;
  readonly #ids: RequestIds;
  readonly #connections = new Map<Socket, Connection>();
  #active = 0;
  #closing = false;

  constructor(serving: Serving, options: ServerOptions) {
    this.#serving = serving;
    this.#options = options;
    this.#limits = {
      connections: MAX_CONNECTIONS,
      requests: MAX_REQUESTS,
      headersTimeoutMs: 20_000,
      ...options.limits,
    };
    this.wheel = new Wheel(options.clock);
    this.#ids = new RequestIds(options.random);
    this.#server = createServer({
      noDelay: true,
      insecureHTTPParser: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveTimeoutBuffer: 5_000,
      headersTimeout: this.#limits.headersTimeoutMs,
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(2_000, this.#limits.headersTimeoutMs),
      requireHostHeader: false,
    });
    this.#server.maxHeadersCount = MAX_HEADERS;
    this.#listenTo(this.#server);
  }

  /** Requests being served. */
  get active(): number {
    return this.#active;
  }

  get closing(): boolean {
    return this.#closing;
  }

  /** @throws WebdfsError BAD_CONFIG if the address cannot be had */
  listen(): Promise<AddressInfo> {
    const { host, port, reusePort } = this.#options;
    return new Promise((resolve, reject) => {
      const refuse = (error: Error): void =>
        reject(new WebdfsError('BAD_CONFIG', `cannot listen on ${host}:${port}: ${error.message}`, { cause: error }));
      this.#server.once('error', refuse);
      this.#server.listen({ host, port, reusePort, backlog: 1_024 }, () => {
        this.#server.off('error', refuse);
        this.#server.on('error', () => undefined);
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Stops listening at once; idle connections close, busy ones after their answer or after `graceMs`. */
  close(graceMs: number): Promise<void> {
    this.#closing = true;
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(graceMs, () => this.#server.closeAllConnections());
      this.#server.close(() => {
        timer.cancel();
        this.wheel.stop();
        resolve();
      });
      this.#server.closeIdleConnections();
    });
  }

  #listenTo(server: Server): void {
    server.on('connection', (socket: Socket) => this.#onConnection(socket));
    server.on('request', (request, response) => this.#onRequest(request, response, false));
    server.on('checkContinue', (request, response) => this.#onRequest(request, response, true));
    server.on('checkExpectation', (request, response) => {
      // an empty expectation expects nothing
      if (request.headers.expect === '') return this.#onRequest(request, response, false);
      const exchange = this.#exchange(request, response, true);
      void this.#serving.unexpected(exchange);
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => this.#onClientError(error, socket));
    server.on('connect', (_request, socket: Duplex) => this.#end(socket, this.#serving.raw('MethodNotAllowed')));
    server.on('dropRequest', (_request, socket: Duplex) => socket.destroy());
    // no listener for `upgrade`: then the parser ignores it, as RFC 9110 section 7.8 allows. Clients that offer h2c with
    // every request are served over HTTP/1.1 instead of being refused
  }

  #onConnection(socket: Socket): void {
    socket.on('error', () => undefined);
    if (this.#connections.size >= this.#limits.connections) return this.#end(socket, this.#serving.raw('SlowDown'));
    this.#connections.set(socket, { serving: undefined, waiting: [], held: false, fault: undefined });
    socket.once('close', () => this.#connections.delete(socket));
  }

  #exchange(request: IncomingMessage, response: ServerResponse, expects: boolean): Exchange {
    const { clock } = this.#options;
    return new Exchange(request, response, { id: this.#ids.next(), nowMs: clock.now(), wheel: this.wheel, expects });
  }

  #onRequest(request: IncomingMessage, response: ServerResponse, expects: boolean): void {
    const exchange = this.#exchange(request, response, expects);
    response.on('error', () => undefined);
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) return void socket.destroy();
    if (connection.serving === undefined) return this.#start(exchange, connection);
    if (connection.waiting.length >= MAX_PIPELINED) return void socket.destroy();
    connection.waiting.push(exchange);
    this.#holdBack(socket, connection);
  }

  /**
   * Lets what comes after wait in the network. The parser reads the connection natively, and what it does for bodies
   * resumes reading behind our back: only with a listener for its bytes does a pause hold.
   */
  #holdBack(socket: Socket, connection: Connection): void {
    if (!connection.held) {
      connection.held = true;
      socket.on('data', () => undefined);
      socket.on('resume', () => {
        if (connection.waiting.length > 0) socket.pause();
      });
    }
    socket.pause();
  }

  #start(exchange: Exchange, connection: Connection): void {
    connection.serving = exchange;
    const tooMany = this.#active >= this.#limits.requests;
    this.#active += 1;
    this.wheel.add(exchange);
    exchange.response.once('close', () => this.#done(exchange, connection));
    void (tooMany ? this.#serving.busy(exchange) : this.#serving.serve(exchange));
  }

  #done(exchange: Exchange, connection: Connection): void {
    this.#active -= 1;
    this.wheel.delete(exchange);
    connection.serving = undefined;
    if (!exchange.response.writableFinished) exchange.abort();
    const { socket } = exchange.request;
    if (socket.destroyed) {
      connection.waiting.length = 0;
      return;
    }
    const next = connection.waiting.shift();
    if (next !== undefined) this.#start(next, connection);
    else if (connection.fault !== undefined) return this.#end(socket, connection.fault);
    if (connection.waiting.length === 0) socket.resume();
  }

  /** May fire twice for one socket: timeout, then parse error. */
  #onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const text = this.#serving.raw(FAULTS[error.code ?? ''] ?? 'BadRequest');
    const connection = this.#connections.get(socket as Socket);
    if (connection?.serving?.request.complete !== true) return this.#end(socket, text);
    // requests that came whole before it are answered first
    if (connection.waiting.at(-1)?.request.complete === false) connection.waiting.pop();
    connection.fault = text;
    socket.pause();
  }

  #end(socket: Duplex, text: string): void {
    socket.on('error', () => undefined);
    if (!socket.writable) return void socket.destroy();
    socket.end(text, () => socket.destroy());
  }
}
