import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { asNodeId, EMPTY, fromUtf8, type NodeId, SeededRandom, utf8, WebdfsError } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { type Limits, LIMITS } from './limits.ts';
import {
  type CallContext,
  type Handlers,
  type Incoming,
  type Link,
  type Message,
  NO_ATTACHMENT,
  type Outgoing,
  type Piece,
  type Transport,
} from './transport.ts';

/** A network under test: nodes on it find each other by themselves. */
export interface TestNetwork extends AsyncDisposable {
  /** A node begins, again if it was disposed before. */
  open(node: NodeId, handlers: Handlers): Promise<Transport>;
  /** Tells every node where the others are. */
  meet(): void;
  /** Lets a little time pass, real or simulated. */
  step(): Promise<void>;
  /** Ends all connections between two nodes; they may connect again. */
  drop(a: NodeId, b: NodeId): void;
  /** Nothing passes between two nodes, and neither is told. */
  partition(a: NodeId, b: NodeId): void;
  heal(a: NodeId, b: NodeId): void;
  /** Pieces of bodies lent to anybody on this network and not released. */
  lent(): number;
}

/** Limits that the suite asks for, so that it need not wait long nor move much. */
export const TEST_LIMITS: Partial<Limits> = { pingAfterMs: 200, silenceMs: 1000, firstRetryMs: 5, lastRetryMs: 50 };

const ONE = asNodeId(1);
const TWO = asNodeId(2);
const THREE = asNodeId(3);
const MANY_STEPS = 20_000;

const message = (text: string, ...attached: Uint8Array[]): Message => ({ head: utf8(text), attached });
const textOf = (message: Message): string => fromUtf8(message.head);

function never(): never {
  throw new WebdfsError('UNSUPPORTED', 'not expected in this test');
}

const NO_HANDLERS: Handlers = { call: never, post: never, receive: never, serve: never };

function pieceOf(bytes: Uint8Array, released: () => void = () => undefined): Piece {
  let references = 1;
  return {
    bytes,
    hold: () => void references++,
    release: () => {
      assert.ok(references > 0, 'a piece is released as often as it was held');
      if (--references === 0) released();
    },
  };
}

/** Writes all and ends; the pieces are cut by `random`. */
async function writeAll(body: Outgoing, bytes: Uint8Array, random: SeededRandom, most = 200_000): Promise<void> {
  let at = 0;
  while (at < bytes.length) {
    const count = Math.min(bytes.length - at, 1 + random.below(most));
    if (!body.write(pieceOf(bytes.subarray(at, at + count)))) await body.ready();
    at += count;
  }
  body.end();
}

/** Reads all, copying, as bytes are lent. */
async function readAll(body: Incoming): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (;;) {
    const piece = body.take();
    if (piece !== undefined) {
      parts.push(piece.bytes.slice());
      piece.release();
    } else if (body.ended) return new Uint8Array(Buffer.concat(parts));
    else await body.ready();
  }
}

/** A promise to settle from outside. */
function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open!: (value: T) => void;
  const promise = new Promise<T>((resolve) => (open = resolve));
  return { promise, open };
}

function rejectsWith(code: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof WebdfsError, String(error));
    assert.equal(error.code, code);
    return true;
  };
}

class Pair implements AsyncDisposable {
  readonly network: TestNetwork;
  readonly one: Transport;
  readonly two: Transport;

  constructor(network: TestNetwork, one: Transport, two: Transport) {
    this.network = network;
    this.one = one;
    this.two = two;
  }

  async until(condition: () => boolean): Promise<void> {
    for (let step = 0; step < MANY_STEPS; step++) {
      if (condition()) return;
      await this.network.step();
    }
    assert.fail('what was waited for did not come');
  }

