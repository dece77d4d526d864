import assert from 'node:assert/strict';
import * as net from 'node:net';
import { test } from 'node:test';
import {
  asNodeId,
  type Clock,
  concat,
  EMPTY,
  ManualClock,
  type NodeId,
  SeededRandom,
  silentLog,
  systemClock,
  SystemRandom,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { HEADER_BYTES, KIND, packFrame, u16At } from './frame.ts';
import { type Hello, LANE, linkKey, packHello, proofOf, putProof, transcript, unpackHello } from './hello.ts';
import { type Limits, LIMITS } from './limits.ts';
import { GOAWAY_REASON } from './message.ts';
import type { NodeTransport } from './node-transport.ts';
import { parseAddress } from './tcp-network.ts';
import { openTcpTransport } from './tcp-transport.ts';
import type { Handlers } from './transport.ts';

const CLUSTER = 'ab'.repeat(16);
const SECRET = new Uint8Array(32).fill(9);
const KEY = linkKey(SECRET, CLUSTER);
const random = new SystemRandom();

const refusing = (): never => {
  throw new WebdfsError('UNSUPPORTED', 'no stranger gets here');
};
const HANDLERS: Handlers = { call: refusing, post: refusing, receive: refusing, serve: refusing };

async function open(
  self: number,
  options: { secret?: Uint8Array; otherSecrets?: Uint8Array[]; clock?: Clock; limits?: Partial<Limits> } = {},
): Promise<NodeTransport> {
  return await openTcpTransport({
    self: asNodeId(self),
    cluster: CLUSTER,
    secret: SECRET,
    host: '127.0.0.1',
    port: 0,
    handlers: HANDLERS,
    clock: systemClock,
    random,
    log: silentLog,
    ...options,
    limits: { firstRetryMs: 5, lastRetryMs: 20, ...options.limits },
  });
}

/** Node 5, which expects nodes 1 and 9 to connect. */
async function acceptor(options: Parameters<typeof open>[1] = {}): Promise<NodeTransport> {
  const node = await open(5, options);
  node.setPeers(
    new Map([
      [asNodeId(1), '127.0.0.1:1'],
      [asNodeId(9), '127.0.0.1:1'],
    ]),
  );
  return node;
}

const helloOf = (change: Partial<Hello> = {}): Uint8Array =>
  packHello({
    newest: 1,
    oldest: 1,
    lane: LANE.MESSAGES,
    window: LIMITS.window,
    node: asNodeId(1),
    boot: '00'.repeat(8),
    cluster: CLUSTER,
    nonce: random.bytes(16),
    ...change,
  });
const helloFrame = (hello: Uint8Array): Uint8Array => packFrame(KIND.HELLO, 0, hello, EMPTY);
const proofFrame = (proof: Uint8Array): Uint8Array => packFrame(KIND.PROOF, 0, proof, EMPTY);

/** A connection made by hand. */
class Stranger {
  readonly socket: net.Socket;
  #received: Uint8Array = EMPTY;
  closed = false;
  #wake: (() => void)[] = [];

  constructor(address: string) {
    this.socket = net.connect(parseAddress(address));
    this.socket.on('error', () => undefined);
    this.socket.on('data', (bytes) => {
      this.#received = concat([this.#received, bytes]);
      this.#notify();
    });
    this.socket.on('close', () => {
      this.closed = true;
      this.#notify();
    });
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = [];
    for (const one of wake) one();
  }

  /** The next so many bytes; fewer if it is closed before. */
  async take(count: number): Promise<Uint8Array> {
    while (this.#received.length < count && !this.closed)
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    const taken = this.#received.subarray(0, count);
    this.#received = this.#received.subarray(count);
    return taken;
  }

  /** All that comes until the other end closes. */
  async rest(): Promise<Uint8Array> {
    return await this.take(Infinity);
  }
}

/** What a stranger hears that says `bytes`, until it is closed. */
async function heard(node: NodeTransport, bytes: Uint8Array): Promise<number> {
  const stranger = new Stranger(node.address);
  stranger.socket.write(bytes);
  return (await stranger.rest()).length;
}

/** Greets properly up to the acceptor's answer. */
async function greet(
  node: NodeTransport,
  change: Partial<Hello> = {},
): Promise<{ stranger: Stranger; text: Uint8Array; answer: Uint8Array }> {
  const stranger = new Stranger(node.address);
  const hello = helloOf(change);
  stranger.socket.write(helloFrame(hello));
  const answer = (await stranger.take(HEADER_BYTES + 96)).subarray(HEADER_BYTES);
  assert.equal(answer.length, 96);
  return { stranger, text: transcript(hello, answer), answer };
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    assert.ok(i < 5000, 'what was waited for did not come');
    await new Promise<void>((resolve) => systemClock.after(1, resolve));
  }
}

test('a stranger who does not belong is closed without a word', async () => {
  await using node = await acceptor();
  const early = helloOf();
  putProof(early, random.bytes(32));
  const strange: Record<string, Uint8Array> = {
    'another cluster': helloFrame(helloOf({ cluster: 'cd'.repeat(16) })),
    'a node that is not expected': helloFrame(helloOf({ node: asNodeId(2) })),
    'the node itself': helloFrame(helloOf({ node: asNodeId(5) })),
    'the larger id for messages': helloFrame(helloOf({ node: asNodeId(9) })),
    'a proof before its time': helloFrame(early),
    'a greeting of 97 bytes': packFrame(KIND.HELLO, 0, concat([helloOf(), Uint8Array.of(0)]), EMPTY),
    'a greeting of 95 bytes': packFrame(KIND.HELLO, 0, helloOf().subarray(1), EMPTY),
    'attached bytes': packFrame(KIND.HELLO, 0, helloOf().subarray(0, 90), new Uint8Array(6)),
    'a proof instead of a greeting': proofFrame(random.bytes(32)),
    'a call': packFrame(KIND.CALL, 1, new Uint8Array(20), EMPTY),
    HTTP: utf8('GET / HTTP/1.1\r\nHost: here\r\n\r\n'),
  };
  for (const [name, bytes] of Object.entries(strange)) assert.equal(await heard(node, bytes), 0, name);
});

test('whoever does not know the secret is closed at its proof, and no link comes up', async () => {
  await using node = await acceptor();
  node.onChange(() => assert.fail('no link may come up'));
  const other = linkKey(random.bytes(32), CLUSTER);
  const proofs: ((text: Uint8Array, answer: Uint8Array) => Uint8Array)[] = [
    (text) => proofOf('dialler', other, text),
    // The acceptor's own proof, reflected.
    (_text, answer) => answer.slice(64),
    (text) => proofOf('acceptor', KEY, text),
    () => new Uint8Array(32),
    () => EMPTY,
  ];
  for (const proof of proofs) {
    const { stranger, text, answer } = await greet(node);
    stranger.socket.write(proofFrame(proof(text, answer)));
    assert.equal((await stranger.rest()).length, 0);
  }
  assert.equal(node.alive(asNodeId(1)), false);
});

test('a greeting that was recorded cannot be replayed', async () => {
  await using node = await acceptor();
  let ups = 0;
  node.onChange((_node, alive) => void (ups += alive ? 1 : 0));
  const hello = helloOf();
  const first = new Stranger(node.address);
  first.socket.write(helloFrame(hello));
  const answer = (await first.take(HEADER_BYTES + 96)).subarray(HEADER_BYTES);
  const proof = proofFrame(proofOf('dialler', KEY, transcript(hello, answer)));
  first.socket.write(proof);
  await until(() => ups === 1);
  first.socket.destroy();
  await until(() => !node.alive(asNodeId(1)));
  const second = new Stranger(node.address);
  second.socket.write(concat([helloFrame(hello), proof]));
  await second.rest();
  assert.equal(ups, 1);
});

test('a proven peer without a version in common hears why and is closed', async () => {
  await using node = await acceptor();
  node.onChange(() => assert.fail('no link may come up'));
  const { stranger, text } = await greet(node, { newest: 7, oldest: 2 });
  stranger.socket.write(proofFrame(proofOf('dialler', KEY, text)));
  const last = await stranger.rest();
  assert.equal(last[8], KIND.GOAWAY);
  assert.equal(u16At(last, HEADER_BYTES), GOAWAY_REASON.VERSION);
});

test('MAX_STRANGERS may wait, one more is closed at once, and none of them keeps a peer out for good', async () => {
  await using node = await acceptor({ limits: { maxStrangers: 4 } });
  const waiting: Stranger[] = [];
  for (let i = 0; i < 4; i++) {
    const { stranger } = await greet(node);
    waiting.push(stranger);
  }
  assert.equal(await heard(node, helloFrame(helloOf())), 0);
  assert.ok(waiting.every(({ closed }) => !closed));
  waiting[0]!.socket.destroy();
  await until(() => waiting[0]!.closed);
  let let_in = false;
  for (let i = 0; i < 100 && !let_in; i++) {
    const stranger = new Stranger(node.address);
    stranger.socket.write(helloFrame(helloOf()));
    let_in = (await stranger.take(HEADER_BYTES + 96)).length > 0;
  }
  assert.ok(let_in);
  for (const { socket } of waiting) socket.destroy();
});

test('HANDSHAKE_MS is all the time a stranger has', async () => {
  const clock = new ManualClock();
  await using node = await acceptor({ clock });
  const { stranger } = await greet(node);
  clock.advance(LIMITS.handshakeMs - 1);
  assert.equal(stranger.closed, false);
  clock.advance(1);
  assert.equal((await stranger.rest()).length, 0);
  assert.equal(stranger.closed, true);
});

/** Listens like a node, answers each connection with `answer(hello)`, and collects what comes after the greeting. */
async function impostor(
  answer: (hello: Uint8Array) => Uint8Array,
): Promise<{ address: string; after: Uint8Array[]; close: () => void }> {
  const after: Uint8Array[] = [];
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined);
    let greeted = false;
    socket.on('data', (bytes) => {
      if (greeted) after.push(bytes);
      else socket.write(answer(bytes.subarray(HEADER_BYTES)));
      greeted = true;
    });
    socket.on('close', () => closed++);
  });
  let closed = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  return { address: `127.0.0.1:${port}`, after, close: () => server.close() };
}

