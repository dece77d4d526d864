import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { asPolicyId, SeededRandom, systemClock, utf8, WebdfsError } from '@webdfs/base';
import { type BodyTarget, storeBody } from './body-writer.ts';
import type { BlockUpload, Groups } from './groups.ts';
import { MemoryGroups } from './memory-groups.ts';
import { aLayer, NO_FACTS, streamed } from './testing.ts';

const options = { header: { key: utf8('....k'), uploadId: new Uint8Array(16) } };

/** Groups whose block uploads are counted, and end when the test lets them. */
class WatchedGroups extends MemoryGroups {
  open = 0;
  most = 0;
  aborted = 0;
  readonly written: number[] = [];
  /** Resolves before each `finish` does. */
  gate: () => Promise<void> = () => Promise.resolve();
  failAt = Infinity;

  override putBlock(...args: Parameters<Groups['putBlock']>): BlockUpload {
    const inner = super.putBlock(...args);
    const index = this.written.push(0) - 1;
    this.open++;
    this.most = Math.max(this.most, this.open);
    return {
      write: (bytes) => {
        this.written[index]! += bytes.length;
        if (index >= this.failAt) throw new WebdfsError('DISK_FULL', 'no room');
        return inner.write(bytes);
      },
      finish: async () => {
        await this.gate();
        const result = await inner.finish();
        this.open--;
        return result;
      },
      abort: () => {
        this.aborted++;
        this.open--;
        inner.abort();
      },
    };
  }
}

// block ids are used once, so all tests draw from one source
const random = new SeededRandom(1);

function aTarget(groups: Groups, more: Partial<BodyTarget> = {}): BodyTarget {
  return {
    groups,
    policy: asPolicyId(1),
    clock: systemClock,
    random,
    blockBytes: 256,
    inlineBytes: 100,
    maxBytes: 5_000,
    ...more,
  };
}

test('a body of unknown length stays in its record until it is too large for it', async () => {
  const groups = new WatchedGroups();
  for (const size of [0, 1, 99, 100]) {
    const stored = await storeBody(aTarget(groups), streamed(new Uint8Array(size).fill(7), 9), options);
    assert.deepEqual([stored.layout.type, stored.inline.length], ['inline', size]);
  }
  assert.equal(groups.written.length, 0);
  const stored = await storeBody(aTarget(groups), streamed(new Uint8Array(101).fill(7), 9), options);
  assert.deepEqual([stored.layout.type, stored.inline.length, stored.size], ['blocks', 0, 101]);
  assert.deepEqual(groups.written, [101]);
});

test('a body is cut into blocks of one size, the last one shorter, with MD5 over all', async () => {
  const groups = new WatchedGroups();
  const bytes = new SeededRandom(3).bytes(1_000);
  for (const body of [bytes, streamed(bytes, 333), streamed(bytes, 1)]) {
    groups.written.length = 0;
    const stored = await storeBody(aTarget(groups), body, options);
    assert.deepEqual(groups.written, [256, 256, 256, 232]);
    assert.deepEqual(stored.md5, new Uint8Array(createHash('md5').update(bytes).digest()));
  }
  groups.written.length = 0;
  await storeBody(aTarget(groups), bytes.subarray(0, 512), options);
  assert.deepEqual(groups.written, [256, 256], 'no empty block at the end');
});

test('at most two blocks are under way, and the source is not asked for more meanwhile', async () => {
  const groups = new WatchedGroups();
  const waiting: (() => void)[] = [];
  groups.gate = () => new Promise((resolve) => void waiting.push(resolve));
  let asked = 0;
  const body = (async function* body(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < 20; i++) {
      asked += 64;
      await Promise.resolve();
      yield new Uint8Array(64);
    }
  })();
  const done = storeBody(aTarget(groups), body, options);
  for (let committed = 0; committed < 5; committed++) {
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    assert.ok(groups.open <= 2);
    const most = Math.min(1_280, (committed + 2) * 256 + 64);
    assert.ok(asked <= most, `${asked} bytes asked for, ${committed} blocks committed`);
    waiting.shift()?.();
  }
  assert.equal((await done).size, 1_280);
  assert.deepEqual([groups.most, groups.open], [2, 0]);
});

