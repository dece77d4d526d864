import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock, utf8 } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { checkBucketName } from './bucket-names.ts';
import { BUCKET_CACHE, BUCKET_TTL_MS, DELETING_MS, WRITE_SETTLE_MS } from './limits.ts';
import { MemoryGroups } from './memory-groups.ts';
import type { ObjectLayer } from './object-layer.ts';
import { aLayer, NO_FACTS } from './testing.ts';

const me = { owner: 'me' };

/** Gateways over one store; each tells the others of changes, unless it is cut off. */
function gateways(count: number): {
  layers: ObjectLayer[];
  groups: MemoryGroups;
  clock: ManualClock;
  cutOff: Set<number>;
} {
  const groups = new MemoryGroups();
  const clock = new ManualClock();
  const cutOff = new Set<number>();
  const layers: ObjectLayer[] = Array.from({ length: count }, (_, self) =>
    aLayer({
      groups,
      clock,
      seed: self + 1,
      announceBucket: async (name) => {
        const others = layers.filter((__, i) => i !== self && !cutOff.has(i));
        await Promise.all(others.map((other) => other.bucketChanged(name)));
        return cutOff.size === 0;
      },
    }),
  );
  return { layers, groups, clock, cutOff };
}

function put(layer: ObjectLayer, key: string): Promise<unknown> {
  return layer.put('bucket', utf8(key), utf8('x'), { facts: NO_FACTS });
}

/** Lets a promise go on while time passes. */
async function passing(clock: ManualClock, ms: number, work: Promise<unknown>): Promise<void> {
  const watch = { over: false };
  const watched = work.catch(() => undefined).finally(() => (watch.over = true));
  for (let passed = 0; passed < ms && !watch.over; passed += 1_000) {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    clock.advance(1_000);
  }
  await watched;
}

test('names are held to the rules of S3', () => {
  for (const name of ['abc', 'a.b', '0-1', 'x'.repeat(63), '1.2.3', '192.168.1.1.x']) checkBucketName(name);
  const wrong = [
    '',
    'ab',
    'x'.repeat(64),
    'Abc',
    'a_b',
    '-ab',
    'ab-',
    '.ab',
    'ab.',
    'a..b',
    '192.168.1.1',
    'xn--abc',
    'sthree-abc',
  ];
  for (const name of [...wrong, 'abc-s3alias', 'abc--ol-s3', 'a/b', 'a b', 'caf\u00e9', 'abc\n']) {
    assert.throws(() => checkBucketName(name), { code: 'INVALID', details: { what: 'bucket-name' } }, name);
  }
});

test('a bucket is found, listed and changed as it was made', async () => {
  const layer = aLayer();
  const made = await layer.createBucket('bucket', { owner: 'me', access: 'public-read', region: 'mars-1' });
  assert.deepEqual(await layer.bucket('bucket'), made);
  assert.deepEqual([made.name, made.owner, made.access, made.region], ['bucket', 'me', 'public-read', 'mars-1']);
  await layer.createBucket('another', me);
  assert.deepEqual(
    (await layer.listBuckets()).map(({ name }) => name),
    ['another', 'bucket'],
  );
  assert.equal((await layer.setBucketAccess('bucket', 'private')).access, 'private');
  assert.equal((await layer.bucket('bucket')).access, 'private');
  await assert.rejects(layer.createBucket('bucket', me), { code: 'ALREADY_EXISTS' });
  await assert.rejects(layer.bucket('none'), { code: 'NOT_FOUND', details: { what: 'bucket' } });
  await assert.rejects(layer.setBucketAccess('none', 'private'), { code: 'NOT_FOUND' });
});

test('of many that create one bucket one succeeds, and ids are never shared', async () => {
  const { layers } = gateways(4);
  const same = await Promise.allSettled(layers.map((layer) => layer.createBucket('bucket', me)));
  assert.equal(same.filter(({ status }) => status === 'fulfilled').length, 1);
  const made = await Promise.all(layers.map((layer, i) => layer.createBucket(`bucket${i}`, me)));
  assert.equal(new Set(made.map(({ id }) => id)).size, 4);
});

test('more buckets than one page are all listed', async () => {
  const layer = aLayer();
  for (let i = 0; i < 1_005; i++) await layer.createBucket(`bucket-${i}`, me);
  assert.equal((await layer.listBuckets()).length, 1_005);
});

test('a bucket with objects stays; an empty one goes, and its name is free for another', async () => {
  const layer = aLayer();
  const first = await layer.createBucket('bucket', me);
  await put(layer, 'a');
  await assert.rejects(layer.deleteBucket('bucket'), { code: 'NOT_EMPTY' });
  await put(layer, 'b');
  await layer.remove('bucket', utf8('a'));
  await layer.remove('bucket', utf8('b'));
  await layer.deleteBucket('bucket');
  await assert.rejects(put(layer, 'a'), { code: 'NOT_FOUND', details: { what: 'bucket' } });
  await assert.rejects(layer.deleteBucket('bucket'), { code: 'NOT_FOUND' });
  const second = await layer.createBucket('bucket', me);
  assert.notEqual(second.id, first.id);
});

