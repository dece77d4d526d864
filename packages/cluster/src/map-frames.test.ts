import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { codeOf, concat } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { FrameReader, MAX_FRAME_BYTES, packFrame } from './map-frames.ts';
import { parseRequest } from './map-requests.ts';

test('frames come out as they went in, however the stream is cut', (t) => {
  const message = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 });
  fc.assert(
    fc.property(fc.array(message, { maxLength: 6 }), fc.array(fc.nat(40)), (messages, cuts) => {
      const stream = concat(messages.map(packFrame));
      const reader = new FrameReader();
      const out: unknown[] = [];
      let offset = 0;
      for (const cut of cuts) {
        out.push(...reader.push(stream.subarray(offset, offset + cut)));
        offset = Math.min(stream.length, offset + cut);
      }
      out.push(...reader.push(stream.subarray(offset)));
      assert.deepEqual(JSON.stringify(out), JSON.stringify(messages));
    }),
    { seed: seedOf(t), numRuns: 200 },
  );
});

test('a frame that is too long, or no object, is refused at once', () => {
  const head = (length: number): Uint8Array => {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, length, true);
    return bytes;
  };
  assert.throws(() => new FrameReader().push(head(MAX_FRAME_BYTES + 1)), { code: 'WIRE_CORRUPT' });
  for (const text of ['[]', '1', 'null', '{', '"a"']) {
    const frame = concat([head(text.length), new TextEncoder().encode(text)]);
    assert.throws(() => new FrameReader().push(frame), { code: 'WIRE_CORRUPT' }, text);
  }
  assert.throws(() => packFrame({ value: 'x'.repeat(MAX_FRAME_BYTES) }), { code: 'TOO_LARGE' });
});

test('whatever a client asks is a request or INVALID', (t) => {
  const op = fc.constantFrom('hello', 'read', 'transact', 'fresh', 'changes', 'lease', 'renew', 'end', 'x');
  const fields = fc.record(
    {
      op,
      pid: fc.jsonValue(),
      after: fc.jsonValue(),
      lease: fc.jsonValue(),
      ttlMs: fc.jsonValue(),
      transaction: fc.oneof(
        fc.jsonValue(),
        fc.record({
          compare: fc.array(
            fc.record({ type: fc.constantFrom('modified', 'range', 'x'), key: fc.string(), is: fc.nat() }),
          ),
          write: fc.array(
            fc.record({ type: fc.constantFrom('put', 'delete'), key: fc.string(), value: fc.jsonValue() }),
          ),
        }),
      ),
    },
    { requiredKeys: ['op'] },
  );
  fc.assert(
    fc.property(fields, (request) => {
      try {
        assert.equal(parseRequest(request).op, request.op);
      } catch (error) {
        assert.equal(codeOf(error), 'INVALID');
      }
    }),
    { seed: seedOf(t), numRuns: 500 },
  );
});
