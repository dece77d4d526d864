import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  asNodeId,
  concat,
  EMPTY,
  fromUtf8,
  ManualClock,
  SeededRandom,
  silentLog,
  utf8,
  WebdfsError,
} from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { Asked } from './asked.ts';
import { FLAG_LAST, FrameReader, KIND, type Kind, packFrame, putU32, u32At } from './frame.ts';
import type { IncomingBody } from './incoming.ts';
import { Lane, type LaneUser } from './lane.ts';
import { type Limits, LIMITS } from './limits.ts';
import { type CallHead, packCancel, packError, putCall, putReply, readCallHead, unpackError } from './message.ts';
import { OutgoingBody } from './outgoing.ts';
import { PackPool } from './packer.ts';
import type { Pipe } from './pipe.ts';
import { Session } from './session.ts';
import { SlabPool } from './slabs.ts';
import type { Role } from './stream-host.ts';
import type { Handlers, Incoming, Message } from './transport.ts';

/** What leaves at the end of a turn leaves when the test says so. */
class TurnClock extends ManualClock {
  #actions: (() => void)[] = [];

  override soon(action: () => void): void {
    this.#actions.push(action);
  }

  turn(): void {
    const actions = this.#actions;
    this.#actions = [];
    for (const action of actions) action();
  }
}

interface Sent {
  readonly kind: Kind;
  readonly stream: number;
  readonly head: Uint8Array;
  readonly bytes: Uint8Array;
}

const refusing = (): never => {
  throw new WebdfsError('UNSUPPORTED', 'not expected');
};
const HANDLERS: Handlers = { call: refusing, post: () => undefined, receive: refusing, serve: refusing };
const GREETING: LaneUser = { frame: refusing, data: refusing, fill: () => undefined, closed: () => undefined };
const hello = (text: string): Message => ({ head: utf8(text), attached: [] });

/** A session at one end; the test is the other end. */
class Harness {
  readonly clock = new TurnClock();
  readonly slabs: SlabPool;
  readonly session: Session;
  readonly sent: Sent[] = [];
  /** Why the lane was closed. */
  ended: string | undefined;
  /** While false, nothing leaves. */
  reads = true;
  /** Bytes that the pipe was given and did not send. */
  held = 0;
  readonly #lane: Lane;

  constructor(
    role: Role,
    options: { handlers?: Partial<Handlers>; limits?: Partial<Limits>; firstStream?: number } = {},
  ) {
    const limits = { ...LIMITS, ...options.limits };
    const { clock } = this;
    this.slabs = new SlabPool({ slabs: 4, copiedBytes: 1 << 20, poison: true });
    const base = { clock, limits, packs: new PackPool() };
    this.#lane = new Lane(GREETING, role === 'reader' ? { ...base, slabs: this.slabs } : base);
    this.session = new Session(this.#lane, {
      role,
      dialled: role !== 'writer',
      peer: asNodeId(7),
      peerWindow: LIMITS.window,
      handlers: { ...HANDLERS, ...options.handlers },
      clock,
      limits,
      log: silentLog,
      onClosed: (cause) => (this.ended = cause),
      ...(options.firstStream === undefined ? {} : { firstStream: options.firstStream }),
    });
    this.#lane.attach(this.#pipe());
    this.#lane.trust(this.session);
  }

  #pipe(): Pipe {
    const reader = new FrameReader({
      frame: (kind, stream, head, attached) =>
        void this.sent.push({ kind, stream, head: head.slice(), bytes: attached.slice() }),
      data: (stream, bytes) => void this.sent.push({ kind: KIND.DATA, stream, head: EMPTY, bytes: bytes.slice() }),
    });
    reader.trust();
    const queued = (): number => this.held;
    return {
      get queued() {
        return queued();
      },
      write: (buffers, left) => {
        if (!this.reads) {
          for (const buffer of buffers) this.held += buffer.length;
          return;
        }
        for (const buffer of buffers) reader.push(buffer);
        left();
      },
      resume: () => undefined,
      end: () => undefined,
      destroy: () => undefined,
      exporter: () => EMPTY,
    };
  }

  /** The peer sends a frame. */
  feed(kind: Kind, stream: number, head: Uint8Array = EMPTY, bytes: Uint8Array = EMPTY, flags = 0): void {
    const frame = packFrame(kind, stream, head, bytes, flags);
    const space = this.#lane.space?.();
    if (space === undefined) {
      this.#lane.received(frame);
      return;
    }
    space.set(frame);
    this.#lane.received(space.subarray(0, frame.length));
  }

  /** Lets handlers run and what they answered leave; returns what has left since. */
  async turn(): Promise<Sent[]> {
    for (let i = 0; i < 5; i++) {
      await new Promise(setImmediate);
      this.clock.turn();
    }
    return this.sent.splice(0);
  }
}

