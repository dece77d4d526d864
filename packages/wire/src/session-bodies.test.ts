import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EMPTY, fromUtf8, utf8, WebdfsError } from '@webdfs/base';
import { Asked } from './asked.ts';
import { FLAG_LAST, KIND, u32At } from './frame.ts';
import type { IncomingBody } from './incoming.ts';
import { LIMITS } from './limits.ts';
import { readCallHead } from './message.ts';
import { OutgoingBody } from './outgoing.ts';
import type { Incoming } from './transport.ts';
import { type Sent, hello, Harness, callHead, replyHead, u32, code, watch, pieceOf } from './testing.ts';

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
