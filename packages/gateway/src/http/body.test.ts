import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { ManualClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { Refusal } from '../refusal.ts';
import { Body, type BodyOptions } from './body.ts';
import { BODY_QUEUE_BYTES, GATHER_BYTES, PACE_BYTES, PACE_SECONDS } from './limits.ts';
import { Wheel } from './wheel.ts';

/** A body over a stream that stands for the request. */
function aBody(
  request: Readable,
  options: Partial<BodyOptions> = {},
): { body: Body; wheel: Wheel; clock: ManualClock } {
  const clock = new ManualClock();
  const wheel = new Wheel(clock);
  const body = new Body(request as unknown as IncomingMessage, { wheel, begin: () => undefined, ...options });
  return { body, wheel, clock };
}

async function all(body: Body): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}

test('a body gives its bytes in order, however they were cut, streamed or whole', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ minLength: 1, maxLength: 200 })), async (chunks) => {
      const bytes = Buffer.concat(chunks);
      assert.deepEqual(await all(aBody(Readable.from(chunks, { objectMode: false })).body), bytes);
      const { body, wheel } = aBody(Readable.from(chunks, { objectMode: false }));
      assert.deepEqual(Buffer.from(await body.whole(bytes.length)), bytes);
      assert.equal(wheel.size, 0);
    }),
    { seed: seedOf(t), numRuns: 100 },
  );
});

test('whoever takes nothing has little waiting', async () => {
  let given = 0;
  const request = new Readable({
    read() {
      given += 65_536;
      this.push(Buffer.alloc(65_536));
    },
  });
  const { body } = aBody(request);
  await body.next();
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(given <= BODY_QUEUE_BYTES + 4 * 65_536, `${given} bytes were taken`);
  const before = given;
  for (let i = 0; i < 20; i++) await body.next();
  assert.ok(given > before);
  await body.return();
  request.destroy();
});

test('small pieces that wait come as one', async () => {
  const request = new Readable({ read: () => undefined });
  const { body } = aBody(request);
  const first = body.next();
  for (let i = 0; i < 1_000; i++) request.push(Buffer.alloc(100, i));
  request.push(null);
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  const { value } = await body.next();
  assert.ok(value!.length > 100 && value!.length <= GATHER_BYTES);
});

test('a whole body larger than its limit is refused', async () => {
  const { body } = aBody(Readable.from([Buffer.alloc(11)], { objectMode: false }));
  await assert.rejects(
    body.whole(10),
    (error) => error instanceof Refusal && error.code === 'MaxMessageLengthExceeded',
  );
});

test('what the framing throws is what the taker gets', async () => {
  const framing = {
    push: () => {
      throw new Refusal('InvalidRequest');
    },
    end: () => undefined,
  };
  const { body, wheel } = aBody(Readable.from([Buffer.alloc(1)], { objectMode: false }), { framing });
  await assert.rejects(body.next(), Refusal);
  assert.equal(wheel.size, 0);
});

test('a client that cannot send, because we take nothing, is not slow', async () => {
  const request = new Readable({ read: () => undefined });
  const { body, clock } = aBody(request);
  const first = body.next();
  for (let i = 0; i < 20; i++) request.push(Buffer.alloc(65_536));
  await first;
  clock.advance(10 * PACE_SECONDS * 1_000);
  assert.equal((await body.next()).done, false);
});

test('a client that sends less than its pace is given up, one at its pace is not', async () => {
  for (const bytes of [PACE_BYTES - 1, PACE_BYTES]) {
    const request = new Readable({ read: () => undefined });
    const { body, clock } = aBody(request);
    const first = body.next();
    request.push(Buffer.alloc(bytes));
    await first;
    const next = body.next().catch((error: unknown) => (error instanceof Refusal ? error.code : 'unknown'));
    clock.advance(PACE_SECONDS * 1_000);
    request.push(null);
    assert.deepEqual(await next, bytes < PACE_BYTES ? 'RequestTimeout' : { done: true, value: undefined });
  }
});
