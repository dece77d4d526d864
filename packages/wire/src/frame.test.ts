import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { asNodeId, concat, EMPTY, fromHex, fromUtf8, SeededRandom, toHex, utf8, WebdfsError } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import * as fc from 'fast-check';
import { FLAG_LAST, FrameReader, HEADER_BYTES, KIND, type Kind, packFrame, putU32, STRANGER_BYTES } from './frame.ts';
import { crc32 } from './crc32.ts';
import { LANE, linkKey, packHello, proofOf, putProof, transcript } from './hello.ts';
import { LIMITS } from './limits.ts';
import { packError, putCall, putReply, readCallHead, readCallMessage, readReply, unpackError } from './message.ts';
import type { Message } from './transport.ts';

type Seen =
  | { kind: Kind; stream: number; head: string; attached: string }
  | { kind: 'data'; stream: number; bytes: string; last: boolean };

/** Reads chunks and collects what the sink got; parts of one body frame are joined. */
function readFrames(chunks: readonly Uint8Array[], trusted = true): Seen[] {
  const seen: Seen[] = [];
  let open = '';
  const reader = new FrameReader({
    frame: (kind, stream, head, attached) => seen.push({ kind, stream, head: toHex(head), attached: toHex(attached) }),
    data: (stream, bytes, last) => {
      open += toHex(bytes);
      if (last) {
        seen.push({ kind: 'data', stream, bytes: open, last });
        open = '';
      }
    },
  });
  if (trusted) reader.trust();
  for (const chunk of chunks) reader.push(chunk);
  return seen;
}

function corrupt(what: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof WebdfsError && error.code === 'WIRE_CORRUPT' && what.test(error.message);
}

const KINDS = [KIND.CALL, KIND.REPLY, KIND.FAIL, KIND.OPEN, KIND.POST, KIND.CREDIT, KIND.PING, KIND.GOAWAY] as const;
const anyFrame = fc.record({
  kind: fc.constantFrom(...KINDS),
  stream: fc.nat({ max: 0xffff_ffff }),
  head: fc.uint8Array({ maxLength: 300 }),
  attached: fc.uint8Array({ maxLength: 300 }),
});

test('frames survive any split into chunks, one byte at a time included', (t) => {
  const seed = seedOf(t);
  fc.assert(
    fc.property(
      fc.array(anyFrame, { minLength: 1, maxLength: 6 }),
      fc.array(fc.nat({ max: 2000 }), { maxLength: 20 }),
      fc.boolean(),
      (frames, cuts, single) => {
        const bytes = concat([
          ...frames.map(({ kind, stream, head, attached }) => packFrame(kind, stream, head, attached)),
          packFrame(KIND.DATA, 5, EMPTY, utf8('a body')),
          packFrame(KIND.DATA, 5, EMPTY, EMPTY, FLAG_LAST),
        ]);
        const places = single
          ? Array.from({ length: bytes.length }, (_, i) => i)
          : cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b);
        const chunks = [...places, bytes.length].map((end, i) => bytes.subarray(i === 0 ? 0 : places[i - 1], end));
        assert.deepEqual(readFrames(chunks), [
          ...frames.map(({ kind, stream, head, attached }) => ({
            kind,
            stream,
            head: toHex(head),
            attached: toHex(attached),
          })),
          { kind: 'data', stream: 5, bytes: toHex(utf8('a body')), last: true },
        ]);
      },
    ),
    { seed, numRuns: 200 },
  );
});

test('a flipped bit in a header or a head is never read as a frame', () => {
  const frame = packFrame(KIND.CALL, 77, utf8('the head'), utf8('attached'));
  const next = packFrame(KIND.PING, 0, new Uint8Array(8), EMPTY);
  for (let bit = 0; bit < (HEADER_BYTES + 8) * 8; bit++) {
    const bytes = concat([frame, next, new Uint8Array(LIMITS.maxFrame)]);
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    assert.throws(() => readFrames([bytes]), corrupt(/./), `bit ${bit}`);
  }
});

test('a flipped bit in attached bytes passes: their sums travel in the head', () => {
  const frame = packFrame(KIND.CALL, 77, utf8('the head'), utf8('attached'));
  frame[HEADER_BYTES + 8]! ^= 1;
  assert.deepEqual(readFrames([frame]), [
    { kind: KIND.CALL, stream: 77, head: toHex(utf8('the head')), attached: toHex(utf8('`ttached')) },
  ]);
});