const callHead = (change: Partial<CallHead> = {}, message: Message = hello('')): Uint8Array => {
  const bytes = new Uint8Array(1024);
  return bytes.subarray(0, putCall(bytes, 0, { verb: 1, leftMs: 1000, trace: 0, window: 0, ...change }, message));
};
const replyHead = (text: string): Uint8Array => {
  const bytes = new Uint8Array(1024);
  return bytes.subarray(0, putReply(bytes, 0, hello(text)));
};
const u32 = (value: number): Uint8Array => {
  const bytes = new Uint8Array(4);
  putU32(bytes, 0, value);
  return bytes;
};
const deadline = { deadlineMs: 1000 };

function code(expected: string): (error: unknown) => boolean {
  return (error) => error instanceof WebdfsError && error.code === expected;
}

/** A promise's outcome so far. */
function watch<T>(promise: Promise<T>): { value?: T; error?: unknown } {
  const outcome: { value?: T; error?: unknown } = {};
  promise.then(
    (value) => (outcome.value = value),
    (error: unknown) => (outcome.error = error),
  );
  return outcome;
}

test('an answer never reaches another call, also when stream numbers begin anew', async () => {
  const end = new Harness('messages', { firstStream: 0xffff_fffb });
  const calls = Array.from({ length: 4 }, (_, i) => watch(end.session.call(1, hello(String(i)), deadline)));
  const streams = (await end.turn()).map(({ stream }) => stream);
  assert.deepEqual(streams, [0xffff_fffb, 0xffff_fffd, 0xffff_ffff, 1]);
  for (const [i, stream] of streams.entries()) end.feed(KIND.REPLY, stream, replyHead(`answer ${i}`));
  await end.turn();
  assert.deepEqual(
    calls.map(({ value }) => fromUtf8(value!.head)),
    ['answer 0', 'answer 1', 'answer 2', 'answer 3'],
  );
});

test('a stream number in use is not given out again', async () => {
  const end = new Harness('messages', { firstStream: 0xffff_ffff });
  const first = end.session.call(1, hello('slow'), { deadlineMs: 60_000 });
  watch(first);
  for (let i = 0; i < 3; i++) watch(end.session.call(1, hello('next'), deadline));
  const streams = (await end.turn()).map(({ stream }) => stream);
  assert.equal(new Set(streams).size, 4);
});

test('an answer that comes after CANCEL, twice, or to nobody is dropped', async () => {
  const end = new Harness('messages');
  const controller = new AbortController();
  const given = watch(end.session.call(1, hello(''), { ...deadline, signal: controller.signal }));
  const [asked] = await end.turn();
  controller.abort();
  const [cancel] = await end.turn();
  assert.equal(cancel?.kind, KIND.CANCEL);
  assert.equal(cancel.stream, asked!.stream);
  end.feed(KIND.REPLY, asked!.stream, replyHead('late'));
  end.feed(KIND.REPLY, 99, replyHead('to nobody'));
  end.feed(KIND.FAIL, 99, packError(new WebdfsError('INVALID', 'to nobody')));
  end.feed(KIND.CANCEL, 98, packCancel(1, 'of nothing'));
  const next = watch(end.session.call(1, hello(''), deadline));
  const [second] = await end.turn();
  end.feed(KIND.REPLY, second!.stream, replyHead('mine'));
  end.feed(KIND.REPLY, second!.stream, replyHead('again'));
  await end.turn();
  assert.ok(code('CANCELLED')(given.error));
  assert.equal(fromUtf8(next.value!.head), 'mine');
  assert.equal(end.ended, undefined);
});

