import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { MAX_AWS_CHUNK, MAX_TRAILER_BYTES } from '../http/limits.ts';
import { Refusal } from '../refusal.ts';
import { AwsChunked } from './aws-chunked.ts';

function frame(chunks: readonly Uint8Array[], trailer = ''): Buffer {
  const parts = chunks.flatMap((chunk) => [
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]);
}

/** The bytes inside, when the frame arrives cut at these places. */
function unframe(
  framed: Uint8Array,
  options: { length: number; cuts?: readonly number[]; trailers?: string[] },
): Buffer {
  const framing = new AwsChunked({
    decodedLength: options.length,
    signing: undefined,
    trailers: options.trailers ?? [],
  });
  const pieces: Uint8Array[] = [];
  const places = [
    0,
    ...(options.cuts ?? []).map((cut) => cut % (framed.length + 1)).sort((a, b) => a - b),
    framed.length,
  ];
  for (let i = 1; i < places.length; i++)
    framing.push(framed.subarray(places[i - 1], places[i]), (piece) => pieces.push(piece));
  framing.end();
  return Buffer.concat(pieces);
}

function code(act: () => unknown): string {
  try {
    act();
    return 'accepted';
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error));
    return error.code;
  }
}

const unframed = (text: string, length: number, trailers?: string[]): string =>
  code(() => unframe(Buffer.from(text), { length, ...(trailers && { trailers }) }));

test('a frame gives its bytes back, however it was cut on the way', (t) => {
  const chunk = fc.uint8Array({ minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 6 }), fc.array(fc.nat(400), { maxLength: 20 }), (chunks, cuts) => {
      const whole = Buffer.concat(chunks);
      const trailer = 'x-amz-checksum-crc32:AAAAAA==\r\n';
      const trailers = ['x-amz-checksum-crc32'];
      assert.deepEqual(unframe(frame(chunks, trailer), { length: whole.length, cuts, trailers }), whole);
    }),
    { seed: seedOf(t), numRuns: 500 },
  );
});

test('one byte at a time is enough', () => {
  const framed = frame([Buffer.from('hello '), Buffer.from('world')]);
  const cuts = Array.from(framed, (_, index) => index);
  assert.equal(unframe(framed, { length: 11, cuts }).toString(), 'hello world');
});

test('a frame cut short anywhere is incomplete', () => {
  const framed = frame([Buffer.from('hello')]);
  for (let end = 0; end < framed.length; end++) {
    assert.equal(
      code(() => unframe(framed.subarray(0, end), { length: 5 })),
      'IncompleteBody',
      `${end}`,
    );
  }
});

test('malformed framing is refused', () => {
  const bad: [string, string][] = [
    ['5\nhello\r\n0\r\n\r\n', 'a line that ends in LF alone'],
    ['5\r\nhelloX\r\n0\r\n\r\n', 'a chunk longer than its size'],
    ['5\r\nhello0\r\n\r\n', 'a chunk without its CRLF'],
    ['-5\r\nhello\r\n0\r\n\r\n', 'a negative size'],
    ['0x5\r\nhello\r\n0\r\n\r\n', 'a size with a prefix'],
    ['\r\nhello\r\n0\r\n\r\n', 'no size'],
    ['5 \r\nhello\r\n0\r\n\r\n', 'a space after the size'],
    ['000000005\r\nhello\r\n0\r\n\r\n', 'a size of nine digits'],
    [`5;chunk-signature=${'0'.repeat(64)}\r\nhello\r\n0\r\n\r\n`, 'a signature where none belongs'],
    [`5;${'x'.repeat(300)}\r\nhello\r\n0\r\n\r\n`, 'a line too long'],
    ['5\r\nhello\r\n0\r\n\r\nmore', 'bytes after the end'],
    ['5\r\nhello\r\n0\r\nx-amz-meta-a:1\r\n\r\n', 'a trailer that was not announced'],
    ['5\r\nhello\r\n0\r\nnonsense\r\n\r\n', 'a trailer without a colon'],
  ];
  for (const [text, what] of bad) assert.equal(unframed(text, 5), 'InvalidRequest', what);
});

test('the sum of the chunks is the announced length, no more and no less', () => {
  assert.equal(unframed('5\r\nhello\r\n0\r\n\r\n', 5), 'accepted');
  assert.equal(unframed('5\r\nhello\r\n0\r\n\r\n', 6), 'IncompleteBody');
  assert.equal(unframed('5\r\nhello\r\n0\r\n\r\n', 4), 'IncompleteBody');
});

test('a chunk has at most so many bytes', () => {
  const head = (size: number): string => `${size.toString(16)}\r\n`;
  assert.equal(unframed(head(MAX_AWS_CHUNK), MAX_AWS_CHUNK + 1), 'IncompleteBody');
  assert.equal(unframed(head(MAX_AWS_CHUNK + 1), MAX_AWS_CHUNK + 1), 'EntityTooLarge');
});

test('trailers are those announced: all of them, once each, within the limit', () => {
  const names = ['x-amz-checksum-crc32'];
  const line = 'x-amz-checksum-crc32:AAAAAA==\r\n';
  assert.equal(unframed(`0\r\n${line}\r\n`, 0, names), 'accepted');
  assert.equal(unframed('0\r\n\r\n', 0, names), 'InvalidRequest');
  assert.equal(unframed(`0\r\n${line}${line}\r\n`, 0, names), 'InvalidRequest');
  const long = `x-amz-checksum-crc32:${'A'.repeat(MAX_TRAILER_BYTES)}\r\n`;
  assert.equal(unframed(`0\r\n${long}\r\n`, 0, names), 'InvalidRequest');
});

test('any bytes are framing or refused', (t) => {
  const piece = fc.constantFrom(
    '5\r\n',
    'hello',
    '\r\n',
    '0\r\n',
    ';chunk-signature=',
    '0'.repeat(64),
    'a:b',
    '\n',
    'ffffffff',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.nat(12), (pieces, length) => {
      assert.ok(
        ['accepted', 'InvalidRequest', 'IncompleteBody', 'EntityTooLarge'].includes(unframed(pieces.join(''), length)),
      );
    }),
    { seed: seedOf(t), numRuns: 1_000 },
  );
});
