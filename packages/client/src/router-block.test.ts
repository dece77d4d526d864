import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunkSums, concat, EMPTY, type ErrorCode, utf8, WebdfsError } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { decodePutBlock, decodeReadBlock, encodePutBlockAnswer, VERB } from '@webdfs/replica';
import { type Incoming, type Link, type Message, NO_ATTACHMENT, type Outgoing, type Piece } from '@webdfs/wire';
import { GroupRouter } from './router.ts';

import { POLICY, Script, ONE, TWO, THREE } from './router-script.ts';

const ID = new Uint8Array(20).fill(3);
const HEADER = { key: utf8('0000key'), uploadId: new Uint8Array(16) };

/** A node that takes a block; `outcome` decides once all came, or at once with `early`. */
function taking(options: { outcome: (bytes: Uint8Array) => Message; early?: WebdfsError; windowPieces?: number }): {
  link: Partial<Link>;
  taken: Uint8Array[];
  waits: () => number;
} {
  const taken: Uint8Array[] = [];
  let waits = 0;
  const link: Partial<Link> = {
    send(verb, message) {
      assert.equal(verb, VERB.PUT_BLOCK);
      assert.deepEqual(Buffer.from(decodePutBlock(message).request.id), Buffer.from(ID));
      const { promise, resolve, reject } = Promise.withResolvers<Message>();
      const body: Outgoing = {
        write(piece) {
          if (options.early !== undefined) reject(options.early);
          else taken.push(piece.bytes.slice());
          piece.release();
          return taken.length % (options.windowPieces ?? Infinity) !== 0 || taken.length === 0;
        },
        async ready() {
          waits++;
        },
        end() {
          try {
            resolve(options.outcome(concat(taken)));
          } catch (error) {
            reject(error);
          }
        },
        cancel: () => reject(new WebdfsError('CANCELLED', 'scripted')),
      };
      return { body, answer: promise };
    },
  };
  return { link, taken, waits: () => waits };
}

const stored = (bytes: Uint8Array): Message => encodePutBlockAnswer({ size: bytes.length, sums: chunkSums(bytes) });

async function upload(router: GroupRouter, parts: readonly Uint8Array[]): Promise<{ size: number; sums: Uint32Array }> {
  const block = router.putBlock(POLICY, ID, HEADER);
  for (const part of parts) await block.write(part);
  return await block.finish();
}

test('a block arrives in order and comes back with its size and checksums, whatever pieces it was written in', async (t) => {
  const random = randomOf(t);
  const script = new Script();
  const node = taking({ outcome: stored, windowPieces: 2 });
  script.bodies.set(ONE, node.link);
  const parts = Array.from({ length: 12 }, () => random.bytes(1 + random.below(400_000)));
  const whole = concat(parts);
  assert.deepEqual(await upload(script.router(), parts), { size: whole.length, sums: chunkSums(whole) });
  assert.ok(Buffer.compare(concat(node.taken), whole) === 0);
  assert.ok(node.waits() > 0, 'the writer waited for the window');
});

test('a small block refused by a node that is not the primary is sent again, whole, to the one that is', async () => {
  const script = new Script();
  script.primaryOf = () => (script.revision < 3 ? ONE : TWO);
  const early = new WebdfsError('NOT_PRIMARY', 'scripted', { details: { revision: 3 } });
  script.bodies.set(ONE, taking({ outcome: stored, early }).link);
  const right = taking({ outcome: stored });
  script.bodies.set(TWO, right.link);
  const parts = [utf8('one '), utf8('two '), utf8('three')];
  const { size } = await upload(script.router(), parts);
  assert.equal(size, 13);
  assert.equal(new TextDecoder().decode(concat(right.taken)), 'one two three');
});

test('a block whose first bytes are more than is kept arrives whole', async () => {
  const script = new Script();
  const node = taking({ outcome: stored, windowPieces: 3 });
  script.bodies.set(ONE, node.link);
  const whole = new Uint8Array(3_000_000).map((_, i) => i % 251);
  const block = script.router().putBlock(POLICY, ID, HEADER);
  // not waited for, as a careless caller might
  const first = block.write(whole.subarray(0, 2_000_000));
  const second = block.write(whole.subarray(2_000_000));
  await block.finish();
  await Promise.all([first, second]);
  assert.ok(Buffer.compare(concat(node.taken), whole) === 0);
});

test('a large block refused after its first bytes left is UNAVAILABLE, one aborted is CANCELLED', async () => {
  const script = new Script();
  const early = new WebdfsError('NOT_PRIMARY', 'scripted', { details: { revision: 3 } });
  script.bodies.set(ONE, taking({ outcome: stored, early }).link);
  await assert.rejects(upload(script.router(), [new Uint8Array(2_000_000), utf8('b')]), { code: 'UNAVAILABLE' });
  const block = script.router().putBlock(POLICY, ID, HEADER);
  block.abort();
  await assert.rejects(block.finish(), { code: 'CANCELLED' });
});