const WRONG: [string, Role, (end: Harness) => void][] = [
  ['a body on a lane of messages', 'messages', (end) => end.feed(KIND.DATA, 2, EMPTY, utf8('x'))],
  ['OPEN on a lane of messages', 'messages', (end) => end.feed(KIND.OPEN, 2, callHead())],
  ['CREDIT on a lane of messages', 'messages', (end) => end.feed(KIND.CREDIT, 2, u32(1))],
  ['POST on a lane of bodies', 'reader', (end) => end.feed(KIND.POST, 0, callHead())],
  ['CALL to the reader', 'reader', (end) => end.feed(KIND.CALL, 2, callHead())],
  ['CREDIT to the reader', 'reader', (end) => end.feed(KIND.CREDIT, 2, u32(1))],
  ['OPEN to the writer', 'writer', (end) => end.feed(KIND.OPEN, 1, callHead())],
  ['DATA to the writer', 'writer', (end) => end.feed(KIND.DATA, 1, EMPTY, utf8('x'))],
  ['PING on a lane of bodies', 'writer', (end) => end.feed(KIND.PING, 0, new Uint8Array(8))],
  ['a call on a stream of mine', 'messages', (end) => end.feed(KIND.CALL, 1, callHead())],
  ['a call on no stream', 'messages', (end) => end.feed(KIND.CALL, 0, callHead())],
  ['a call head that is short', 'messages', (end) => end.feed(KIND.CALL, 2, callHead().subarray(1))],
  ['a trace beyond 2^53', 'messages', (end) => end.feed(KIND.CALL, 2, callHead().fill(255, 8, 16))],
  ['attached bytes nobody announced', 'messages', (end) => end.feed(KIND.CALL, 2, callHead(), utf8('x'))],
  [
    'fewer attached bytes than announced',
    'messages',
    (end) => end.feed(KIND.CALL, 2, callHead({}, { head: EMPTY, attached: [utf8('four')] }), utf8('two')),
  ],
  [
    'more attached buffers than the head has lengths',
    'messages',
    (end) => end.feed(KIND.CALL, 2, callHead().fill(255, 2, 4), utf8('x')),
  ],
  ['a fail head that is short', 'messages', (end) => end.feed(KIND.FAIL, 1, new Uint8Array(7))],
  ['a fail head with a text that is none', 'messages', (end) => end.feed(KIND.FAIL, 1, new Uint8Array(12).fill(255))],
  ['a reply head that is short', 'messages', (end) => end.feed(KIND.REPLY, 1, new Uint8Array(3))],
  ['a cancel head that is short', 'messages', (end) => end.feed(KIND.CANCEL, 2, new Uint8Array(1))],
  ['a window beyond what was granted', 'reader', (end) => end.feed(KIND.OPEN, 2, callHead({ window: 1 << 21 }))],
  ['GOAWAY', 'messages', (end) => end.feed(KIND.GOAWAY, 0, new Uint8Array(2))],
];

test('a frame that has no place on its lane ends the connection', () => {
  for (const [name, role, act] of WRONG) {
    const end = new Harness(role);
    act(end);
    assert.notEqual(end.ended, undefined, name);
  }
});

test('a stream that is opened twice ends the connection', () => {
  const end = new Harness('messages', { handlers: { call: () => new Promise(() => undefined) } });
  end.feed(KIND.CALL, 2, callHead());
  assert.equal(end.ended, undefined);
  end.feed(KIND.CALL, 2, callHead());
  assert.match(end.ended!, /open already/);
});

