import { connect, type Socket } from 'node:net';
import {
  type Clock,
  codeOf,
  ERROR_CODES,
  type ErrorCode,
  type Log,
  messageOf,
  type Revision,
  sleep,
  WebdfsError,
} from '@webdfs/base';
import { FrameReader, packFrame } from './map-frames.ts';
import type { MapRequest } from './map-requests.ts';
import type { Change, Lease, MapContents, MapEntry, MapStore, Transaction } from './map-store.ts';

export interface MapClientOptions {
  /** How long an answer, or the connection it needs, is waited for; 2 000. */
  readonly timeoutMs?: number;
}

interface Waiting {
  readonly parts: MapEntry[];
  readonly resolve: (result: Record<string, unknown>) => void;
  readonly reject: (error: WebdfsError) => void;
}

const TIMEOUT_MS = 2_000;
const RECONNECT_MS = 100;
const MAX_WAITING = 1_024;

function away(sent: boolean, cause?: unknown): WebdfsError {
  const message = sent ? 'the map store did not answer: it may or may not have happened' : 'the map store is away';
  return new WebdfsError('UNAVAILABLE', message, { cause, details: { sent } });
}

function errorOf(fields: unknown): WebdfsError {
  const { code, message } = fields as { code?: unknown; message?: unknown };
  const known = ERROR_CODES.find((each): each is ErrorCode => each === code);
  return new WebdfsError(known ?? 'UNAVAILABLE', `map store: ${String(message)}`);
}

/** When to stop waiting for an answer. */
interface Patience {
  readonly ms: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** One connection, as long as it lasts. */
class MapLink {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  readonly #reader = new FrameReader();
  #count = 0;

  constructor(socket: Socket, clock: Clock, onClose: () => void) {
    this.#socket = socket;
    this.#clock = clock;
    socket.on('data', (bytes) => this.#receive(bytes));
    socket.on('close', () => {
      onClose();
      for (const { reject } of this.#waiting.values()) reject(away(true));
    });
  }

  /** @throws UNAVAILABLE, BUSY, and what the store says */
  request(request: MapRequest, { ms, signal }: Patience): Promise<Record<string, unknown>> {
    if (signal?.aborted === true) return Promise.reject(away(false));
    if (this.#waiting.size >= MAX_WAITING)
      throw new WebdfsError('BUSY', `${MAX_WAITING} requests wait for the map store`);
    this.#count++;
    const id = this.#count;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => settle(() => reject(away(true)));
      const timer = ms === undefined ? undefined : this.#clock.after(ms, giveUp);
      const settle = (outcome: () => void): void => {
        timer?.cancel();
        signal?.removeEventListener('abort', giveUp);
        this.#waiting.delete(id);
        outcome();
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#waiting.set(id, {
        parts: [],
        resolve: (result) => settle(() => resolve(result)),
        reject: (error) => settle(() => reject(error)),
      });
      this.#socket.write(packFrame({ id, ...request }));
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(bytes: Uint8Array): void {
    try {
      for (const message of this.#reader.push(bytes)) this.#accept(message);
    } catch (error) {
      this.#socket.destroy(error instanceof Error ? error : undefined);
    }
  }

  #accept(message: Record<string, unknown>): void {
    const waiting = this.#waiting.get(message['id'] as number);
    if (waiting === undefined) return;
    if (Array.isArray(message['part'])) {
      for (const entry of message['part']) waiting.parts.push(entry as MapEntry);
      return;
    }
    if (message['error'] !== undefined) waiting.reject(errorOf(message['error']));
    else waiting.resolve({ ...(message['result'] as Record<string, unknown>), entries: waiting.parts });
  }
}

/** A map store owned by another process of this machine. Reconnects by itself; meanwhile its calls fail with UNAVAILABLE. */
class MapClient implements MapStore {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #timeoutMs: number;
  readonly #closed = new AbortController();
  readonly #loop: Promise<void>;
  #link: MapLink | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(path: string, clock: Clock, log: Log, options: MapClientOptions) {
    this.#path = path;
    this.#clock = clock;
    this.#log = log;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#loop = this.#keepConnected();
  }

  async #keepConnected(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      await this.#connection();
      this.#link = undefined;
      await sleep(this.#clock, RECONNECT_MS, this.#closed.signal).catch(() => undefined);
    }
  }

  /** Connects, and resolves when that connection, or the attempt, has ended. */
  #connection(): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(this.#path);
      socket.on('error', (error) => this.#log.debug('map.client.error', { error: messageOf(error) }));
      socket.once('close', () => resolve());
      socket.once('connect', () => {
        if (this.#closed.signal.aborted) return socket.destroy();
        const link = new MapLink(socket, this.#clock, () => {
          this.#link = undefined;
        });
        link.request({ op: 'hello', pid: process.pid }, { ms: undefined, signal: undefined }).catch(() => undefined);
        this.#link = link;
        for (const wake of this.#waiting) wake();
      });
    });
  }