  /** Lets time pass until the promise has settled. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const done = (): void => void (settled = true);
    promise.then(done, done);
    await this.until(() => settled);
    return await promise;
  }

  async met(): Promise<void> {
    await this.until(() => this.one.alive(TWO) && this.two.alive(ONE));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.network[Symbol.asyncDispose]();
    assert.equal(this.network.lent(), 0, 'every lent piece was released');
  }
}

/** Holds a house to everything that `Transport` promises. */
export function testTransport(
  house: string,
  openNetwork: (context: TestContext, limits: Partial<Limits>) => Promise<TestNetwork>,
): void {
  /** Nodes one and two that have met; two has the handlers. */
  async function pair(context: TestContext, handlers: Partial<Handlers>, limits: Partial<Limits> = {}): Promise<Pair> {
    const network = await openNetwork(context, { ...TEST_LIMITS, ...limits });
    const both = { ...NO_HANDLERS, ...handlers };
    const one = await network.open(ONE, both);
    const two = await network.open(TWO, both);
    network.meet();
    const met = new Pair(network, one, two);
    await met.met();
    return met;
  }

  const routes: [string, (pair: Pair) => Link][] = [
    ['the dialler of the message lane', (pair) => pair.one.link(TWO)],
    ['its acceptor', (pair) => pair.two.link(ONE)],
    ['a node to itself', (pair) => pair.one.link(ONE)],
  ];

  for (const [route, linkOf] of routes) {
    test(`${house}, ${route}: a call carries head and attached buffers of every size there and back`, async (t) => {
      await using nodes = await pair(t, {
        call: (verb, { head, attached }) => ({ head: Uint8Array.of(verb, ...head), attached }),
      });
      for (const sizes of [[], [0], [1, 0, 1024], [1025, 3], [65_536, 65_537, 7], [900_000]]) {
        const attached = sizes.map((size, i) => new Uint8Array(size).fill(i + 1));
        const answer = await nodes.settle(
          linkOf(nodes).call(200, { head: utf8('head'), attached }, { deadlineMs: 5000 }),
        );
        assert.deepEqual([...answer.head], [200, ...utf8('head')]);
        assert.deepEqual(
          answer.attached.map((part) => part.length),
          sizes,
        );
        assert.ok(answer.attached.every((part, i) => part.every((byte) => byte === i + 1)));
      }
    });

    test(`${house}, ${route}: an error keeps code, message, details and when to retry`, async (t) => {
      await using nodes = await pair(t, {
        call: () => {
          throw new WebdfsError('NOT_PRIMARY', 'ask node 3', {
            details: { node: 3, sure: true, why: 'ü' },
            retryAfterMs: 40,
          });
        },
      });
      await assert.rejects(nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 5000 })), (error) => {
        assert.ok(error instanceof WebdfsError);
        assert.equal(error.code, 'NOT_PRIMARY');
        assert.equal(error.message, 'ask node 3');
        assert.deepEqual(error.details, { node: 3, sure: true, why: 'ü' });
        assert.equal(error.retryAfterMs, 40);
        return true;
      });
    });

    test(`${house}, ${route}: a handler that breaks is UNAVAILABLE to the asker`, async (t) => {
      await using nodes = await pair(t, {
        call: () => Promise.reject(new TypeError('no such property')),
      });
      await assert.rejects(
        nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 5000 })),
        rejectsWith('UNAVAILABLE'),
      );
    });

    test(`${house}, ${route}: posts arrive in order, each once`, async (t) => {
      const seen: string[] = [];
      await using nodes = await pair(t, { post: (_verb, post) => void seen.push(textOf(post)) });
      const sent = Array.from({ length: 500 }, (_, i) => String(i));
      for (const text of sent) {
        assert.equal(linkOf(nodes).post(9, message(text, new Uint8Array(Number(text) * 5))), true);
        if (Number(text) % 100 === 0) await nodes.network.step();
      }
      await nodes.until(() => seen.length >= sent.length);
      assert.deepEqual(seen, sent);
    });

    test(`${house}, ${route}: a deadline that passed ends the call at both ends`, async (t) => {
      const aborted = gate<unknown>();
      await using nodes = await pair(t, {
        call: (_verb, _message, { signal }) =>
          new Promise(() => signal.addEventListener('abort', () => aborted.open(signal.reason))),
      });
      await assert.rejects(
        nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 30 })),
        rejectsWith('TIMEOUT'),
      );
      const reason = await nodes.settle(aborted.promise);
      assert.ok(reason instanceof WebdfsError);
    });

    test(`${house}, ${route}: the handler learns who asks and how many milliseconds are left`, async (t) => {
      const contexts: CallContext[] = [];
      await using nodes = await pair(t, {
        call: (_verb, _message, context) => {
          contexts.push(context);
          return message('');
        },
      });
      await nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 5000, trace: 2 ** 50 + 3 }));
      assert.equal(contexts.length, 1);
      assert.ok(contexts[0]!.deadlineMs <= 5000 && contexts[0]!.deadlineMs > 0);
      assert.equal(contexts[0]!.trace, 2 ** 50 + 3);
      assert.ok([ONE, TWO].includes(contexts[0]!.from));
    });

    test(`${house}, ${route}: an asker that gives up is CANCELLED, and the handler is told`, async (t) => {
      const started = gate();
      const aborted = gate();
      await using nodes = await pair(t, {
        call: (verb, _message, { signal }) => {
          if (verb === 2) return message('alive');
          started.open();
          return new Promise(() => signal.addEventListener('abort', () => aborted.open()));
        },
      });
      const controller = new AbortController();
      const call = linkOf(nodes).call(1, message(''), { deadlineMs: 5000, signal: controller.signal });
      await nodes.settle(started.promise);
      controller.abort();
      await assert.rejects(nodes.settle(call), rejectsWith('CANCELLED'));
      await nodes.settle(aborted.promise);
      // Giving up before the start, and after the answer, is harmless.
      await assert.rejects(
        linkOf(nodes).call(1, message(''), { deadlineMs: 5000, signal: controller.signal }),
        rejectsWith('CANCELLED'),
      );
      const late = new AbortController();
      const answer = await nodes.settle(linkOf(nodes).call(2, message(''), { deadlineMs: 5000, signal: late.signal }));
      late.abort();
      assert.equal(textOf(answer), 'alive');
      assert.equal(textOf(await nodes.settle(linkOf(nodes).call(2, message(''), { deadlineMs: 5000 }))), 'alive');
    });

    test(`${house}, ${route}: a body that is sent arrives in order and whole`, async (t) => {
      const random = new SeededRandom(seedOf(t));
      const received: Uint8Array[] = [];
      await using nodes = await pair(t, {
        receive: async (verb, { head }, body) => {
          received.push(await readAll(body));
          return message(`verb ${verb} ${fromUtf8(head)}`);
        },
      });
      for (const size of [0, 1, 65_536, 3_000_017]) {
        const bytes = random.bytes(size);
        const { body, answer } = linkOf(nodes).send(7, message('head'), { deadlineMs: 20_000 });
        await nodes.settle(writeAll(body, bytes, random));
        assert.equal(textOf(await nodes.settle(answer)), 'verb 7 head');
        assert.deepEqual(received.pop(), bytes);
      }
    });

    test(`${house}, ${route}: a body that is fetched arrives in order and whole, and then its answer`, async (t) => {
      const seed = seedOf(t);
      const sizes = [0, 1, 65_536, 3_000_017];
      const bytesOf = (size: number): Uint8Array => new SeededRandom(seed).bytes(size);
      await using nodes = await pair(t, {
        serve: async (_verb, request, body) => {
          await writeAll(body, bytesOf(Number(textOf(request))), new SeededRandom(seed));
          return message('that was all');
        },
      });
      for (const size of sizes) {
        const { body, answer } = linkOf(nodes).fetch(7, message(String(size)), { deadlineMs: 20_000 });
        assert.deepEqual(await nodes.settle(readAll(body)), bytesOf(size));
        assert.equal(textOf(await nodes.settle(answer)), 'that was all');
      }
    });

    test(`${house}, ${route}: a receiver that takes nothing bounds the sender, and calls still pass`, async (t) => {
      const hold = gate();
      await using nodes = await pair(t, {
        call: () => message('passed'),
        receive: async (_verb, _message, body) => {
          await hold.promise;
          return message(String((await readAll(body)).length));
        },
      });
      const { body, answer } = linkOf(nodes).send(7, message(''), { deadlineMs: 20_000 });
      let written = 0;
      let released = 0;
      const write = (): boolean => {
        written += 100_000;
        return body.write(pieceOf(new Uint8Array(100_000), () => (released += 100_000)));
      };
      while (write()) await nodes.network.step();
      let ready = false;
      const waits = body.ready().then(() => (ready = true));
      for (let i = 0; i < 20; i++) await nodes.network.step();
      assert.equal(ready, false, 'no credit is given back for what nobody took');
      assert.ok(written <= LIMITS.window + 100_000, `${written} bytes are under way`);
      assert.equal(textOf(await nodes.settle(linkOf(nodes).call(1, message(''), { deadlineMs: 5000 }))), 'passed');
      hold.open();
      await nodes.settle(waits);
      body.end();
      assert.equal(textOf(await nodes.settle(answer)), String(written));
      await nodes.until(() => released === written);
    });

    test(`${house}, ${route}: a receiver that fails stops the sender with its error`, async (t) => {
      await using nodes = await pair(t, {
        receive: async (_verb, _message, body) => {
          await body.ready();
          body.take()?.release();
          throw new WebdfsError('DISK_FULL', 'no room for a block');
        },
      });
      const { body, answer } = linkOf(nodes).send(7, message(''), { deadlineMs: 20_000 });
      const writing = writeAll(body, new Uint8Array(8_000_000), new SeededRandom(1));
      await assert.rejects(nodes.settle(writing), rejectsWith('DISK_FULL'));
      await assert.rejects(nodes.settle(answer), rejectsWith('DISK_FULL'));
      let released = false;
      assert.equal(body.write(pieceOf(new Uint8Array(1), () => (released = true))), false);
      assert.ok(released, 'a piece written too late is released at once');
    });

    test(`${house}, ${route}: a sender that gives up fails its receiver, and is told so itself`, async (t) => {
      const failed = gate<unknown>();
      const aborted = gate();
      const started = gate();
      await using nodes = await pair(t, {
        receive: async (_verb, _message, body, { signal }) => {
          started.open();
          signal.addEventListener('abort', () => aborted.open());
          await readAll(body).catch(failed.open);
          throw new WebdfsError('CANCELLED', 'the sender gave up');
        },
      });
      const { body, answer } = linkOf(nodes).send(7, message(''), { deadlineMs: 20_000 });
      body.write(pieceOf(new Uint8Array(100_000)));
      await nodes.settle(started.promise);
      body.cancel('the client went away');
      await assert.rejects(nodes.settle(answer), rejectsWith('CANCELLED'));
      await assert.rejects(body.ready(), rejectsWith('CANCELLED'));
      assert.ok(rejectsWith('CANCELLED')(await nodes.settle(failed.promise)));
      await nodes.settle(aborted.promise);
    });

    test(`${house}, ${route}: a reader that gives up stops whoever serves it`, async (t) => {
      const stopped = gate<unknown>();
      await using nodes = await pair(t, {
        serve: async (_verb, _message, body, { signal }) => {
          await writeAll(body, new Uint8Array(20_000_000), new SeededRandom(1)).catch(stopped.open);
          assert.equal(signal.aborted, true);
          return message('');
        },
      });
      const { body, answer } = linkOf(nodes).fetch(7, message(''), { deadlineMs: 20_000 });
      await nodes.settle(body.ready());
      const taken = body.take();
      body.cancel('enough');
      await assert.rejects(nodes.settle(answer), rejectsWith('CANCELLED'));
      assert.equal(body.take(), undefined);
      await assert.rejects(body.ready(), rejectsWith('CANCELLED'));
      assert.ok(rejectsWith('CANCELLED')(await nodes.settle(stopped.promise)));
      taken?.release();
    });

    test(`${house}, ${route}: a body whose time is over fails with TIMEOUT`, async (t) => {
      await using nodes = await pair(t, {
        receive: (_verb, _message, _body, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
        serve: (_verb, _message, _body, { signal }) =>
          new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
      });
      const sent = linkOf(nodes).send(7, message(''), { deadlineMs: 30 });
      await assert.rejects(nodes.settle(sent.answer), rejectsWith('TIMEOUT'));
      await assert.rejects(sent.body.ready(), rejectsWith('TIMEOUT'));
      const fetched = linkOf(nodes).fetch(7, message(''), { deadlineMs: 30 });
      await assert.rejects(nodes.settle(fetched.body.ready()), rejectsWith('TIMEOUT'));
      await assert.rejects(nodes.settle(fetched.answer), rejectsWith('TIMEOUT'));
    });

    test(`${house}, ${route}: MAX_CALLS calls run, one more is BUSY at once`, async (t) => {
      const hold = gate();
      await using nodes = await pair(t, { call: () => hold.promise.then(() => message('done')) }, { maxCalls: 5 });
      const link = linkOf(nodes);
      const calls = Array.from({ length: 5 }, () => link.call(1, message(''), { deadlineMs: 5000 }));
      await assert.rejects(link.call(1, message(''), { deadlineMs: 5000 }), rejectsWith('BUSY'));
      hold.open();
      for (const call of calls) assert.equal(textOf(await nodes.settle(call)), 'done');
      assert.equal(textOf(await nodes.settle(link.call(1, message(''), { deadlineMs: 5000 }))), 'done');
    });

    test(`${house}, ${route}: MAX_BODIES bodies run, one more is BUSY at once`, async (t) => {
      await using nodes = await pair(
        t,
        {
          receive: async (_verb, _message, body) => message(String((await readAll(body)).length)),
          serve: async (_verb, _message, body) => {
            body.write(pieceOf(Uint8Array.of(1)));
            return message('');
          },
        },
        { maxBodies: 3 },
      );
      const link = linkOf(nodes);
      // A first one of each kind, so that the lanes stand.
      await nodes.settle(writeAll(link.send(1, message(''), { deadlineMs: 5000 }).body, EMPTY, new SeededRandom(1)));
      await nodes.settle(readAll(link.fetch(1, message(''), { deadlineMs: 5000 }).body));
      await nodes.until(() => nodes.network.lent() === 0);
      for (let i = 0; i < 5; i++) await nodes.network.step();
      const sent = Array.from({ length: 3 }, () => link.send(1, message(''), { deadlineMs: 5000 }));
      await assert.rejects(link.send(1, message(''), { deadlineMs: 5000 }).answer, rejectsWith('BUSY'));
      for (const { body } of sent) body.end();
      for (const { answer } of sent) assert.equal(textOf(await nodes.settle(answer)), '0');
      const fetched = Array.from({ length: 3 }, () => link.fetch(1, message(''), { deadlineMs: 5000 }));
      const fourth = link.fetch(1, message(''), { deadlineMs: 5000 });
      await assert.rejects(fourth.answer, rejectsWith('BUSY'));
      await assert.rejects(fourth.body.ready(), rejectsWith('BUSY'));
      for (const { body } of fetched) assert.equal((await nodes.settle(readAll(body))).length, 1);
    });

    test(`${house}, ${route}: MAX_DEADLINE_MS is granted, a millisecond more is INVALID`, async (t) => {
      await using nodes = await pair(t, { call: () => message('in time') });
      const link = linkOf(nodes);
      const most = LIMITS.maxDeadlineMs;
      assert.equal(textOf(await nodes.settle(link.call(1, message(''), { deadlineMs: most }))), 'in time');
      for (const deadlineMs of [most + 1, 0, -1, NaN, Infinity]) {
        await assert.rejects(link.call(1, message(''), { deadlineMs }), rejectsWith('INVALID'));
        await assert.rejects(link.send(1, message(''), { deadlineMs }).answer, rejectsWith('INVALID'));
      }
    });

    test(`${house}, ${route}: a message at its limits passes, one beyond is TOO_LARGE in either direction`, async (t) => {
      await using nodes = await pair(t, {
        call: (_verb, { head }) => ({ head: EMPTY, attached: [new Uint8Array(Number(fromUtf8(head)))] }),
        post: () => undefined,
      });
      const link = linkOf(nodes);
      const ask = async (message: Message): Promise<Message> =>
        await nodes.settle(link.call(1, message, { deadlineMs: 5000 }));
      const padded = (bytes: number): Uint8Array => utf8('0'.padStart(bytes, ' '));
      const { maxHead, maxFrame, maxAttached } = LIMITS;
      await ask({ head: padded(maxHead - 20), attached: NO_ATTACHMENT });
      await assert.rejects(ask({ head: padded(maxHead - 19), attached: NO_ATTACHMENT }), rejectsWith('TOO_LARGE'));
      await ask({ head: utf8('0'), attached: [new Uint8Array(maxFrame - 25)] });
      await assert.rejects(
        ask({ head: utf8('0'), attached: [new Uint8Array(maxFrame - 24)] }),
        rejectsWith('TOO_LARGE'),
      );
      const many = Array.from({ length: maxAttached }, () => Uint8Array.of(1));
      await ask({ head: utf8('0'), attached: many });
      await assert.rejects(ask({ head: utf8('0'), attached: [...many, EMPTY] }), rejectsWith('TOO_LARGE'));
      assert.equal((await ask(message(String(maxFrame - 8)))).attached[0]!.length, maxFrame - 8);
      await assert.rejects(ask(message(String(maxFrame - 7))), rejectsWith('TOO_LARGE'));
      assert.throws(() => link.post(1, { head: new Uint8Array(maxHead), attached: [] }), rejectsWith('TOO_LARGE'));
    });
  }

  test(`${house}: a call is answered once or fails once, and is worked on at most once, whatever is cut when`, async (t) => {
    const random = new SeededRandom(seedOf(t));
    const worked = new Map<string, number>();
    await using nodes = await pair(t, {
      call: async (_verb, request) => {
        const name = textOf(request);
        worked.set(name, (worked.get(name) ?? 0) + 1);
        if (random.below(2) === 0) await nodes.network.step();
        return request;
      },
    });
    const outcomes = new Map<string, string>();
    let drops = 0;
    for (let i = 0; i < 300; i++) {
      const [from, to] = random.below(2) === 0 ? [nodes.one, TWO] : [nodes.two, ONE];
      const name = `call ${i}`;
      const size = random.below(4) === 0 ? random.below(300_000) : random.below(3000);
      from
        .link(to)
        .call(1, message(name, new Uint8Array(size)), { deadlineMs: 5000 })
        .then(
          (answer) => {
            assert.equal(textOf(answer), name, 'an answer never reaches another call');
            assert.equal(answer.attached[0]!.length, size);
            assert.equal(outcomes.has(name), false);
            outcomes.set(name, 'answered');
          },
          (error: WebdfsError) => {
            assert.equal(outcomes.has(name), false);
            outcomes.set(name, error.code);
          },
        );
      if (random.below(5) === 0) await nodes.network.step();
      if (random.below(60) === 0) {
        drops++;
        nodes.network.drop(ONE, TWO);
      }
      if (random.below(40) === 0) await nodes.met();
    }
    await nodes.until(() => outcomes.size === 300);
    assert.deepEqual(
      [...new Set(outcomes.values())].filter((code) => code !== 'answered' && code !== 'PEER_LOST'),
      [],
    );
    assert.ok([...worked.values()].every((count) => count === 1));
    for (const [name, outcome] of outcomes) if (outcome === 'answered') assert.equal(worked.get(name), 1);
    t.diagnostic(`${drops} drops`);
  });

  test(`${house}: posts may be lost with the link, but are never reordered or doubled`, async (t) => {
    const random = new SeededRandom(seedOf(t));
    const seen: number[] = [];
    await using nodes = await pair(t, { post: (_verb, post) => void seen.push(Number(textOf(post))) });
    for (let i = 0; i < 400; i++) {
      nodes.one.link(TWO).post(1, message(String(i), new Uint8Array(random.below(20_000))));
      if (random.below(10) === 0) await nodes.network.step();
      if (random.below(80) === 0) nodes.network.drop(ONE, TWO);
      if (random.below(40) === 0) await nodes.met();
    }
    // A connection that was cut may not know it yet: what is posted on it is lost.
    let last = 400;
    await nodes.until(() => {
      nodes.one.link(TWO).post(1, message(String(last++)));
      return (seen.at(-1) ?? 0) >= 400;
    });
    assert.ok(seen.every((number, i) => i === 0 || number > seen[i - 1]!));
  });

  test(`${house}: a body is delivered whole or fails, whatever is cut when`, async (t) => {
    const random = new SeededRandom(seedOf(t));
    const bytes = random.bytes(1_500_000);
    let wrong = 0;
    await using nodes = await pair(t, {
      receive: async (_verb, _message, body) => {
        const got = await readAll(body);
        if (Buffer.compare(got, bytes) !== 0) wrong++;
        return message('whole');
      },
      serve: async (_verb, _message, body) => {
        await writeAll(body, bytes, new SeededRandom(1));
        return message('whole');
      },
    });
    const outcomes: string[] = [];
    const note = (outcome: Promise<unknown>): void => {
      outcome.then(
        () => outcomes.push('whole'),
        (error: WebdfsError) => outcomes.push(error.code),
      );
    };
    for (let i = 0; i < 30; i++) {
      await nodes.met();
      const [from, to] = random.below(2) === 0 ? [nodes.one, TWO] : [nodes.two, ONE];
      if (random.below(2) === 0) {
        const { body, answer } = from.link(to).send(1, message(''), { deadlineMs: 30_000 });
        writeAll(body, bytes, new SeededRandom(i)).catch(() => undefined);
        note(answer);
      } else {
        const { body, answer } = from.link(to).fetch(1, message(''), { deadlineMs: 30_000 });
        note(
          readAll(body).then(async (got) => {
            if (Buffer.compare(got, bytes) !== 0) wrong++;
            return await answer;
          }),
        );
      }
      for (let steps = random.below(8); steps > 0; steps--) await nodes.network.step();
      if (random.below(3) === 0) nodes.network.drop(ONE, TWO);
    }
    await nodes.until(() => outcomes.length === 30);
    assert.equal(wrong, 0);
    assert.deepEqual(
      outcomes.filter((outcome) => outcome !== 'whole' && outcome !== 'PEER_LOST'),
      [],
    );
    t.diagnostic(`${outcomes.filter((outcome) => outcome === 'whole').length} of 30 whole`);
  });

  test(`${house}: eight bodies progress alike`, async (t) => {
    const size = 3_000_000;
    const progress = new Map<string, number>();
    let slowest = Infinity;
    await using nodes = await pair(t, {
      receive: async (_verb, request, body) => {
        const name = textOf(request);
        let count = 0;
        while (!body.ended) {
          const piece = body.take();
          if (piece === undefined) {
            await body.ready();
            continue;
          }
          count += piece.bytes.length;
          progress.set(name, count);
          piece.release();
        }
        slowest = Math.min(slowest, ...progress.values());
        return message('');
      },
    });
    const names = Array.from({ length: 8 }, (_, i) => String(i));
    for (const name of names) progress.set(name, 0);
    const answers = names.map((name) => {
      const { body, answer } = nodes.one.link(TWO).send(1, message(name), { deadlineMs: 30_000 });
      writeAll(body, new Uint8Array(size), new SeededRandom(1), 100_000).catch(() => undefined);
      return answer;
    });
    await nodes.settle(Promise.all(answers));
    assert.ok(slowest >= size / 2, `the slowest had ${slowest} bytes when the first was done`);
  });

  test(`${house}: the next hop's failure reaches the first sender`, async (t) => {
    const network = await openNetwork(t, TEST_LIMITS);
    const one = await network.open(ONE, NO_HANDLERS);
    const two: Transport = await network.open(TWO, {
      ...NO_HANDLERS,
      // Passes the body on, piece by piece, without copying.
      receive: async (_verb, head, body, { deadlineMs }) => {
        const next = two.link(THREE).send(1, head, { deadlineMs });
        while (!body.ended) {
          const piece = body.take();
          if (piece === undefined) await Promise.race([body.ready(), next.answer]);
          else if (!next.body.write(piece)) await next.body.ready();
        }
        next.body.end();
        return await next.answer;
      },
    });
    let taken = 0;
    await network.open(THREE, {
      ...NO_HANDLERS,
      receive: async (_verb, head, body) => {
        for (;;) {
          const piece = body.take();
          taken += piece?.bytes.length ?? 0;
          piece?.release();
          if (textOf(head) === 'fail' && taken > 500_000) throw new WebdfsError('DISK_FAILED', 'third');
          if (body.ended) return message(String(taken));
          if (piece === undefined) await body.ready();
        }
      },
    });
    network.meet();
    await using nodes = new Pair(network, one, two);
    await nodes.until(() => one.alive(TWO) && two.alive(THREE));
    const whole = one.link(TWO).send(1, message('pass'), { deadlineMs: 20_000 });
    await nodes.settle(writeAll(whole.body, new Uint8Array(2_500_000), new SeededRandom(1)));
    assert.equal(textOf(await nodes.settle(whole.answer)), '2500000');
    taken = 0;
    const broken = one.link(TWO).send(1, message('fail'), { deadlineMs: 20_000 });
    await assert.rejects(
      nodes.settle(writeAll(broken.body, new Uint8Array(30_000_000), new SeededRandom(1))),
      rejectsWith('DISK_FAILED'),
    );
    await assert.rejects(nodes.settle(broken.answer), rejectsWith('DISK_FAILED'));
  });

  test(`${house}: a silent peer is declared lost, what was asked of it fails, and it is found again`, async (t) => {
    const changes: string[] = [];
    let worked = 0;
    await using nodes = await pair(t, {
      call: (verb) => {
        worked++;
        return verb === 1 ? new Promise(() => undefined) : message('back');
      },
    });
    nodes.one.onChange((node, alive) => changes.push(`${node} ${alive}`));
    const call = nodes.one.link(TWO).call(1, message(''), { deadlineMs: 60_000 });
    await nodes.until(() => worked === 1);
    nodes.network.partition(ONE, TWO);
    await assert.rejects(nodes.settle(call), rejectsWith('PEER_LOST'));
    assert.equal(nodes.one.alive(TWO), false);
    await assert.rejects(nodes.one.link(TWO).call(1, message(''), { deadlineMs: 5000 }), rejectsWith('PEER_LOST'));
    assert.equal(nodes.one.link(TWO).post(1, message('')), false);
    const body = nodes.one.link(TWO).fetch(1, message(''), { deadlineMs: 5000 });
    await assert.rejects(body.answer, rejectsWith('PEER_LOST'));
    await assert.rejects(body.body.ready(), rejectsWith('PEER_LOST'));
    await nodes.until(() => !nodes.two.alive(ONE));
    nodes.network.heal(ONE, TWO);
    await nodes.met();
    assert.equal(textOf(await nodes.settle(nodes.one.link(TWO).call(2, message(''), { deadlineMs: 5000 }))), 'back');
    assert.deepEqual(changes, ['2 false', '2 true']);
  });

  test(`${house}: an idle link stays up`, async (t) => {
    const changes: string[] = [];
    await using nodes = await pair(t, { call: () => message('there') }, { pingAfterMs: 20, silenceMs: 2000 });
    nodes.one.onChange((node, alive) => changes.push(`${node} ${alive}`));
    nodes.two.onChange((node, alive) => changes.push(`${node} ${alive}`));
    for (let i = 0; i < 100; i++) await nodes.network.step();
    assert.equal(textOf(await nodes.settle(nodes.two.link(ONE).call(2, message(''), { deadlineMs: 5000 }))), 'there');
    assert.deepEqual(changes, []);
  });

  test(`${house}: a peer that went and came back answers new calls, not old ones`, async (t) => {
    await using nodes = await pair(t, { call: () => new Promise(() => undefined) });
    const old = nodes.one.link(TWO).call(1, message(''), { deadlineMs: 60_000 });
    const failed = assert.rejects(nodes.settle(old), rejectsWith('PEER_LOST'));
    await nodes.two[Symbol.asyncDispose]();
    await failed;
    const again = await nodes.network.open(TWO, { ...NO_HANDLERS, call: () => message('new') });
    nodes.network.meet();
    await nodes.until(() => nodes.one.alive(TWO) && again.alive(ONE));
    assert.equal(textOf(await nodes.settle(nodes.one.link(TWO).call(1, message(''), { deadlineMs: 5000 }))), 'new');
  });

  test(`${house}: a node left out of the peers is let go at once`, async (t) => {
    await using nodes = await pair(t, { call: () => new Promise(() => undefined) });
    const call = nodes.one.link(TWO).call(1, message(''), { deadlineMs: 60_000 });
    nodes.one.setPeers(new Map());
    await assert.rejects(call, rejectsWith('PEER_LOST'));
    assert.equal(nodes.one.alive(TWO), false);
    await nodes.until(() => !nodes.two.alive(ONE));
  });

  test(`${house}: a closed transport fails everything with PEER_LOST, also to itself`, async (t) => {
    await using nodes = await pair(t, { call: () => new Promise(() => undefined) });
    const [far, near] = [nodes.one.link(TWO), nodes.one.link(ONE)];
    const failed = [far, near].map((link) =>
      assert.rejects(link.call(1, message(''), { deadlineMs: 60_000 }), rejectsWith('PEER_LOST')),
    );
    await nodes.one[Symbol.asyncDispose]();
    await Promise.all(failed);
    for (const link of [far, near]) {
      await assert.rejects(link.call(1, message(''), { deadlineMs: 5000 }), rejectsWith('PEER_LOST'));
      assert.equal(link.post(1, message('')), false);
    }
  });

  test(`${house}: MAX_QUEUED bounds what waits for a peer that does not read`, async (t) => {
    await using nodes = await pair(
      t,
      { post: () => undefined, call: () => message('') },
      { maxQueued: 300_000, silenceMs: 60_000 },
    );
    nodes.network.partition(ONE, TWO);
    const link = nodes.one.link(TWO);
    let sent = 0;
    // What the kernels on the way take is not ours to bound.
    for (let i = 0; i < 2000 && link.post(1, message('', new Uint8Array(100_000))); i++) {
      sent++;
      if (sent % 8 === 0) await nodes.network.step();
    }
    assert.ok(sent < 2000, 'posts are refused in the end');
    await assert.rejects(link.call(1, message(''), { deadlineMs: 5000 }), rejectsWith('BUSY'));
    nodes.network.heal(ONE, TWO);
    await nodes.until(() => link.post(1, message('')));
    await nodes.settle(link.call(1, message(''), { deadlineMs: 20_000 }));
  });

  test(`${house}: closing does not wait for a peer that does not read`, async (t) => {
    await using nodes = await pair(t, { post: () => undefined }, { maxQueued: 300_000, silenceMs: 60_000 });
    nodes.network.partition(ONE, TWO);
    for (let i = 0; i < 2000 && nodes.one.link(TWO).post(1, message('', new Uint8Array(100_000))); i++) {
      if (i % 8 === 0) await nodes.network.step();
    }
    await nodes.settle(Promise.resolve(nodes.one[Symbol.asyncDispose]()));
  });
}