test('MAX_FRAME, MAX_HEAD and FRAME_BYTES are taken, a byte more ends the connection', () => {
  const { maxFrame, maxHead, frameBytes } = LIMITS;
  readFrames([packFrame(KIND.POST, 0, new Uint8Array(maxHead), new Uint8Array(maxFrame - maxHead))]);
  readFrames([packFrame(KIND.DATA, 1, EMPTY, new Uint8Array(frameBytes))]);
  assert.throws(() => readFrames([packFrame(KIND.POST, 0, EMPTY, new Uint8Array(maxFrame + 1))]), corrupt(/limit/));
  assert.throws(() => readFrames([packFrame(KIND.POST, 0, new Uint8Array(maxHead + 1), EMPTY)]), corrupt(/head of/));
  assert.throws(
    () => readFrames([packFrame(KIND.DATA, 1, EMPTY, new Uint8Array(frameBytes + 1))]),
    corrupt(/body frame/),
  );
});

test('the header alone is enough to refuse a frame that is too long', () => {
  const header = packFrame(KIND.POST, 0, EMPTY, EMPTY);
  putU32(header, 0, 0xffff_ffff);
  assert.throws(() => readFrames([header]), corrupt(/4294967295 bytes/));
});

test('unknown kinds, flags and empty body frames end the connection', () => {
  for (const kind of [0, 8, 15, 255]) {
    assert.throws(() => readFrames([packFrame(kind as Kind, 1, EMPTY, EMPTY)]), corrupt(/unknown kind/));
  }
  assert.throws(() => readFrames([packFrame(KIND.CALL, 1, EMPTY, EMPTY, FLAG_LAST)]), corrupt(/flags 1/));
  assert.throws(() => readFrames([packFrame(KIND.DATA, 1, EMPTY, utf8('x'), 2)]), corrupt(/flags 2/));
  assert.throws(() => readFrames([packFrame(KIND.DATA, 1, EMPTY, EMPTY)]), corrupt(/empty body frame/));
  assert.throws(() => readFrames([packFrame(KIND.DATA, 1, utf8('x'), EMPTY)]), corrupt(/with a head/));
});

test('a stranger may send a greeting of 96 bytes and nothing else', () => {
  assert.equal(readFrames([packFrame(KIND.HELLO, 0, new Uint8Array(STRANGER_BYTES), EMPTY)], false).length, 1);
  assert.throws(
    () => readFrames([packFrame(KIND.HELLO, 0, new Uint8Array(STRANGER_BYTES + 1), EMPTY)], false),
    corrupt(/97 bytes/),
  );
  assert.throws(() => readFrames([packFrame(KIND.CALL, 1, EMPTY, EMPTY)], false), corrupt(/wrong time/));
  assert.throws(() => readFrames([packFrame(KIND.HELLO, 0, EMPTY, EMPTY)]), corrupt(/wrong time/));
});

test('a reader that was stopped passes nothing on, also from the chunk at hand', () => {
  let frames = 0;
  const reader: FrameReader = new FrameReader({
    frame: () => {
      frames++;
      reader.stop();
    },
    data: () => assert.fail('no body was sent'),
  });
  reader.trust();
  const frame = packFrame(KIND.PING, 0, new Uint8Array(8), EMPTY);
  reader.push(concat([frame, frame]));
  reader.push(frame);
  assert.equal(frames, 1);
});

test('random bytes and damaged frames are refused with a code or ignored, never worse', (t) => {
  const random = new SeededRandom(seedOf(t));
  for (let round = 0; round < 3000; round++) {
    const bytes = concat([
      packFrame(KINDS[random.below(KINDS.length)]!, random.uint32(), random.bytes(random.below(64)), EMPTY),
      random.bytes(random.below(64)),
    ]);
    for (let damage = random.below(4); damage > 0; damage--) bytes[random.below(bytes.length)] = random.below(256);
    try {
      readFrames([bytes], random.below(2) === 0);
    } catch (error) {
      assert.ok(error instanceof WebdfsError && error.code === 'WIRE_CORRUPT', String(error));
    }
  }
});