test('a node proves nothing to whoever cannot prove to be the node it dialled', async () => {
  const lies: ((hello: Uint8Array) => Uint8Array)[] = [
    // Its own greeting, reflected; another secret; the right secret of another node; garbage.
    (hello) => hello,
    (hello) => signed(hello, helloOf({ node: asNodeId(2) }), linkKey(random.bytes(32), CLUSTER)),
    (hello) => signed(hello, helloOf({ node: asNodeId(3) }), KEY),
    (hello) => signed(hello, helloOf({ node: asNodeId(1) }), KEY),
    (hello) => signed(hello, helloOf({ node: asNodeId(2), lane: LANE.BODIES }), KEY),
    (hello) => signed(hello, helloOf({ node: asNodeId(2), cluster: 'cd'.repeat(16) }), KEY),
    () => random.bytes(96),
  ];
  for (const lie of lies) {
    let asked = 0;
    const fake = await impostor((hello) => {
      asked++;
      return helloFrame(lie(hello));
    });
    await using node = await open(1);
    node.onChange(() => assert.fail('no link may come up'));
    node.setPeers(new Map([[asNodeId(2), fake.address]]));
    // It comes back, by its back-off, and still says nothing more.
    await until(() => asked >= 2);
    assert.deepEqual(fake.after, []);
    fake.close();
  }
});

