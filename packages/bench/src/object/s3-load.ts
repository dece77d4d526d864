import { createHash } from 'node:crypto';
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import { type Clock, messageOf, type Random } from '@webdfs/base';
import { deriveSigningKey, pathOf, queryOf, signRequest } from '@webdfs/webdfs';
import { Histogram } from './histogram.ts';

/**
 * A closed loop of signed requests over kept connections: each connection sends its next request when it has the answer
 * to the last, and every byte read is compared with what was written.
 */

export interface S3Target {
  readonly name: string;
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface LoadResult {
  readonly operations: number;
  readonly errors: number;
  readonly firstError: string | undefined;
  readonly seconds: number;
  /** Latencies in milliseconds at 50, 95 and 99 per cent, and the longest. */
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly longest: number;
}

const REGION = 'us-east-1';
/** Keys that a load writes in turn, and reads in turn. */
export const KEY_COUNT = 512;

export class S3Load implements Disposable {
  readonly #target: S3Target;
  readonly #url: URL;
  readonly #bucket: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #agent: Agent;
  #signing: { day: string; key: Uint8Array } = { day: '', key: new Uint8Array() };

  constructor(options: { target: S3Target; bucket: string; connections: number; clock: Clock; random: Random }) {
    this.#target = options.target;
    this.#url = new URL(options.target.endpoint);
    this.#bucket = options.bucket;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connections, scheduling: 'fifo' });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  #signingKey(nowMs: number): Uint8Array {
    const day = new Date(nowMs).toISOString().slice(0, 10).replaceAll('-', '');
    if (day !== this.#signing.day) {
      const { accessKeyId, secretAccessKey } = this.#target;
      this.#signing = {
        day,
        key: deriveSigningKey(secretAccessKey, { accessKeyId, day, region: REGION, service: 's3' }),
      };
    }
    return this.#signing.key;
  }

  async #exchange(
    method: string,
    path: string,
    query: string,
    body?: Body,
  ): Promise<{ status: number; body: Uint8Array[] }> {
    const nowMs = this.#clock.now();
    const headers = signRequest({
      method,
      host: this.#url.host,
      path,
      query: query === '' ? {} : { [query]: '' },
      headers: body === undefined ? {} : { 'content-length': String(body.bytes.length) },
      ...(body === undefined ? {} : { payloadHash: body.sha256 }),
      credentials: this.#target,
      region: REGION,
      nowMs,
      signingKey: this.#signingKey(nowMs),
    });
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = httpRequest({
        host: this.#url.hostname,
        port: this.#url.port,
        method,
        path: query === '' ? path : `${path}?${queryOf({ [query]: '' })}`,
        headers,
        agent: this.#agent,
      });
      outgoing.on('response', resolve);
      outgoing.on('error', reject);
      outgoing.end(body?.bytes);
    });
    return await new Promise((resolve, reject) => {
      const pieces: Uint8Array[] = [];
      answer.on('data', (piece: Uint8Array) => pieces.push(piece));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: pieces }));
      answer.on('error', reject);
    });
  }

  /** @throws Error with the answer's text if the bucket is neither made nor there already */
  async makeBucket(): Promise<void> {
    const { status, body } = await this.#exchange('PUT', pathOf(this.#bucket), '');
    if (status === 200 || status === 409) return;
    throw new Error(
      `${this.#target.name}: making the bucket answered ${status}: ${Buffer.concat(body).toString().slice(0, 300)}`,
    );
  }

  #key(size: number, index: number): string {
    return `size-${size}/object-${index % keyCountOf(size)}`;
  }

  /** Sends operations on `connections` connections until the time is over. */
  async run(options: {
    operation: 'PUT' | 'GET';
    body: Body;
    connections: number;
    seconds: number;
  }): Promise<LoadResult> {
    const { operation, body } = options;
    const size = body.bytes.length;
    const latencies = new Histogram(this.#random);
    const state = { errors: 0, firstError: undefined as string | undefined, next: 0 };
    const started = this.#clock.monotonic();
    const until = started + options.seconds * 1000;
    const worker = async (): Promise<void> => {
      while (this.#clock.monotonic() < until) {
        const path = pathOf(this.#bucket, this.#key(size, state.next++));
        const begun = this.#clock.monotonic();
        const problem = await this.#one(operation, path, body).catch((error: unknown) => messageOf(error));
        latencies.add(this.#clock.monotonic() - begun);
        if (problem === undefined) continue;
        state.errors++;
        state.firstError ??= problem;
      }
    };
    await Promise.all(Array.from({ length: options.connections }, worker));
    const [p50, p95, p99] = latencies.percentiles([0.5, 0.95, 0.99]);
    return {
      operations: latencies.count,
      errors: state.errors,
      firstError: state.firstError,
      seconds: (this.#clock.monotonic() - started) / 1000,
      p50: p50!,
      p95: p95!,
      p99: p99!,
      longest: latencies.largest,
    };
  }

  /** Writes every key once, so that reads find them. */
  async fill(body: Body, connections: number): Promise<void> {
    let next = 0;
    const count = keyCountOf(body.bytes.length);
    const worker = async (): Promise<void> => {
      while (next < count) {
        const problem = await this.#one('PUT', pathOf(this.#bucket, this.#key(body.bytes.length, next++)), body);
        if (problem !== undefined) throw new Error(`${this.#target.name}: ${problem}`);
      }
    };
    await Promise.all(Array.from({ length: connections }, worker));
  }

  /** What went wrong, or undefined. */
  async #one(operation: 'PUT' | 'GET', path: string, body: Body): Promise<string | undefined> {
    const answer = await this.#exchange(operation, path, '', operation === 'PUT' ? body : undefined);
    if (answer.status !== 200) {
      return `${operation} ${path} answered ${answer.status}: ${Buffer.concat(answer.body).toString().slice(0, 200)}`;
    }
    if (operation === 'GET' && !sameBytes(answer.body, body.bytes))
      return `${operation} ${path} gave other bytes than were written`;
    return undefined;
  }
}

/** Large objects are fewer, so that a comparison fits on a small disk. */
function keyCountOf(size: number): number {
  return Math.max(16, Math.min(KEY_COUNT, Math.floor((320 * 1024 * 1024) / Math.max(1, size))));
}

export interface Body {
  readonly bytes: Uint8Array;
  readonly sha256: string;
}

/** Bytes that do not compress, with the hash that the signature covers. */
export function bodyOf(size: number, random: Random): Body {
  const bytes = random.bytes(size);
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

function sameBytes(pieces: readonly Uint8Array[], wanted: Uint8Array): boolean {
  let offset = 0;
  for (const piece of pieces) {
    if (Buffer.compare(piece, wanted.subarray(offset, offset + piece.length)) !== 0) return false;
    offset += piece.length;
  }
  return offset === wanted.length;
}