test('CRC-32 is the one of the standard, in any number of steps', (t) => {
  assert.equal(crc32(utf8('123456789'), 0, 9, 0), 0xcbf43926);
  const bytes = new SeededRandom(seedOf(t)).bytes(1000);
  for (const split of [0, 1, 50, 95, 96, 500, 999]) {
    assert.equal(crc32(bytes, split, 1000, crc32(bytes, 0, split, 0)), crc32(bytes, 0, 1000, 0));
  }
});

// ---- the worked examples of docs/formats/frames.md ----

const PAGE = new URL('../../../docs/formats/frames.md', import.meta.url);

/** The hex dumps of the page, by their names. */
function examples(): Map<string, Uint8Array> {
  const dumps = new Map<string, Uint8Array>();
  for (const [, name, dump] of readFileSync(PAGE, 'utf8').matchAll(/```hex (\w+)\n([^`]*)```/g)) {
    const digits = dump!
      .replaceAll(/^[0-9a-f]{4} {2}/gm, '')
      .replaceAll(/ {2}.*$/gm, '')
      .replaceAll(/\s/g, '');
    dumps.set(name!, fromHex(digits));
  }
  return dumps;
}

const call: Message = { head: utf8('put'), attached: [utf8('hello '), utf8('world')] };

test('the call on the format page is decoded as it says there', () => {
  const head = new Uint8Array(64);
  const length = putCall(head, 0, { verb: 0x0102, leftMs: 5000, trace: 7, window: 0 }, call);
  const packed = packFrame(KIND.CALL, 3, head.subarray(0, length), utf8('hello world'));
  const bytes = examples().get('call');
  assert.equal(toHex(bytes!), toHex(packed));
  const [frame] = readFrames([bytes!]);
  assert.ok(frame?.kind === KIND.CALL);
  assert.deepEqual(readCallHead(fromHex(frame.head)), { verb: 0x0102, leftMs: 5000, trace: 7, window: 0 });
  const message = readCallMessage(fromHex(frame.head), fromHex(frame.attached));
  assert.equal(fromUtf8(message.head), 'put');
  assert.deepEqual(message.attached.map(fromUtf8), ['hello ', 'world']);
});

test('the reply and the failure on the format page are decoded as they say there', () => {
  const head = new Uint8Array(16);
  const length = putReply(head, 0, { head: utf8('done'), attached: [] });
  const reply = examples().get('reply')!;
  assert.equal(toHex(reply), toHex(packFrame(KIND.REPLY, 3, head.subarray(0, length), EMPTY)));
  const [frame] = readFrames([reply]);
  assert.ok(frame?.kind === KIND.REPLY);
  assert.equal(fromUtf8(readReply(fromHex(frame.head), EMPTY).head), 'done');

  const error = new WebdfsError('STALE_BALLOT', 'ballot 8 is over', { details: { revision: 41 }, retryAfterMs: 20 });
  const failure = examples().get('fail')!;
  assert.equal(toHex(failure), toHex(packFrame(KIND.FAIL, 3, packError(error), EMPTY)));
  const [failed] = readFrames([failure]);
  assert.ok(failed?.kind === KIND.FAIL);
  const told = unpackError(fromHex(failed.head));
  assert.equal(told.code, 'STALE_BALLOT');
  assert.deepEqual(told.details, { revision: 41 });
});

test('the greeting on the format page is proven with the secret given there', () => {
  const cluster = '000102030405060708090a0b0c0d0e0f';
  const hello = (node: number, nonce: number): Uint8Array =>
    packHello({
      newest: 1,
      oldest: 1,
      lane: LANE.MESSAGES,
      window: 0x100000,
      node: asNodeId(node),
      boot: '1122334455667788',
      cluster,
      nonce: new Uint8Array(16).fill(nonce),
    });
  const dialler = hello(1, 0xaa);
  const acceptor = hello(2, 0xbb);
  const key = linkKey(new Uint8Array(32).fill(0x5e), cluster);
  const text = transcript(dialler, acceptor);
  putProof(acceptor, proofOf('acceptor', key, text));
  const page = examples();
  assert.equal(toHex(page.get('hello')!), toHex(packFrame(KIND.HELLO, 0, dialler, EMPTY)));
  assert.equal(toHex(page.get('answer')!), toHex(packFrame(KIND.HELLO, 0, acceptor, EMPTY)));
  assert.equal(toHex(page.get('proof')!), toHex(packFrame(KIND.PROOF, 0, proofOf('dialler', key, text), EMPTY)));
});