function signed(dialler: Uint8Array, hello: Uint8Array, key: Uint8Array): Uint8Array {
  putProof(hello, proofOf('acceptor', key, transcript(dialler, hello)));
  return hello;
}

test('a secret is changed one node at a time, without a moment in which two nodes cannot meet', async () => {
  const [old, fresh] = [random.bytes(32), random.bytes(32)];
  const stages = [
    { secret: old },
    { secret: old, otherSecrets: [fresh] },
    { secret: fresh, otherSecrets: [old] },
    { secret: fresh },
  ];
  for (let stage = 0; stage + 1 < stages.length; stage++) {
    for (const [a, b] of [
      [stage, stage + 1],
      [stage + 1, stage],
    ] as const) {
      await using one = await open(1, stages[a]);
      await using two = await open(2, stages[b]);
      const peers = new Map<NodeId, string>([
        [one.self, one.address],
        [two.self, two.address],
      ]);
      one.setPeers(peers);
      two.setPeers(peers);
      await until(() => one.alive(two.self) && two.alive(one.self));
    }
  }
});

test('a greeting survives packing, and random bytes are refused with a code', (t) => {
  const bytes = new SeededRandom(seedOf(t));
  const hello = unpackHello(helloOf({ nonce: new Uint8Array(16).fill(3) }));
  assert.deepEqual(unpackHello(packHello(hello)), hello);
  for (let round = 0; round < 2000; round++) {
    const damaged = round % 2 === 0 ? bytes.bytes(bytes.below(200)) : helloOf();
    if (round % 2 === 1) damaged[bytes.below(damaged.length)] = bytes.below(256);
    try {
      unpackHello(damaged);
    } catch (error) {
      assert.ok(error instanceof WebdfsError && error.code === 'WIRE_CORRUPT', String(error));
    }
  }
});