test('a broken handler of a post does not end the connection', () => {
  const end = new Harness('messages', {
    handlers: {
      post: (verb) => {
        if (verb === 1) throw new TypeError('no such property');
        throw new WebdfsError('CORRUPT', 'message ends early');
      },
    },
  });
  end.feed(KIND.POST, 0, callHead({ verb: 1 }));
  end.feed(KIND.POST, 0, callHead({ verb: 2 }));
  assert.equal(end.ended, undefined);
});

test('a call whose time was over before it came is not begun', async () => {
  let worked = 0;
  const end = new Harness('messages', {
    handlers: {
      call: () => {
        worked++;
        return hello('');
      },
    },
  });
  end.feed(KIND.CALL, 2, callHead({ leftMs: 0 }));
  assert.deepEqual(await end.turn(), []);
  end.feed(KIND.CALL, 4, callHead({ leftMs: 1 }));
  assert.equal((await end.turn())[0]?.kind, KIND.REPLY);
  assert.equal(worked, 1);
});

test('a handler that answers after its time is not heard, and was told', async () => {
  let reason: unknown;
  let answer = (_message: Message): void => undefined;
  const end = new Harness('messages', {
    handlers: {
      call: (_verb, _message, { signal }) => {
        signal.addEventListener('abort', () => (reason = signal.reason));
        return new Promise((resolve) => (answer = resolve));
      },
    },
  });
  end.feed(KIND.CALL, 2, callHead({ leftMs: 50 }));
  end.clock.advance(49);
  assert.equal(reason, undefined);
  end.clock.advance(1);
  assert.ok(code('TIMEOUT')(reason));
  answer(hello('too late'));
  assert.deepEqual(await end.turn(), []);
});

test('MAX_DEADLINE_MS is the longest that a peer is granted', async () => {
  let granted = 0;
  const end = new Harness('messages', {
    handlers: {
      call: (_verb, _message, { deadlineMs }) => {
        granted = deadlineMs;
        return hello('');
      },
    },
  });
  end.feed(KIND.CALL, 2, callHead({ leftMs: 0xffff_ffff }));
  assert.equal(granted, LIMITS.maxDeadlineMs);
});

test('a peer that asks beyond MAX_CALLS hears BUSY, also while cancelled handlers still run', async () => {
  const finish: (() => void)[] = [];
  const end = new Harness('messages', {
    limits: { maxCalls: 2 },
    handlers: { call: () => new Promise((resolve) => finish.push(() => resolve(hello('done')))) },
  });
  end.feed(KIND.CALL, 2, callHead());
  end.feed(KIND.CALL, 4, callHead());
  end.feed(KIND.CALL, 6, callHead());
  end.feed(KIND.CANCEL, 2, packCancel(1, ''));
  end.feed(KIND.CALL, 8, callHead());
  const refused = await end.turn();
  assert.deepEqual(
    refused.map(({ stream }) => stream),
    [6, 8],
  );
  assert.ok(refused.every(({ head }) => unpackError(head).code === 'BUSY'));
  finish[0]!();
  await end.turn();
  end.feed(KIND.CALL, 10, callHead());
  assert.equal(finish.length, 3);
});

test('MAX_CALL_BYTES bounds the requests under work', async () => {
  const end = new Harness('messages', {
    limits: { maxCallBytes: 1100 },
    handlers: { call: () => new Promise(() => undefined) },
  });
  const large = { head: EMPTY, attached: [new Uint8Array(1000)] };
  end.feed(KIND.CALL, 2, callHead({}, large), large.attached[0]);
  assert.deepEqual(await end.turn(), []);
  end.feed(KIND.CALL, 4, callHead({}, large), large.attached[0]);
  assert.equal(unpackError((await end.turn())[0]!.head).code, 'BUSY');
});

