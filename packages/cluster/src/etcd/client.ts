import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { type Clock, codeOf, sleep, WebdfsError } from '@webdfs/base';
import type { EtcdAddress } from './address.ts';
import { errorOf, type Fields, wantsToken } from './answers.ts';
import { linesOf } from './lines.ts';

/** Certificates in PEM. */
export interface EtcdTls {
  /** Who may have signed etcd's; the system's authorities if missing. */
  readonly ca?: string;
  /** Ours, where etcd asks for one. */
  readonly cert?: string;
  readonly key?: string;
}

export interface EtcdClientOptions {
  readonly address: EtcdAddress;
  readonly tls?: EtcdTls;
  readonly clock: Clock;
  /** How long an answer is waited for, over all tries; 2 000. */
  readonly timeoutMs?: number;
}

export interface CallOptions {
  /** It may be sent twice: another member is asked when one does not answer. */
  readonly repeatable: boolean;
}

const TIMEOUT_MS = 2_000;
/** A member that has not answered a repeatable request by then is given up for another. */
const ATTEMPT_MS = 700;
const PAUSE_MS = 50;
const MAX_SOCKETS = 64;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

function notSent(cause: unknown): WebdfsError {
  return new WebdfsError('UNAVAILABLE', 'etcd is away', { cause, details: { sent: false } });
}

function unanswered(cause: unknown): WebdfsError {
  const message = 'etcd did not answer: it may or may not have happened';
  return new WebdfsError('UNAVAILABLE', message, { cause, details: { sent: true } });
}

/** @throws the error that an answer means */
function checked(answer: Fields): Fields {
  const error = errorOf(answer);
  if (error !== undefined) throw error;
  return answer;
}

/**
 * etcd's JSON gateway over HTTP: one POST a request. Members are asked in turn, and the one that answered last first.
 *
 * Source: etcd, "Why gRPC gateway" (API reference, v3.4).
 */
export class EtcdClient implements Disposable {
  readonly #options: EtcdClientOptions;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #closed = new AbortController();
  #member = 0;
  #token: string | undefined;

  constructor(options: EtcdClientOptions) {
    this.#options = options;
    const kept = { keepAlive: true, maxSockets: MAX_SOCKETS };
    this.#agent = options.address.tls ? new HttpsAgent({ ...kept, ...options.tls }) : new HttpAgent(kept);
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Leaves the member that is asked now for the next one. */
  turn(): void {
    this.#member = (this.#member + 1) % this.#options.address.hosts.length;
  }

  /** @throws UNAVAILABLE (`details.sent` false: it surely did not happen), and what etcd says */
  async call(path: string, body: Fields, { repeatable }: CallOptions): Promise<Fields> {
    const { clock, timeoutMs = TIMEOUT_MS } = this.#options;
    const until = clock.monotonic() + timeoutMs;
    for (;;) {
      // the pause may have taken longer than was left
      const left = Math.max(PAUSE_MS, until - clock.monotonic());
      try {
        return await this.#attempt(path, body, repeatable ? Math.min(left, ATTEMPT_MS) : left);
      } catch (error) {
        const again =
          codeOf(error) === 'UNAVAILABLE' && (repeatable || (error as WebdfsError).details['sent'] === false);
        if (!again || this.closed.aborted || until - clock.monotonic() <= PAUSE_MS) throw error;
      }
      this.turn();
      await sleep(clock, PAUSE_MS, this.closed).catch(() => undefined);
    }
  }

  /** Answers that come over time to one request, until the signal aborts or the connection ends. @throws as `call` */
  async *stream(path: string, body: Fields, signal: AbortSignal): AsyncGenerator<Fields> {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const response = await this.#send(path, body, { ms: timeoutMs, signal });
    try {
      for await (const answer of linesOf(response, MAX_ANSWER_BYTES)) {
        yield checked(answer);
      }
    } catch (error) {
      throw codeOf(error) === undefined ? unanswered(error) : error;
    } finally {
      response.destroy();
    }
  }

  [Symbol.dispose](): void {
    this.#closed.abort(new WebdfsError('UNAVAILABLE', 'this way to etcd is closed'));
    this.#agent.destroy();
  }

  async #attempt(path: string, body: Fields, ms: number): Promise<Fields> {
    let answer = await this.#exchange(path, body, ms);
    if (wantsToken(answer) && this.#options.address.user !== undefined) {
      await this.#authenticate(ms);
      answer = await this.#exchange(path, body, ms);
    }
    return checked(answer);
  }

  async #authenticate(ms: number): Promise<void> {
    const { user, password = '' } = this.#options.address;
    this.#token = undefined;
    const answer = checked(await this.#exchange('auth/authenticate', { name: user, password }, ms));
    this.#token = String(answer['token']);
  }

  /** One request and its whole answer. */
  async #exchange(path: string, body: Fields, ms: number): Promise<Fields> {
    const late = new AbortController();
    const timer = this.#options.clock.after(ms, () => late.abort(new Error(`no answer within ${Math.round(ms)} ms`)));
    let answer: Fields | undefined;
    try {
      const response = await this.#send(path, body, { ms, signal: late.signal });
      for await (const line of linesOf(response, MAX_ANSWER_BYTES)) answer ??= line;
    } catch (error) {
      throw codeOf(error) === undefined ? unanswered(late.signal.aborted ? late.signal.reason : error) : error;
    } finally {
      timer.cancel();
    }
    if (answer === undefined) throw new WebdfsError('WIRE_CORRUPT', 'etcd: an empty answer');
    return answer;
  }

  /** Sends a request; resolves with the head of its answer, which must begin within `ms`. */
  async #send(path: string, body: Fields, patience: { ms: number; signal: AbortSignal }): Promise<IncomingMessage> {
    const late = new AbortController();
    const timer = this.#options.clock.after(patience.ms, () => late.abort(new Error('no answer in time')));
    try {
      return await this.#request(path, body, AbortSignal.any([late.signal, patience.signal, this.closed]));
    } finally {
      timer.cancel();
    }
  }

  #request(path: string, body: Fields, signal: AbortSignal): Promise<IncomingMessage> {
    const { address } = this.#options;
    const host = address.hosts[this.#member]!;
    const bytes = Buffer.from(JSON.stringify(body));
    const headers = {
      'content-type': 'application/json',
      'content-length': bytes.length,
      // a member that has lost its leader says so, instead of keeping silent
      'grpc-metadata-hasleader': 'true',
      ...(this.#token === undefined ? {} : { authorization: this.#token }),
    };
    const options = { method: 'POST', headers, agent: this.#agent, signal } as const;
    return new Promise((resolve, reject) => {
      let connected = false;
      const url = `${address.tls ? 'https' : 'http'}://${host}/v3/${path}`;
      const sent = address.tls ? httpsRequest(url, options) : httpRequest(url, options);
      sent.on('socket', (socket) => {
        connected = !socket.connecting;
        if (connected) return;
        socket.once(address.tls ? 'secureConnect' : 'connect', () => {
          connected = true;
        });
      });
      sent.on('response', resolve);
      sent.on('error', (error) => {
        const cause: unknown = signal.aborted ? signal.reason : error;
        reject(connected ? unanswered(cause) : notSent(cause));
      });
      sent.end(bytes);
    });
  }
}
