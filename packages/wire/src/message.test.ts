import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concat, ERROR_CODES, toHex, WebdfsError, Writer } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import * as fc from 'fast-check';
import {
  CANCEL_REASON,
  packCancel,
  packError,
  putCall,
  putReply,
  readCallHead,
  readCallMessage,
  readReply,
  unpackCancel,
  unpackError,
} from './message.ts';

const u32 = fc.nat({ max: 0xffff_ffff });
const anyMessage = fc
  .tuple(fc.uint8Array({ maxLength: 100 }), fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 10 }))
  .map(([head, attached]) => ({ head, attached }));

test('what is packed as a call or an answer is unpacked the same', (t) => {
  const seed = seedOf(t);
  fc.assert(
    fc.property(
      anyMessage,
      fc.nat({ max: 65_535 }),
      u32,
      fc.maxSafeNat(),
      u32,
      (message, verb, leftMs, trace, window) => {
        const bytes = new Uint8Array(1000);
        const call = { verb, leftMs, trace, window };
        const head = bytes.slice(3, 3 + putCall(bytes, 3, call, message));
        const attached = concat(message.attached);
        assert.deepEqual(readCallHead(head), call);
        assert.deepEqual(readCallMessage(head, attached), message);
        const reply = bytes.slice(5, 5 + putReply(bytes, 5, message));
        assert.deepEqual(readReply(reply, attached), message);
      },
    ),
    { seed },
  );
});

test('every code crosses, with message, details and when to retry', () => {
  for (const code of ERROR_CODES) {
    const details = { revision: 41, node: 'three', sure: false };
    const error = unpackError(packError(new WebdfsError(code, 'why ü', { details, retryAfterMs: 77 })));
    assert.equal(error.code, code);
    assert.equal(error.message, 'why ü');
    assert.deepEqual(error.details, details);
    assert.equal(error.retryAfterMs, 77);
  }
});

test('the code of a newer program is UNAVAILABLE, and its number is told', () => {
  const head = packError(new WebdfsError('INVALID', 'new kind of trouble'));
  head[0] = 0xff;
  head[1] = 0x03;
  const error = unpackError(head);
  assert.equal(error.code, 'UNAVAILABLE');
  assert.equal(error.message, 'new kind of trouble');
  assert.deepEqual(error.details, { foreignCode: 0x3ff });
});

test('a long message is cut between characters, large details are left out', () => {
  const error = unpackError(
    packError(new WebdfsError('INVALID', 'é'.repeat(400), { details: { text: 'x'.repeat(5000), n: 1 } })),
  );
  assert.equal(error.message, 'é'.repeat(256));
  assert.deepEqual(error.details, {});
});

test('details that are no object of plain facts are refused or left out', () => {
  const failure = (details: string): Uint8Array => new Writer().u16(0).u16(0).u32(0).text('').text(details).take();
  for (const details of ['[]', '3', 'null', '{', '"text"']) {
    assert.throws(
      () => unpackError(failure(details)),
      (error) => error instanceof WebdfsError && error.code === 'WIRE_CORRUPT',
    );
  }
  assert.deepEqual(unpackError(failure('{"a":1,"b":[2],"c":{"d":3},"e":null}')).details, { a: 1 });
});

test('a cancellation says whether time was over', () => {
  assert.equal(unpackCancel(packCancel(CANCEL_REASON.TIME_OVER, 'late')).code, 'TIMEOUT');
  const gaveUp = unpackCancel(packCancel(CANCEL_REASON.GAVE_UP, 'never mind'));
  assert.deepEqual([gaveUp.code, gaveUp.message], ['CANCELLED', 'never mind']);
});

test('random heads are refused with WIRE_CORRUPT or read, never worse', (t) => {
  const seed = seedOf(t);
  const bytes = fc.uint8Array({ maxLength: 60 });
  const readers: ((head: Uint8Array, attached: Uint8Array) => unknown)[] = [
    readCallHead,
    (head, attached) => (readCallHead(head), readCallMessage(head, attached)),
    readReply,
    unpackError,
    unpackCancel,
  ];
  fc.assert(
    fc.property(fc.constantFrom(...readers), bytes, bytes, (read, head, attached) => {
      try {
        read(head, attached);
      } catch (error) {
        assert.ok(error instanceof WebdfsError && error.code === 'WIRE_CORRUPT', `${toHex(head)}: ${String(error)}`);
      }
    }),
    { seed, numRuns: 2000 },
  );
});