test('a body shorter or longer than announced is refused, and no block stays under way', async () => {
  const groups = new WatchedGroups();
  for (const [size, length] of [
    [10, 9],
    [10, 11],
    [600, 599],
    [600, 601],
    [600, 3_000],
    [90, 3_000],
  ] as const) {
    const bytes = new Uint8Array(length);
    for (const body of [bytes, streamed(bytes)]) {
      await assert.rejects(storeBody(aTarget(groups), body, { ...options, size }), { code: 'INCOMPLETE_BODY' });
      assert.equal(groups.open, 0);
    }
  }
});

test('a body beyond the limit is refused as soon as that is known', async () => {
  const groups = new WatchedGroups();
  await assert.rejects(storeBody(aTarget(groups), streamed(new Uint8Array(1)), { ...options, size: 5_001 }), {
    code: 'TOO_LARGE',
  });
  assert.equal(groups.written.length, 0);
  await assert.rejects(storeBody(aTarget(groups), streamed(new Uint8Array(5_001)), options), { code: 'TOO_LARGE' });
  assert.equal(groups.open, 0);
  assert.equal((await storeBody(aTarget(groups), new Uint8Array(5_000), options)).size, 5_000);
});

test('a source that fails, a block that fails, and a caller who gives up leave no block under way', async () => {
  const groups = new WatchedGroups();
  const broken = (async function* broken(): AsyncGenerator<Uint8Array> {
    await Promise.resolve();
    yield new Uint8Array(700);
    throw new RangeError('connection lost');
  })();
  await assert.rejects(storeBody(aTarget(groups), broken, options), RangeError);
  assert.equal(groups.open, 0);
  groups.failAt = groups.written.length + 1;
  await assert.rejects(storeBody(aTarget(groups), streamed(new Uint8Array(700)), options), { code: 'DISK_FULL' });
  assert.equal(groups.open, 0);
  groups.failAt = Infinity;
  const controller = new AbortController();
  const abandoned = (async function* abandoned(): AsyncGenerator<Uint8Array> {
    await Promise.resolve();
    yield new Uint8Array(300);
    controller.abort();
    yield new Uint8Array(300);
  })();
  const { signal } = controller;
  await assert.rejects(storeBody(aTarget(groups), abandoned, { ...options, signal }), { code: 'CANCELLED' });
  assert.equal(groups.open, 0);
  assert.ok(groups.aborted >= 3);
});

test('a body of one block that verify refuses leaves no block, full or not', async () => {
  for (const size of [101, 255, 256]) {
    const groups = new WatchedGroups();
    const verify = (): never => {
      throw new WebdfsError('CHECKSUM_MISMATCH', 'other bytes');
    };
    const done = storeBody(aTarget(groups), streamed(new Uint8Array(size)), { ...options, size, verify });
    await assert.rejects(done, { code: 'CHECKSUM_MISMATCH' });
    assert.deepEqual([groups.written.length, groups.aborted, groups.open, groups.bytes], [1, 1, 0, 0]);
  }
});

test('what verify throws leaves no object, and the one before it stays', async () => {
  const layer = aLayer();
  await layer.createBucket('bucket', { owner: 'me' });
  await layer.put('bucket', utf8('a'), utf8('old'), { facts: NO_FACTS });
  const verify = (): undefined => {
    throw new WebdfsError('CHECKSUM_MISMATCH', 'other bytes');
  };
  for (const size of [10, 1_000]) {
    const put = layer.put('bucket', utf8('a'), new Uint8Array(size), { facts: NO_FACTS, verify });
    await assert.rejects(put, { code: 'CHECKSUM_MISMATCH' });
  }
  assert.equal((await layer.head('bucket', utf8('a'))).info.size, 3);
});

test('verify hears of MD5 and size, and may add what was only known at the end', async () => {
  const layer = aLayer();
  await layer.createBucket('bucket', { owner: 'me' });
  const heard: unknown[] = [];
  const result = await layer.put('bucket', utf8('a'), streamed(new Uint8Array(1_000)), {
    facts: { headers: { 'content-type': 'x/y' }, user: {} },
    verify: (md5, size) => {
      heard.push(Buffer.from(md5).toString('hex'), size);
      return { checksums: { crc32: 'CCCCCC==' }, checksumType: 'FULL_OBJECT' };
    },
  });
  assert.deepEqual(heard, [result.etag, 1_000]);
  const { info } = await layer.head('bucket', utf8('a'));
  assert.deepEqual([info.checksums, info.headers], [{ crc32: 'CCCCCC==' }, { 'content-type': 'x/y' }]);
});
