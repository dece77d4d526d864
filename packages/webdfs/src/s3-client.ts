import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Clock, codeOf, WebdfsError } from '@webdfs/base';
import { pathOf, queryOf, signRequest } from '@webdfs/gateway/signing';
import type { Credentials } from './credentials.ts';
import { elementsOf, errorOf, type ListAnswer, listOf, textOf } from './s3-answers.ts';

/** A small S3 client over HTTP/1.1 for the command line and the benchmarks. It does not retry: its callers decide. */
export interface S3Request {
  readonly method: 'GET' | 'PUT' | 'POST' | 'HEAD' | 'DELETE';
  readonly bucket?: string;
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | AsyncIterable<Uint8Array>;
  /** Needed for a streamed body. */
  readonly size?: number;
  /** Hex SHA-256 of the body if it is to be signed; else the payload goes unsigned. */
  readonly payloadHash?: string;
  readonly signal?: AbortSignal;
}

const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

export class S3Client implements Disposable {
  readonly endpoint: URL;
  readonly #credentials: Credentials;
  readonly #clock: Clock;
  readonly #region: string;
  readonly #agent: Agent;

  constructor(options: {
    endpoint: string;
    credentials: Credentials;
    clock: Clock;
    region?: string;
    connections?: number;
  }) {
    if (!URL.canParse(options.endpoint)) {
      throw new WebdfsError('BAD_CONFIG', `endpoint ${options.endpoint} is no address like http://127.0.0.1:9000`);
    }
    this.endpoint = new URL(options.endpoint);
    if (this.endpoint.protocol !== 'http:') {
      throw new WebdfsError('BAD_CONFIG', `endpoint ${options.endpoint}: only http:// is spoken here`);
    }
    this.#credentials = options.credentials;
    this.#clock = options.clock;
    this.#region = options.region ?? 'us-east-1';
    this.#agent = new Agent({ keepAlive: true, maxSockets: options.connections ?? 16 });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  /** Sends a request and gives the answer's head; the caller consumes the body. @throws UNAVAILABLE if nobody answers */
  async send(request: S3Request): Promise<IncomingMessage> {
    const path = request.bucket === undefined ? '/' : pathOf(request.bucket, request.key);
    const hash = request.payloadHash ?? (request.body === undefined ? EMPTY_SHA256 : 'UNSIGNED-PAYLOAD');
    const size = request.body instanceof Uint8Array ? request.body.length : (request.size ?? 0);
    const headers = signRequest({
      method: request.method,
      host: this.endpoint.host,
      path,
      query: request.query ?? {},
      headers: { ...request.headers, ...(request.body === undefined ? {} : { 'content-length': String(size) }) },
      payloadHash: hash,
      credentials: this.#credentials,
      region: this.#region,
      nowMs: this.#clock.now(),
    });
    const query = queryOf(request.query ?? {});
    return await this.#exchange(request, query === '' ? path : `${path}?${query}`, headers);
  }

  #exchange(request: S3Request, target: string, headers: Readonly<Record<string, string>>): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({
        host: this.endpoint.hostname,
        port: this.endpoint.port || 80,
        method: request.method,
        path: target,
        headers,
        agent: this.#agent,
        ...(request.signal === undefined ? {} : { signal: request.signal }),
      });
      const fail = (error: unknown): void => {
        if (request.signal?.aborted === true) reject(new WebdfsError('CANCELLED', 'interrupted', { cause: error }));
        else
          reject(
            // the cause says how, such as ECONNREFUSED
            new WebdfsError('UNAVAILABLE', `${this.endpoint.origin} does not answer`, { cause: error }),
          );
      };
      outgoing.on('response', resolve);
      outgoing.on('error', fail);
      const { body } = request;
      if (body === undefined || body instanceof Uint8Array) outgoing.end(body);
      else
        void pump(body, outgoing).catch((error: unknown) => {
          outgoing.destroy();
          reject(error);
        });
    });
  }

  /** The same for answers that are small or empty. @throws the error that S3 answered */
  async call(request: S3Request): Promise<{ headers: IncomingMessage['headers']; body: string }> {
    const answer = await this.send(request);
    const body = await text(answer);
    const status = answer.statusCode ?? 0;
    if (status >= 300) throw errorOf(status, body, describe(request));
    return { headers: answer.headers, body };
  }

  /** An object's headers. @throws NOT_FOUND in words of our own, because a HEAD is answered without any; as `call` */
  async head(
    bucket: string,
    key: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ headers: IncomingMessage['headers'] }> {
    try {
      return await this.call({ method: 'HEAD', bucket, key, headers });
    } catch (error) {
      if (codeOf(error) === 'NOT_FOUND') throw new WebdfsError('NOT_FOUND', `there is no object s3://${bucket}/${key}`);
      if (codeOf(error) === 'ACCESS_DENIED') {
        throw new WebdfsError('ACCESS_DENIED', `s3://${bucket}/${key}: not allowed: check the keys, and the clock`);
      }
      throw error;
    }
  }

  /** An object's bytes as they come. @throws the error that S3 answered */
  async get(
    bucket: string,
    key: string,
    options: { range?: string; signal?: AbortSignal } = {},
  ): Promise<IncomingMessage> {
    const headers = options.range === undefined ? {} : { range: options.range };
    const request: S3Request = {
      method: 'GET',
      bucket,
      key,
      headers,
      ...(options.signal && { signal: options.signal }),
    };
    return await this.open(request);
  }

  /** Sends a request whose answer has a body to be consumed by the caller. @throws the error that S3 answered */
  async open(request: S3Request): Promise<IncomingMessage> {
    const answer = await this.send(request);
    const status = answer.statusCode ?? 0;
    if (status >= 300) throw errorOf(status, await text(answer), describe(request));
    return answer;
  }

  async listBuckets(): Promise<{ name: string; created: string }[]> {
    const { body } = await this.call({ method: 'GET' });
    return elementsOf(body, 'Bucket').map((entry) => ({
      name: textOf(entry, 'Name') ?? '',
      created: textOf(entry, 'CreationDate') ?? '',
    }));
  }

  async listPage(
    bucket: string,
    options: { prefix?: string; delimiter?: string; token?: string; limit?: number },
  ): Promise<ListAnswer> {
    const query: Record<string, string> = { 'list-type': '2', 'encoding-type': 'url' };
    if (options.prefix !== undefined && options.prefix !== '') query['prefix'] = options.prefix;
    if (options.delimiter !== undefined) query['delimiter'] = options.delimiter;
    if (options.token !== undefined) query['continuation-token'] = options.token;
    if (options.limit !== undefined) query['max-keys'] = String(options.limit);
    const { body } = await this.call({ method: 'GET', bucket, query });
    return listOf(body);
  }

  /** All objects below a prefix, page by page. */
  async *list(bucket: string, prefix: string): AsyncGenerator<ListAnswer['objects'][number]> {
    let token: string | undefined;
    do {
      const page = await this.listPage(bucket, { prefix, ...(token === undefined ? {} : { token }) });
      yield* page.objects;
      token = page.next;
    } while (token !== undefined);
  }
}

function describe(request: S3Request): string {
  // the store's reports name what they are about themselves
  if (request.bucket === '-') return '';
  const target =
    request.bucket === undefined ? '' : ` s3://${request.bucket}${request.key === undefined ? '' : `/${request.key}`}`;
  return `${request.method}${target}`;
}

/** Sends a body at the pace of the connection; ends early when that is closed, of which the request's own events tell. */
async function pump(body: AsyncIterable<Uint8Array>, outgoing: ClientRequest): Promise<void> {
  let wake = (): void => undefined;
  outgoing.on('drain', () => wake());
  outgoing.on('close', () => wake());
  for await (const chunk of body) {
    if (outgoing.destroyed) return;
    if (outgoing.write(chunk)) continue;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  outgoing.end();
}