test('MAX_BODIES bounds what a peer may open', async () => {
  const end = new Harness('reader', {
    limits: { maxBodies: 2 },
    handlers: { receive: () => new Promise(() => undefined) },
  });
  for (const stream of [2, 4, 6]) end.feed(KIND.OPEN, stream, callHead({ window: 1000 }));
  const refused = await end.turn();
  assert.deepEqual(
    refused.map(({ stream, kind }) => [stream, kind]),
    [[6, KIND.FAIL]],
  );
  assert.equal(unpackError(refused[0]!.head).code, 'BUSY');
});

test('MAX_UNREAD ends a lane whose peer asks and never reads', async () => {
  const answer: Message = { head: EMPTY, attached: [new Uint8Array(40_000)] };
  const end = new Harness('messages', {
    limits: { maxQueued: 1_000_000, maxUnread: 200_000 },
    handlers: { call: () => answer },
  });
  end.reads = false;
  for (let i = 1; i <= 4; i++) end.feed(KIND.CALL, 2 * i, callHead());
  end.clock.turn();
  assert.equal(end.ended, undefined);
  for (let i = 5; i <= 6; i++) end.feed(KIND.CALL, 2 * i, callHead());
  assert.match(end.ended!, /does not read/);
});

test('beyond MAX_QUEUED of answers that wait, a peer hears BUSY and its handlers are not run', () => {
  let worked = 0;
  const end = new Harness('messages', {
    limits: { maxQueued: 100_000 },
    handlers: {
      call: () => {
        worked++;
        return { head: EMPTY, attached: [new Uint8Array(40_000)] };
      },
    },
  });
  end.reads = false;
  for (let i = 1; i <= 10; i++) end.feed(KIND.CALL, 2 * i, callHead());
  assert.equal(worked, 3);
});

// ---- bodies ----

const pieceOf = (
  bytes: Uint8Array,
  release: () => void = () => undefined,
): { bytes: Uint8Array; hold: () => void; release: () => void } => ({
  bytes,
  hold: () => undefined,
  release,
});

function send(end: Harness): { body: OutgoingBody; asked: Asked } {
  const asked = new Asked({ deadlineMs: 1000 }, end.clock.monotonic());
  asked.answer.catch(() => undefined);
  const body = new OutgoingBody(LIMITS, (reason) => asked.abandon(new WebdfsError('CANCELLED', reason)));
  asked.outgoing = body;
  end.session.open(1, hello(''), asked);
  return { body, asked };
}

test('a sender keeps to its credit, to the byte', async () => {
  const end = new Harness('writer');
  const { body } = send(end);
  body.write(pieceOf(new Uint8Array(LIMITS.window + 500)));
  const first = await end.turn();
  const stream = first[0]!.stream;
  const count = (frames: Sent[]): number =>
    frames.filter(({ kind }) => kind === KIND.DATA).reduce((sum, { bytes }) => sum + bytes.length, 0);
  assert.equal(first[0]!.kind, KIND.OPEN);
  assert.equal(readCallHead(first[0]!.head).window, LIMITS.window);
  assert.equal(count(first), LIMITS.window);
  assert.deepEqual(await end.turn(), []);
  end.feed(KIND.CREDIT, stream, u32(300));
  assert.equal(count(await end.turn()), 300);
  end.feed(KIND.CREDIT, stream, u32(300));
  body.end();
  assert.equal(count(await end.turn()), 200);
});

test('bodies take turns, one frame each', async () => {
  const end = new Harness('writer');
  const bodies = [send(end), send(end), send(end)];
  for (const { body } of bodies) body.write(pieceOf(new Uint8Array(3 * LIMITS.frameBytes)));
  const order = (await end.turn()).filter(({ kind }) => kind === KIND.DATA).map(({ stream }) => stream);
  assert.deepEqual(order, [2, 4, 6, 2, 4, 6, 2, 4, 6]);
});

