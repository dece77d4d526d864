import { assert, type Clock, type Log, messageOf, type Random, silentLog, toHex } from '@webdfs/base';
import type { ObjectStore } from '@webdfs/client';
import type { Context } from './context.ts';
import { isBroken, isOurFault, refusalOf } from './errors.ts';
import type { Answer } from './http/answer.ts';
import type { Exchange } from './http/exchange.ts';
import { bearsToken } from './http/headers.ts';
import { RETRY_AFTER_SECONDS } from './http/limits.ts';
import { send } from './http/send.ts';
import { HttpServer, type ServerLimits, type Serving } from './http/server.ts';
import type { KeyRing } from './keys.ts';
import { plainError, servePlain } from './plain/plain-door.ts';
import { Refusal } from './refusal.ts';
import type { Reporter } from './reports.ts';
import { errorAnswer, errorElement } from './s3/error-document.ts';
import { serveS3 } from './s3/s3-door.ts';
import { SigningKeys } from './s3/signing-keys.ts';
import { documentOf } from './s3/xml-write.ts';

export interface DoorOptions {
  readonly store: ObjectStore;
  readonly keys: KeyRing;
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Log;
  /** Several processes listen on one port; the kernel spreads connections over them. */
  readonly reusePort?: boolean;
  /** Of buckets that are made without one; default `us-east-1`. */
  readonly region?: string;
  /** Domains for virtual-host style, `bucket.domain`; `localhost` is always one. */
  readonly domains?: readonly string[];
  readonly limits?: Partial<ServerLimits>;
  /** What `GET /-/NAME` answers to those who hold a key. */
  readonly reporter?: Reporter;
  /** Told of an invariant that broke while a request was served: the process should end. Default: it does, by throwing. */
  readonly onBroken?: (error: Error) => void;
}

/** An open door. */
export interface OpenDoor {
  /** `host:port`. */
  readonly address: string;
  readonly port: number;
  /** Requests being served now. */
  readonly active: number;
  /** Stops listening; requests under way have `graceMs` to finish. */
  close(graceMs: number): Promise<void>;
}

/**
 * Opens the S3 door and the plain HTTP door on one port.
 *
 * @throws WebdfsError BAD_CONFIG if the address cannot be had
 */
export async function openDoor(options: DoorOptions): Promise<OpenDoor> {
  const door = new Door(options);
  const { address, family, port } = await door.server.listen();
  return {
    address: family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`,
    port,
    get active() {
      return door.server.active;
    },
    close: (graceMs) => door.server.close(graceMs),
  };
}

const RAW_REASON = {
  BadRequest: 'Bad Request',
  MethodNotAllowed: 'Method Not Allowed',
  RequestHeaderSectionTooLarge: 'Request Header Fields Too Large',
  RequestTimeout: 'Request Timeout',
  SlowDown: 'Service Unavailable',
} as const;

class Door implements Serving {
  readonly server: HttpServer;
  readonly #context: Context;
  readonly #options: DoorOptions;
  readonly #log: Log;
  readonly #hostId: string;
  readonly #common: readonly string[];

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
    const domains = ['localhost', ...(options.domains ?? [])].map((domain) => domain.toLowerCase());
    const { store, keys, region = 'us-east-1' } = options;
    this.#context = { store, keys, region, domains, signingKeys: new SigningKeys(), reporter: options.reporter };
    this.#hostId = toHex(options.random.bytes(16));
    this.#common = ['x-amz-id-2', this.#hostId, 'Server', 'WebDFS'];
    const { host, port, clock, random, reusePort = false, limits } = options;
    this.server = new HttpServer(this, { host, port, clock, random, reusePort, ...(limits && { limits }) });
  }

  async serve(exchange: Exchange): Promise<void> {
    let answer: Answer;
    try {
      exchange.parse();
      answer = await (bearsToken(exchange.headers) ? servePlain : serveS3)(exchange, this.#context);
    } catch (error) {
      return await this.#refuse(exchange, error);
    }
    await this.#send(exchange, answer, false);
  }

  async busy(exchange: Exchange): Promise<void> {
    await this.#refuse(exchange, new Refusal('SlowDown', undefined, { close: true }));
  }

  async unexpected(exchange: Exchange): Promise<void> {
    await this.#refuse(exchange, new Refusal('ExpectationFailed', undefined, { close: true }));
  }

  raw(code: keyof typeof RAW_REASON): string {
    const refusal = new Refusal(code);
    const status = code === 'RequestTimeout' ? 408 : refusal.status;
    const body = documentOf(errorElement(refusal, { resource: '', requestId: '', hostId: this.#hostId }));
    const retry = status === 503 ? `Retry-After: ${RETRY_AFTER_SECONDS}\r\n` : '';
    return (
      `HTTP/1.1 ${status} ${RAW_REASON[code]}\r\nContent-Type: application/xml\r\n${retry}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
    );
  }

  async #refuse(exchange: Exchange, error: unknown): Promise<void> {
    const refusal = refusalOf(error);
    if (!exchange.response.destroyed) await this.#send(exchange, this.#answerOf(exchange, error), refusal.close);
    this.#tell(exchange, error);
  }

  /** The log has what the operator must see; a broken invariant ends the process after its request was answered. */
  #tell(exchange: Exchange, error: unknown): void {
    if (!isOurFault(error)) return;
    const { id, method } = exchange;
    this.#log.error('request failed', { id, method, message: messageOf(error) });
    if (!isBroken(error)) return;
    if (this.#options.onBroken !== undefined) return this.#options.onBroken(error);
    this.#options.clock.soon(() => {
      throw error;
    });
  }

  #answerOf(exchange: Exchange, error: unknown): Answer {
    const refusal = refusalOf(error);
    const answer = bearsToken(exchange.headers)
      ? plainError(refusal, exchange)
      : errorAnswer(refusal, { resource: exchange.target.path, requestId: exchange.id, hostId: this.#hostId });
    if (refusal.status !== 503) return answer;
    const seconds = Math.max(RETRY_AFTER_SECONDS, Math.ceil(refusal.retryAfterMs / 1_000));
    return { ...answer, headers: [...answer.headers, 'Retry-After', String(seconds)] };
  }

  #documentOf(exchange: Exchange, error: unknown): string {
    const place = { resource: exchange.target.path, requestId: exchange.id, hostId: this.#hostId };
    return errorElement(refusalOf(error), place);
  }

  async #send(exchange: Exchange, answer: Answer, close: boolean): Promise<void> {
    assert(!exchange.response.headersSent, 'a request is answered once');
    try {
      await send(exchange, answer, {
        clock: this.#options.clock,
        common: this.#common,
        close: close || this.server.closing,
        documentOf: (error) => {
          this.#tell(exchange, error);
          return this.#documentOf(exchange, error);
        },
        answerOf: (error) => {
          this.#tell(exchange, error);
          return this.#answerOf(exchange, error);
        },
      });
    } catch (error) {
      if (!exchange.response.headersSent) return await this.#refuse(exchange, error);
      // the head had gone: the connection was broken, and that is all the client can be told
      exchange.request.socket.destroy();
      this.#tell(exchange, error);
    }
  }
}
