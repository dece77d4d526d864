import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EMPTY, fromUtf8, SeededRandom, utf8, WebdfsError } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { KIND } from './frame.ts';
import { LIMITS } from './limits.ts';
import { packCancel, packError, unpackError } from './message.ts';
import type { Role } from './stream-host.ts';
import type { Message } from './transport.ts';
import { hello, Harness, callHead, replyHead, u32, deadline, code, watch } from './testing.ts';

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