test('SOCKET_BYTES bounds what bodies hand to a socket that does not take it', () => {
  const end = new Harness('writer');
  end.reads = false;
  for (const { body } of [send(end), send(end), send(end), send(end)]) {
    body.write(pieceOf(new Uint8Array(5 * LIMITS.frameBytes)));
  }
  for (let i = 0; i < 10; i++) end.clock.turn();
  assert.ok(end.held >= LIMITS.socketBytes);
  assert.ok(end.held < LIMITS.socketBytes + LIMITS.frameBytes + 1000, `${end.held} bytes wait in the socket`);
});

test('beyond 32 bodies the window is 256 KiB', async () => {
  const end = new Harness('writer');
  for (let i = 0; i < LIMITS.crowdedBodies + 1; i++) send(end);
  const windows = (await end.turn()).map(({ head }) => readCallHead(head).window);
  assert.equal(windows[LIMITS.crowdedBodies - 1], LIMITS.window);
  assert.equal(windows[LIMITS.crowdedBodies], LIMITS.crowdedWindow);
});

test('a body that is given up while frames are on their way keeps its bytes until they have left', async () => {
  const end = new Harness('writer');
  end.reads = false;
  let references = 1;
  const { body } = send(end);
  body.write({
    bytes: new Uint8Array(200_000),
    hold: () => void references++,
    release: () => void references--,
  });
  end.clock.turn();
  body.cancel('never mind');
  assert.ok(references > 0, 'what the socket has is not given to others');
  end.session.close('test');
});

test('too much credit ends the connection', async () => {
  const end = new Harness('writer');
  send(end);
  const [open] = await end.turn();
  end.feed(KIND.CREDIT, open!.stream, u32(0xffff_ffff));
  assert.match(end.ended!, /credit/);
});

/** A reader whose handler leaves its body to the test. */
function reader(window: number): { end: Harness; body: () => Incoming } {
  let body: Incoming | undefined;
  const end = new Harness('reader', {
    handlers: {
      receive: (_verb, _message, incoming) => {
        body = incoming;
        return new Promise(() => undefined);
      },
    },
  });
  end.feed(KIND.OPEN, 2, callHead({ window }));
  return { end, body: () => body! };
}

test('credit never exceeds what was released, and comes at half a window', async () => {
  const { end, body } = reader(1000);
  for (let i = 0; i < 4; i++) end.feed(KIND.DATA, 2, EMPTY, new Uint8Array(250));
  const pieces = [body().take()!, body().take()!, body().take()!, body().take()!];
  assert.deepEqual(await end.turn(), [], 'taking gives nothing back');
  pieces[0]!.release();
  assert.deepEqual(await end.turn(), []);
  pieces[1]!.hold();
  pieces[1]!.release();
  assert.deepEqual(await end.turn(), [], 'a piece that is held is not released');
  pieces[1]!.release();
  const [credit] = await end.turn();
  assert.deepEqual([credit?.kind, u32At(credit!.head, 0)], [KIND.CREDIT, 500]);
  for (const piece of pieces.slice(2)) piece.release();
  end.session.close('test');
  assert.equal(end.slabs.lent, 0);
});

test('a byte more than credit, or after the last, ends the connection', () => {
  const over = reader(1000);
  over.end.feed(KIND.DATA, 2, EMPTY, new Uint8Array(1000));
  assert.equal(over.end.ended, undefined);
  over.end.feed(KIND.DATA, 2, EMPTY, new Uint8Array(1));
  assert.match(over.end.ended!, /more bytes of a body than credit/);
  const after = reader(1000);
  after.end.feed(KIND.DATA, 2, EMPTY, utf8('x'), FLAG_LAST);
  after.end.feed(KIND.DATA, 2, EMPTY, utf8('x'), FLAG_LAST);
  assert.match(after.end.ended!, /after the end/);
  assert.equal(over.end.slabs.lent, 0);
  assert.equal(after.end.slabs.lent, 0);
});

