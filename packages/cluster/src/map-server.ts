import { createServer, type Server, type Socket } from 'node:net';
import { codeOf, type Log, messageOf, silentLog, WebdfsError } from '@webdfs/base';
import { type EmbeddedMapOwner, processHolder } from './embedded-map-owner.ts';
import type { MapCore } from './map-core.ts';
import { FrameReader, packFrame } from './map-frames.ts';
import { type MapRequest, parseRequest } from './map-requests.ts';
import type { Change, MapEntry } from './map-store.ts';

const MAX_CONNECTIONS = 256;
/** Requests of one connection that are not answered yet; watches are among them. */
const MAX_UNANSWERED = 256;
/** An answer that needs more is sent in parts, each once the socket has taken the last. */
const PART_BYTES = 256 * 1024;
/** `sun_path` of unix(7), less its zero. */
const MAX_PATH_BYTES = 107;

/** Everything but those who own the socket's folder is kept out: the socket is readable and writable by its user only. */
function listenPrivately(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // bind happens inside `listen`, so the mask holds for nothing else
    const mask = process.umask(0o177);
    try {
      server.listen(path, () => {
        server.off('error', reject);
        resolve();
      });
    } finally {
      process.umask(mask);
    }
  });
}

/** One client: its requests, each answered when it is ready. */
class Connection {
  readonly #core: MapCore;
  readonly #socket: Socket;
  readonly #log: Log;
  readonly #reader = new FrameReader();
  readonly #closed = new AbortController();
  #unanswered = 0;
  #holder = 'unknown';

  constructor(core: MapCore, socket: Socket, log: Log) {
    this.#core = core;
    this.#socket = socket;
    this.#log = log;
    socket.on('data', (bytes) => this.#receive(bytes));
    socket.on('error', (error) => log.debug('map.connection.error', { error: error.message }));
    socket.on('close', () => this.#closed.abort());
  }

  #receive(bytes: Uint8Array): void {
    try {
      for (const message of this.#reader.push(bytes)) this.#accept(message);
    } catch (error) {
      this.#log.warn('map.connection.refused', { error: messageOf(error) });
      this.#socket.destroy();
    }
  }

  #accept(message: Record<string, unknown>): void {
    const id = message['id'];
    if (typeof id !== 'number') throw new WebdfsError('WIRE_CORRUPT', 'a request without an id');
    if (this.#unanswered >= MAX_UNANSWERED) throw new WebdfsError('BUSY', `${MAX_UNANSWERED} requests are unanswered`);
    this.#unanswered++;
    void this.#answer(id, message);
  }

  async #answer(id: number, message: Record<string, unknown>): Promise<void> {
    try {
      const result = await this.#perform(id, parseRequest(message));
      this.#send({ id, result: result ?? {} });
    } catch (error) {
      this.#send({ id, error: { code: codeOf(error) ?? 'UNAVAILABLE', message: messageOf(error) } });
    } finally {
      this.#unanswered--;
    }
  }

  #send(message: unknown): void {
    if (!this.#socket.destroyed) this.#socket.write(packFrame(message));
  }

  async #perform(id: number, request: MapRequest): Promise<unknown> {
    switch (request.op) {
      case 'hello':
        this.#holder = processHolder(request.pid);
        return undefined;
      case 'read':
        return await this.#sendContents(id);
      case 'transact':
        return await this.#core.transact(request.transaction);
      case 'fresh':
        return { revision: this.#core.revision };
      case 'changes':
        return { changes: await this.#changesAfter(request.after) };
      case 'lease':
        return { lease: this.#core.grant(request.ttlMs, this.#holder), ttlMs: request.ttlMs };
      case 'renew':
        return this.#core.renew(request.lease);
      case 'end':
        return await this.#core.end(request.lease);
    }
  }

  /** All that came after a revision, as much as fits a part; waits until there is something. */
  async #changesAfter(after: number): Promise<Change[]> {
    const taken: Change[] = [];
    let bytes = 0;
    while (!this.#closed.signal.aborted) {
      for (const change of this.#core.changesAfter(after)) {
        if (taken.length > 0 && bytes >= PART_BYTES) break;
        taken.push(change);
        for (const { key, entry } of change.changes) bytes += 64 + key.length + (entry?.value.length ?? 0);
      }
      if (taken.length > 0) break;
      await this.#core.grown(after, this.#closed.signal);
    }
    return taken;
  }

  async #sendContents(id: number): Promise<unknown> {
    const { revision, entries } = this.#core.contents();
    let part: MapEntry[] = [];
    let bytes = 0;
    for (const entry of entries) {
      part.push(entry);
      bytes += 96 + entry.key.length + entry.value.length;
      if (bytes < PART_BYTES) continue;
      this.#send({ id, part });
      part = [];
      bytes = 0;
      await this.#drained();
    }
    this.#send({ id, part });
    return { revision };
  }

  #drained(): Promise<void> {
    if (!this.#socket.writableNeedDrain || this.#socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        this.#socket.off('drain', done);
        this.#socket.off('close', done);
        resolve();
      };
      this.#socket.on('drain', done);
      this.#socket.on('close', done);
    });
  }
}

/**
 * Lets other processes of this machine reach an embedded map store over a Unix socket of mode 0600. A connection that
 * breaks ends nothing: its process may still live.
 *
 * @throws BAD_CONFIG if the path is too long for a socket, DISK_FAILED if it cannot be made
 */
export async function serveMapStore(
  owner: EmbeddedMapOwner,
  socketPath: string,
  log: Log = silentLog,
): Promise<AsyncDisposable> {
  if (Buffer.byteLength(socketPath) > MAX_PATH_BYTES) {
    throw new WebdfsError('BAD_CONFIG', `the socket's path is longer than ${MAX_PATH_BYTES} bytes: ${socketPath}`);
  }
  // the folder has one owner, so a socket that is there is nobody's
  await owner.disk.unlink(socketPath);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    void new Connection(owner.core, socket, log);
  });
  server.maxConnections = MAX_CONNECTIONS;
  try {
    await listenPrivately(server, socketPath);
  } catch (error) {
    throw new WebdfsError('DISK_FAILED', `cannot listen on ${socketPath}`, { cause: error });
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