test('a block of no bytes is one', async () => {
  const script = new Script();
  script.bodies.set(ONE, taking({ outcome: stored }).link);
  assert.deepEqual(await upload(script.router(), []), { size: 0, sums: new Uint32Array(0) });
});

test('a block whose node is lost is UNAVAILABLE: its bytes are gone', async () => {
  const script = new Script();
  const lost = (): never => {
    throw new WebdfsError('PEER_LOST', 'scripted');
  };
  script.bodies.set(ONE, taking({ outcome: lost }).link);
  await assert.rejects(upload(script.router(), [utf8('bytes')]), { code: 'UNAVAILABLE' });
});

test('a full disk is told as it is, also where it comes before the end', async () => {
  for (const early of [undefined, new WebdfsError('DISK_FULL', 'scripted')]) {
    const script = new Script();
    const full = (): never => {
      throw new WebdfsError('DISK_FULL', 'scripted');
    };
    script.bodies.set(ONE, taking({ outcome: full, ...(early && { early }) }).link);
    await assert.rejects(upload(script.router(), [utf8('a'), utf8('b'), utf8('c')]), { code: 'DISK_FULL' });
  }
});

test('a block that was stored with other bytes than were sent is not acknowledged', async () => {
  const script = new Script();
  script.bodies.set(ONE, taking({ outcome: (bytes) => stored(bytes.fill(0)) }).link);
  await assert.rejects(upload(script.router(), [utf8('bytes')]), { code: 'UNAVAILABLE' });
});

/** A node that gives a block's bytes, up to `until`, then fails. */
function giving(bytes: Uint8Array, options: { until?: number; code?: ErrorCode } = {}): Partial<Link> {
  return {
    fetch(verb, message) {
      assert.equal(verb, VERB.READ_BLOCK);
      const { offset, length } = decodeReadBlock(message).request;
      let at = offset;
      const end = Math.min(offset + length, options.until ?? bytes.length);
      const failure = end < offset + length ? new WebdfsError(options.code ?? 'PEER_LOST', 'scripted') : undefined;
      const body: Incoming = {
        take() {
          if (at >= end) return undefined;
          const piece = ownPiece(bytes.subarray(at, Math.min(at + 1_000, end)));
          at += piece.bytes.length;
          return piece;
        },
        async ready() {
          if (at >= end && failure !== undefined) throw failure;
        },
        get ended() {
          return at >= end && failure === undefined;
        },
        cancel: () => undefined,
      };
      const answer =
        failure === undefined ? Promise.resolve({ head: EMPTY, attached: NO_ATTACHMENT }) : Promise.reject(failure);
      return { body, answer };
    },
  };
}

function ownPiece(bytes: Uint8Array): Piece {
  return { bytes, hold: () => undefined, release: () => undefined };
}

async function readAll(router: GroupRouter, range: { offset: number; length: number }): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of router.readBlock(POLICY, ID, range)) {
    pieces.push(piece.bytes.slice());
    piece.release();
  }
  return concat(pieces);
}

test('a block read goes on at the right byte on the next member, whatever ended the first', async (t) => {
  const random = randomOf(t);
  const bytes = random.bytes(20_000);
  for (const code of ['CORRUPT', 'NOT_FOUND', 'PEER_LOST', 'TIMEOUT'] as const) {
    const script = new Script();
    script.bodies.set(ONE, giving(bytes, { until: 5_500, code }));
    script.bodies.set(TWO, giving(bytes, { until: 11_000, code }));
    script.bodies.set(THREE, giving(bytes));
    const range = { offset: 1_234, length: 15_000 };
    const read = await readAll(script.router(), range);
    assert.ok(Buffer.compare(read, bytes.subarray(1_234, 16_234)) === 0, code);
  }
});

test('a member reads its own copy first', async () => {
  const script = new Script();
  const bytes = new Uint8Array(100).fill(8);
  script.bodies.set(THREE, giving(bytes));
  assert.deepEqual(await readAll(script.router({}, THREE), { offset: 0, length: 100 }), bytes);
});

test('a block that no member has is NOT_FOUND, one that is damaged everywhere it lies is CORRUPT', async () => {
  const script = new Script();
  const none = new Uint8Array(0);
  for (const node of [ONE, TWO, THREE]) script.bodies.set(node, giving(none, { until: 0, code: 'NOT_FOUND' }));
  await assert.rejects(readAll(script.router(), { offset: 0, length: 10 }), { code: 'NOT_FOUND' });
  script.bodies.set(TWO, giving(none, { until: 0, code: 'CORRUPT' }));
  await assert.rejects(readAll(script.router(), { offset: 0, length: 10 }), { code: 'CORRUPT' });
  script.bodies.set(THREE, giving(none, { until: 0, code: 'PEER_LOST' }));
  await assert.rejects(readAll(script.router({ retryForMs: 200 }), { offset: 0, length: 10 }), { code: 'UNAVAILABLE' });
});