test('an answer that overtakes its body ends the connection', async () => {
  const end = new Harness('reader');
  const asked = new Asked({ deadlineMs: 1000 }, 0);
  const outcome = watch(asked.answer);
  let body: IncomingBody | undefined;
  end.session.fetch(1, hello(''), asked, (incoming) => (body = incoming));
  const [call] = await end.turn();
  end.feed(KIND.DATA, call!.stream, EMPTY, utf8('half'));
  end.feed(KIND.REPLY, call!.stream, replyHead(''));
  await end.turn();
  assert.match(end.ended!, /before the end/);
  assert.ok(code('PEER_LOST')(outcome.error));
  assert.equal(body!.take(), undefined);
  assert.equal(end.slabs.lent, 0);
});

test('a head that came in a slab outlives the slab', async () => {
  const heads: string[] = [];
  const end = new Harness('reader', {
    handlers: {
      receive: async (_verb, message, body) => {
        await body.ready();
        while (!body.ended) {
          const piece = body.take();
          if (piece === undefined) await body.ready();
          else piece.release();
        }
        heads.push(fromUtf8(message.head));
        return hello('');
      },
    },
  });
  end.feed(KIND.OPEN, 2, callHead({ window: 1 << 20 }, hello('remember me')));
  for (let i = 0; i < 10; i++) {
    end.feed(KIND.DATA, 2, EMPTY, new Uint8Array(60_000).fill(65), i === 9 ? FLAG_LAST : 0);
    await end.turn();
  }
  assert.deepEqual(heads, ['remember me']);
});

// ---- whatever is cut where ----

/** Two sessions joined by pipes that lose everything after so many bytes, the end included. */
function joined(
  role: Role,
  handlers: Partial<Handlers>,
  cutAfter: number,
): {
  clock: TurnClock;
  asker: Session;
  slabs: SlabPool;
  moved: () => number;
} {
  const clock = new TurnClock();
  const limits = LIMITS;
  const slabs = new SlabPool({ slabs: 4, copiedBytes: 1 << 20, poison: true });
  const packs = new PackPool();
  const laneOf = (receives: boolean): Lane =>
    new Lane(GREETING, receives ? { clock, limits, packs, slabs } : { clock, limits, packs });
  const other: Role = role === 'messages' ? 'messages' : role === 'reader' ? 'writer' : 'reader';
  const lanes = [laneOf(role === 'reader'), laneOf(other === 'reader')] as const;
  let moved = 0;
  const pipeTo = (target: Lane): Pipe => ({
    queued: 0,
    write: (buffers, left) => {
      const bytes = concat(buffers);
      const passes = bytes.subarray(0, Math.max(0, cutAfter - moved));
      moved += bytes.length;
      queueMicrotask(() => {
        const space = target.space?.();
        space?.set(passes);
        target.received(space === undefined ? passes : space.subarray(0, passes.length));
        left();
        if (passes.length < bytes.length) for (const lane of lanes) lane.ended('cut');
      });
    },
    resume: () => undefined,
    end: () => undefined,
    destroy: () => undefined,
    exporter: () => EMPTY,
  });
  const sessions = ([role, other] as const).map((role, i) => {
    const session = new Session(lanes[i]!, {
      role,
      dialled: role === 'reader' || (role === 'messages' && i === 0),
      peer: asNodeId(i + 1),
      peerWindow: LIMITS.window,
      handlers: { ...HANDLERS, ...handlers },
      clock,
      limits,
      log: silentLog,
      onClosed: () => undefined,
    });
    lanes[i]!.attach(pipeTo(lanes[1 - i]!));
    lanes[i]!.trust(session);
    return session;
  });
  return { clock, asker: sessions[0]!, slabs, moved: () => moved };
}

async function settle(clock: TurnClock, outcome: { value?: unknown; error?: unknown }): Promise<void> {
  for (let i = 0; i < 200 && outcome.value === undefined && outcome.error === undefined; i++) {
    clock.turn();
    await new Promise(setImmediate);
  }
}

