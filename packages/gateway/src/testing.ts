import { Agent, type IncomingHttpHeaders, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { asPolicyId, ManualClock, SeededRandom } from '@webdfs/base';
import { MemoryGroups, ObjectLayer, type ObjectLayerOptions, type ObjectStore } from '@webdfs/client';
import { type DoorOptions, openDoor, type OpenDoor } from './door.ts';
import { type AccessKey, bearerTokenOf, KeyRing } from './keys.ts';
import { payloadHash, queryOf, signRequest } from './s3/signer.ts';

/** For this room's tests: an open door over a store in memory, and clients for it. */

export const KEY: AccessKey = { accessKeyId: 'TESTKEY', secretAccessKey: 'a secret for tests' };
const REGION = 'test-1';

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** Of S3's error document. */
  readonly code: string | undefined;
}

export interface Ask {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  /** `x-amz-content-sha256`, default: the body's. */
  readonly payload?: string;
  /** Unsigned, or with a bearer token; default: signed. */
  readonly as?: 'anyone' | 'bearer';
}

export class TestDoor implements AsyncDisposable {
  readonly store: ObjectStore;
  readonly groups: MemoryGroups;
  readonly keys: KeyRing;
  readonly clock: ManualClock;
  readonly door: OpenDoor;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 });
  readonly #sockets: Socket[] = [];

  constructor(parts: Pick<TestDoor, 'store' | 'groups' | 'keys' | 'clock' | 'door'>) {
    this.store = parts.store;
    this.groups = parts.groups;
    this.keys = parts.keys;
    this.clock = parts.clock;
    this.door = parts.door;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    for (const socket of this.#sockets) socket.destroy();
    const closed = this.door.close(1_000);
    this.clock.advance(1_000);
    await closed;
  }

  /** The headers of a signed request for a path that is encoded already. */
  signed(method: string, path: string, ask: Ask = {}): Record<string, string> {
    return signRequest({
      method,
      host: this.door.address,
      path,
      query: ask.query ?? {},
      headers: ask.headers ?? {},
      payloadHash: ask.payload ?? payloadHash(ask.body ?? ''),
      credentials: KEY,
      region: REGION,
      nowMs: this.clock.now(),
    });
  }

  headersFor(method: string, path: string, ask: Ask): Record<string, string> {
    if (ask.as === 'anyone') return { ...ask.headers };
    if (ask.as === 'bearer') return { authorization: `Bearer ${bearerTokenOf(KEY)}`, ...ask.headers };
    return this.signed(method, path, ask);
  }

  /** A signed request's first lines as text, without the empty line. */
  head(method: string, path: string, ask: Ask = {}): string {
    const headers = Object.entries(this.signed(method, path, ask)).map(([name, value]) => `${name}: ${value}\r\n`);
    return `${method} ${path} HTTP/1.1\r\n${headers.join('')}`;
  }

  /** Sends a request and reads its answer whole. */
  async ask(method: string, path: string, ask: Ask = {}): Promise<Answered> {
    const query = queryOf(ask.query ?? {});
    const body = typeof ask.body === 'string' ? Buffer.from(ask.body) : ask.body;
    return await new Promise((resolve, reject) => {
      const outgoing = httpRequest(
        {
          agent: this.#agent,
          host: '127.0.0.1',
          port: this.door.port,
          method,
          path: query === '' ? path : `${path}?${query}`,
          headers: {
            ...this.headersFor(method, path, ask),
            ...(body !== undefined && { 'content-length': String(body.length) }),
          },
        },
        (answer) => {
          void buffer(answer).then((bytes) => {
            const text = bytes.toString();
            const code = /<Code>([^<]*)/.exec(text)?.[1];
            resolve({ status: answer.statusCode ?? 0, headers: answer.headers, bytes, text, code });
          }, reject);
        },
      );
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  }

  /** A connection without a client: what is written is what is sent. */
  connect(): RawConnection {
    const socket = connect(this.door.port, '127.0.0.1');
    this.#sockets.push(socket);
    return new RawConnection(socket);
  }

  /** Sends bytes on a connection of their own, and gives what came until it closed. */
  async raw(text: string): Promise<string> {
    const connection = this.connect();
    connection.write(text);
    return await connection.untilClose();
  }
}

export class RawConnection {
  readonly socket: Socket;
  #received = '';
  #closed = false;
  #wake: (() => void) | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => {
      this.#received += chunk.toString('latin1');
      this.#wake?.();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#closed = true;
      this.#wake?.();
    });
  }

  get received(): string {
    return this.#received;
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  async #until(holds: () => boolean): Promise<string> {
    while (!holds() && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#received;
  }

  /** What came, once `pattern` is in it, or the connection has closed. */
  until(pattern: RegExp): Promise<string> {
    return this.#until(() => pattern.test(this.#received));
  }

  untilClose(): Promise<string> {
    return this.#until(() => false);
  }
}

export interface TestDoorOptions extends Partial<
  Pick<DoorOptions, 'limits' | 'domains' | 'onBroken' | 'reporter' | 'log'>
> {
  readonly sizes?: ObjectLayerOptions['sizes'];
  /** Stands before the store, to make it slow or sick. */
  readonly wrap?: (store: ObjectStore) => ObjectStore;
}

export async function aDoor(options: TestDoorOptions = {}): Promise<TestDoor> {
  const { sizes, wrap = (it: ObjectStore): ObjectStore => it, ...doorOptions } = options;
  const clock = new ManualClock();
  const random = new SeededRandom(1);
  const groups = new MemoryGroups({ clock });
  const layer = new ObjectLayer({ groups, policy: asPolicyId(1), clock, random, ...(sizes && { sizes }) });
  const store = wrap(layer);
  const keys = new KeyRing([KEY]);
  const door = await openDoor({ store, keys, clock, random, host: '127.0.0.1', port: 0, ...doorOptions });
  return new TestDoor({ store, groups, keys, clock, door });
}

/** With the public bucket `bucket`, and in it `k`: `hello`. */
export async function aPublicBucket(options: TestDoorOptions = {}): Promise<TestDoor> {
  const door = await aDoor(options);
  await door.ask('PUT', '/bucket');
  await door.ask('PUT', '/bucket', { query: { acl: '' }, headers: { 'x-amz-acl': 'public-read' } });
  await door.ask('PUT', '/bucket/k', { body: 'hello' });
  return door;
}

/** What a raw answer says. */
export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
export const codeOf = (answer: string): string | undefined => /<Code>([^<]*)/.exec(answer)?.[1];

/** Runs the loop until a condition holds that only input or output brings about. */
export async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

/** A store with some of its methods replaced. */
export function replacing(store: ObjectStore, methods: Partial<ObjectStore>): ObjectStore {
  return new Proxy(store, {
    get(target, name) {
      const replaced: unknown = Reflect.get(methods, name);
      if (replaced !== undefined) return replaced;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
