import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concat } from '@webdfs/base';
import { inParts, PART_BYTES } from './upload.ts';

async function* chunks(...sizes: number[]): AsyncGenerator<Uint8Array> {
  let mark = 0;
  for (const size of sizes) {
    const chunk = new Uint8Array(size).fill(++mark);
    if (size > 0) chunk[size >> 1] = 255;
    yield chunk;
  }
}

async function gather(source: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return parts;
}

test('parts are full but for the last, and together the stream', async () => {
  const sizes = [PART_BYTES - 1, 2, PART_BYTES * 2 + 5, 1];
  const parts = await gather(inParts(chunks(...sizes)));
  assert.deepEqual(
    parts.map((part) => part.length),
    [PART_BYTES, PART_BYTES, PART_BYTES, 7],
  );
  assert.ok(Buffer.compare(concat(parts), concat(await gather(chunks(...sizes)))) === 0);
});

test('an empty stream is one empty part, an exact one has no empty tail', async () => {
  assert.deepEqual(
    (await gather(inParts(chunks()))).map((part) => part.length),
    [0],
  );
  assert.deepEqual(
    (await gather(inParts(chunks(PART_BYTES)))).map((part) => part.length),
    [PART_BYTES],
  );
});