test('a connection cut after any byte of a call: answered rightly or PEER_LOST, worked on at most once', async () => {
  let whole = Infinity;
  for (let cut = 0; cut <= whole; cut++) {
    let worked = 0;
    const { clock, asker, moved } = joined(
      'messages',
      {
        call: (_verb, message) => {
          worked++;
          return { head: message.head, attached: [utf8('attached to the answer')] };
        },
      },
      cut,
    );
    const outcome = watch(asker.call(1, { head: utf8('echo'), attached: [utf8('attached')] }, deadline));
    await settle(clock, outcome);
    assert.ok(worked <= 1);
    if (outcome.value !== undefined) {
      assert.equal(fromUtf8(outcome.value.head), 'echo');
      whole = Math.min(whole, moved());
    } else assert.ok(code('PEER_LOST')(outcome.error), `cut after ${cut}`);
  }
  assert.ok(whole > 90);
});

test('a connection cut after any byte of a body: whole or failed at both ends, and every piece released', async () => {
  const bytes = utf8('the bytes of a body, in two frames');
  let whole = Infinity;
  for (let cut = 0; cut <= whole; cut++) {
    let got: string | undefined;
    const { clock, asker, slabs, moved } = joined(
      'writer',
      {
        receive: async (_verb, _message, body) => {
          const parts: Uint8Array[] = [];
          while (!body.ended) {
            const piece = body.take();
            if (piece === undefined) await body.ready();
            else {
              parts.push(piece.bytes.slice());
              piece.release();
            }
          }
          got = fromUtf8(concat(parts));
          return hello('done');
        },
      },
      cut,
    );
    const asked = new Asked({ deadlineMs: 1000 }, 0);
    const outcome = watch(asked.answer);
    const body = new OutgoingBody(LIMITS, () => undefined);
    asked.outgoing = body;
    let released = 0;
    asker.open(1, hello('head'), asked);
    body.write(pieceOf(bytes.subarray(0, 20), () => released++));
    body.write(pieceOf(bytes.subarray(20), () => released++));
    body.end();
    await settle(clock, outcome);
    if (got !== undefined) assert.equal(got, fromUtf8(bytes));
    if (outcome.value !== undefined) {
      assert.equal(got, fromUtf8(bytes));
      whole = Math.min(whole, moved());
    } else assert.ok(code('PEER_LOST')(outcome.error), `cut after ${cut}`);
    assert.equal(released, 2);
    assert.equal(slabs.lent, 0);
  }
  assert.ok(whole > 100);
});

test('random frames are ignored, refused or end the connection; nothing else happens', (t) => {
  const random = new SeededRandom(seedOf(t));
  const kinds = Object.values(KIND).filter((kind) => kind > KIND.PROOF);
  for (let round = 0; round < 2000; round++) {
    const role = (['messages', 'reader', 'writer'] as const)[random.below(3)]!;
    const end = new Harness(role, {
      handlers: {
        call: (_verb, message) => message,
        receive: async () => await Promise.resolve(hello('')),
        serve: async () => await Promise.resolve(hello('')),
      },
    });
    if (role === 'messages') watch(end.session.call(1, hello(''), deadline));
    for (let i = 0; i < 6 && end.ended === undefined; i++) {
      const kind = kinds[random.below(kinds.length)]!;
      const head = kind === KIND.DATA ? EMPTY : random.below(2) === 0 ? random.bytes(random.below(40)) : callHead();
      if (head.length > 20 && random.below(2) === 0) head[random.below(head.length)] = random.below(256);
      const bytes = random.bytes(kind === KIND.DATA ? 1 + random.below(100) : random.below(3));
      end.feed(kind, random.below(6), head, bytes);
    }
    end.session.close('test');
    end.clock.turn();
    assert.equal(end.slabs.lent, 0);
  }
});