  /** The connection, once there is one. @throws UNAVAILABLE if there is none in time */
  #connected(): Promise<MapLink> {
    if (this.#closed.signal.aborted) return Promise.reject(away(false));
    if (this.#link !== undefined) return Promise.resolve(this.#link);
    if (this.#waiting.size >= MAX_WAITING) return Promise.reject(away(false));
    return new Promise((resolve, reject) => {
      const wake = (): void => {
        timer.cancel();
        this.#waiting.delete(wake);
        if (this.#link === undefined) reject(away(false));
        else resolve(this.#link);
      };
      const timer = this.#clock.after(this.#timeoutMs, wake);
      this.#waiting.add(wake);
    });
  }

  async #ask(request: MapRequest): Promise<Record<string, unknown>> {
    const link = await this.#connected();
    return await link.request(request, { ms: this.#timeoutMs, signal: undefined });
  }

  async read(): Promise<MapContents> {
    const answer = await this.#ask({ op: 'read' });
    return { revision: answer['revision'] as number, entries: answer['entries'] as MapEntry[] };
  }

  async transact(transaction: Transaction): Promise<{ done: boolean; revision: Revision }> {
    const answer = await this.#ask({ op: 'transact', transaction });
    return { done: answer['done'] as boolean, revision: answer['revision'] as number };
  }

  async *watch(after: Revision, signal: AbortSignal): AsyncGenerator<Change> {
    let seen = after;
    while (!signal.aborted && !this.#closed.signal.aborted) {
      let changes: readonly Change[];
      try {
        const link = await this.#connected();
        const answer = await link.request({ op: 'changes', after: seen }, { ms: undefined, signal });
        changes = answer['changes'] as readonly Change[];
      } catch (error) {
        if (codeOf(error) !== 'UNAVAILABLE') throw error;
        await sleep(this.#clock, RECONNECT_MS, signal).catch(() => undefined);
        continue;
      }
      for (const change of changes) {
        if (signal.aborted) return;
        yield change;
        seen = change.revision;
      }
    }
  }

  async fresh(_seen: Revision): Promise<Revision> {
    return (await this.#ask({ op: 'fresh' }))['revision'] as number;
  }

  async lease(ttlMs: number): Promise<Lease> {
    const answer = await this.#ask({ op: 'lease', ttlMs });
    const id = answer['lease'] as number;
    return {
      id,
      ttlMs: answer['ttlMs'] as number,
      renew: async () => {
        await this.#ask({ op: 'renew', lease: id });
      },
      end: async () => {
        await this.#ask({ op: 'end', lease: id });
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    this.#link?.close();
    for (const wake of this.#waiting) wake();
    await this.#loop;
  }
}

/**
 * The map store that another process serves on a Unix socket (`serveMapStore`). Connects in the background, again and
 * again. UNAVAILABLE with `details.sent` false: the request surely was not seen.
 */
export function connectMapStore(socketPath: string, clock: Clock, log: Log, options: MapClientOptions = {}): MapStore {
  return new MapClient(socketPath, clock, log, options);
}
