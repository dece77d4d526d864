import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concat, EMPTY, SeededRandom, toHex } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { FLAG_LAST, FrameReader, KIND } from './frame.ts';
import { LIMITS } from './limits.ts';
import { readCallMessage } from './message.ts';
import { Packer, PackPool } from './packer.ts';
import type { Message } from './transport.ts';

const HEAD = { verb: 1, leftMs: 1, trace: 0, window: 0 };

test('whatever is packed in one turn leaves as the same frames in the same order', (t) => {
  const random = new SeededRandom(seedOf(t));
  const packer = new Packer(new PackPool(), LIMITS);
  for (let round = 0; round < 200; round++) {
    const expected: string[] = [];
    for (let frames = 1 + random.below(40); frames > 0; frames--) {
      const size = random.below(3) === 0 ? random.below(9000) : random.below(200);
      if (random.below(5) === 0) {
        const bytes = random.bytes(random.below(5000));
        packer.data(3, bytes, FLAG_LAST, undefined);
        expected.push(toHex(bytes));
        continue;
      }
      const message: Message = {
        head: random.bytes(size),
        attached: Array.from({ length: random.below(4) }, () => random.bytes(random.below(3000))),
      };
      packer.call(KIND.CALL, 1, HEAD, message);
      expected.push(toHex(concat([message.head, ...message.attached])));
    }
    const seen: string[] = [];
    const reader = new FrameReader({
      frame: (_kind, _stream, head, attached) => {
        const message = readCallMessage(head, attached);
        seen.push(toHex(concat([message.head, ...message.attached])));
      },
      data: (_stream, bytes) => seen.push(toHex(bytes)),
    });
    reader.trust();
    const { bytes, buffers, left } = packer.take();
    assert.equal(bytes, concat(buffers).length);
    reader.push(concat(buffers));
    assert.deepEqual(seen, expected);
    left();
  }
});

test('COPY_BYTES are copied, a byte more travels by reference', () => {
  const packer = new Packer(new PackPool(), LIMITS);
  const copied = new Uint8Array(LIMITS.copyBytes);
  const referred = new Uint8Array(LIMITS.copyBytes + 1);
  packer.call(KIND.CALL, 1, HEAD, { head: EMPTY, attached: [copied, referred] });
  const { buffers } = packer.take();
  assert.equal(buffers.length, 2);
  assert.equal(buffers[1], referred);
  assert.notEqual(buffers[0]!.buffer, copied.buffer);
});

test('small frames of a turn share one buffer of 32 KiB', () => {
  const packer = new Packer(new PackPool(), LIMITS);
  for (let i = 0; i < 100; i++) packer.control(KIND.CREDIT, i, new Uint8Array(4));
  assert.equal(packer.take().buffers.length, 1);
  for (let i = 0; i < 10; i++) packer.control(KIND.FAIL, i, new Uint8Array(10_000));
  const { buffers } = packer.take();
  assert.ok(buffers.every(({ length }) => length <= 32 * 1024));
  assert.equal(buffers.length, 4);
});

test('a pack buffer is used again only once its bytes have left', () => {
  const packer = new Packer(new PackPool(), LIMITS);
  const ping = (): { buffers: Uint8Array[]; left: () => void } => {
    packer.control(KIND.PING, 0, new Uint8Array(8));
    return packer.take();
  };
  const first = ping();
  const second = ping();
  assert.notEqual(first.buffers[0]!.buffer, second.buffers[0]!.buffer);
  first.left();
  assert.equal(ping().buffers[0]!.buffer, first.buffers[0]!.buffer);
});

test('whoever lent the bytes of a body is told once they have left', () => {
  const packer = new Packer(new PackPool(), LIMITS);
  const told: string[] = [];
  packer.data(1, new Uint8Array(10), 0, () => told.push('a'));
  packer.data(1, new Uint8Array(10), 0, () => told.push('b'));
  const { left } = packer.take();
  assert.deepEqual(told, []);
  left();
  assert.deepEqual(told, ['a', 'b']);
});