test('open uploads do not keep a bucket, and go with it', async () => {
  const groups = new MemoryGroups();
  const layer = aLayer({ groups });
  await layer.createBucket('bucket', me);
  const { uploadId } = await layer.createUpload('bucket', utf8('a'), { facts: NO_FACTS });
  await layer.putPart('bucket', utf8('a'), { uploadId, number: 1 }, utf8('x'), {});
  await layer.deleteBucket('bucket');
  await layer.idle();
  assert.deepEqual(await layer.sweepUploads(), { uploads: 0, parts: 0 });
  const late = layer.putPart('bucket', utf8('a'), { uploadId, number: 2 }, utf8('x'), {});
  await assert.rejects(late, { code: 'NOT_FOUND' });
});

test('whatever puts and deletions race through several gateways: who was told yes finds the object', async (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 60; round++) {
    const { layers } = gateways(3);
    await layers[0]!.createBucket('bucket', me);
    for (const layer of layers) await layer.bucket('bucket');
    const puts = Array.from({ length: 6 }, async (_, i) => {
      for (let turns = random.below(30); turns > 0; turns--) await Promise.resolve();
      await put(layers[random.below(3)]!, `key${i}`);
      return `key${i}`;
    });
    const deletion = (async () => {
      for (let turns = random.below(40); turns > 0; turns--) await Promise.resolve();
      await layers[random.below(3)]!.deleteBucket('bucket');
    })();
    const [deleted, ...outcomes] = await Promise.allSettled([deletion, ...puts]);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') {
        assert.ok(['NOT_FOUND', 'BUSY'].includes(outcome.reason.code), outcome.reason);
        continue;
      }
      assert.equal(deleted.status, 'rejected', 'a bucket with an acknowledged object was deleted');
      for (const layer of layers) await layer.head('bucket', utf8(outcome.value));
    }
  }
});

test('a gateway that cannot be told is waited out', async () => {
  const { layers, clock, cutOff } = gateways(2);
  await layers[0]!.createBucket('bucket', me);
  await layers[1]!.bucket('bucket');
  cutOff.add(1);
  let deleted = false;
  const deletion = layers[0]!.deleteBucket('bucket').then(() => (deleted = true));
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  clock.advance(BUCKET_TTL_MS - 1_000);
  assert.equal(deleted, false);
  // it still trusts its memory, and what it writes keeps the bucket
  await put(layers[1]!, 'a');
  await passing(clock, BUCKET_TTL_MS + WRITE_SETTLE_MS + 5_000, deletion);
  await assert.rejects(deletion, { code: 'NOT_EMPTY' });
  await put(layers[1]!, 'b');
});

test('a bucket is remembered for a while, then asked for again', async () => {
  const { layers, clock, cutOff } = gateways(2);
  await layers[0]!.createBucket('bucket', me);
  assert.equal((await layers[1]!.bucket('bucket')).access, 'private');
  cutOff.add(1);
  const change = layers[0]!.setBucketAccess('bucket', 'public-read');
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  assert.equal((await layers[1]!.bucket('bucket')).access, 'private');
  await passing(clock, BUCKET_TTL_MS + 1_000, change);
  assert.equal((await layers[1]!.bucket('bucket')).access, 'public-read');
});

test('a deleter that died leaves a mark that others take away after a while', async () => {
  const groups = new MemoryGroups();
  const clock = new ManualClock();
  const dying = aLayer({ groups, clock, announceBucket: () => new Promise(() => undefined) });
  await dying.createBucket('bucket', me);
  void dying.deleteBucket('bucket');
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  const layer = aLayer({ groups, clock, seed: 2 });
  assert.equal((await layer.bucket('bucket')).name, 'bucket', 'reads go on');
  await assert.rejects(put(layer, 'a'), { code: 'BUSY' });
  await assert.rejects(layer.deleteBucket('bucket'), { code: 'BUSY' });
  clock.advance(DELETING_MS);
  await put(layer, 'a');
  assert.equal((await layer.list('bucket', { limit: 1 })).objects.length, 1);
});

test('the memory of buckets is bounded', async () => {
  const groups = new MemoryGroups();
  const layer = aLayer({ groups });
  for (let i = 0; i <= BUCKET_CACHE; i++) {
    await layer.createBucket(`bucket-${i}`, me);
    await layer.bucket(`bucket-${i}`);
  }
  // the first one was forgotten for the last: it is asked for again
  let reads = 0;
  const read = groups.read.bind(groups);
  groups.read = (request) => (reads++, read(request));
  await layer.bucket(`bucket-${BUCKET_CACHE}`);
  assert.equal(reads, 0);
  await layer.bucket('bucket-0');
  assert.equal(reads, 1);
});
