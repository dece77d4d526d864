import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { asPolicyId, compareBytes, concat, SeededRandom, toHex, utf8 } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { runningChecksum } from './composite-checksums.ts';
import { MemoryGroups } from './memory-groups.ts';
import type { ObjectLayer } from './object-layer.ts';
import type { PutResult } from './object-store.ts';
import { aLayer, bytesOf, NO_FACTS } from './testing.ts';

const BUCKET = 'bucket';
const key = utf8('a');
const PART = 300;

async function aBucket(groups = new MemoryGroups()): Promise<ObjectLayer> {
  const layer = aLayer({ groups });
  await layer.createBucket(BUCKET, { owner: 'me' });
  return layer;
}

/** An upload with parts of `PART` bytes each, all of the value of their number. */
async function anUpload(
  layer: ObjectLayer,
  numbers: readonly number[],
): Promise<{ uploadId: string; parts: { number: number; etag: string }[] }> {
  const { uploadId } = await layer.createUpload(BUCKET, key, { facts: NO_FACTS });
  const parts = [];
  for (const number of numbers) parts.push({ number, etag: (await putPart(layer, uploadId, number)).etag });
  return { uploadId, parts };
}

function putPart(
  layer: ObjectLayer,
  uploadId: string,
  number: number,
  bytes = new Uint8Array(PART).fill(number),
): Promise<PutResult> {
  return layer.putPart(BUCKET, key, { uploadId, number }, bytes, {});
}

/** Makes an object of so many parts of one byte each, and reads it. */
async function makeOfParts(count: number): Promise<void> {
  const groups = new MemoryGroups();
  const layer = aLayer({ groups, sizes: { minPartBytes: 1 } });
  await layer.createBucket(BUCKET, { owner: 'me' });
  const { uploadId } = await layer.createUpload(BUCKET, key, { facts: NO_FACTS });
  const parts: { number: number; etag: string }[] = [];
  for (let number = 1; number <= count; number++) {
    const { etag } = await layer.putPart(BUCKET, key, { uploadId, number }, Uint8Array.of(number & 255), {});
    parts.push({ number, etag });
  }
  await layer.completeUpload(BUCKET, key, uploadId, { parts });
  const bytes = await bytesOf(await layer.get(BUCKET, key));
  assert.equal(bytes.length, count);
  assert.ok(bytes.every((byte, i) => byte === ((i + 1) & 255)));
  await layer.idle();
  assert.equal(await rowsLeft(groups), 0);
}

/** Rows of uploads and parts. */
async function rowsLeft(groups: MemoryGroups): Promise<number> {
  const range = { from: Uint8Array.of(0x80), before: Uint8Array.of(0xff) };
  return (await groups.list({ policy: asPolicyId(1), ...range, take: 20_000 })).rows.length;
}

function base64(name: 'crc32' | 'sha256', bytes: Uint8Array): string {
  const running = runningChecksum(name);
  running.update(bytes);
  return Buffer.from(running.digest()).toString('base64');
}

test('the ETag of an object made of parts is the MD5 of their MD5s, and says how many', async () => {
  const layer = await aBucket();
  const { uploadId, parts } = await anUpload(layer, [1, 2]);
  const { etag, size } = await layer.completeUpload(BUCKET, key, uploadId, { parts });
  const whole = createHash('md5');
  for (const part of parts) whole.update(Buffer.from(part.etag, 'hex'));
  assert.deepEqual([etag, size], [`${whole.digest('hex')}-2`, 2 * PART]);
});

test('completing again answers the same; aborting, and adding a part, do not find the upload any more', async () => {
  const layer = await aBucket();
  const { uploadId, parts } = await anUpload(layer, [1, 2]);
  const first = await layer.completeUpload(BUCKET, key, uploadId, { parts });
  assert.deepEqual(await layer.completeUpload(BUCKET, key, uploadId, { parts }), first);
  await layer.idle();
  assert.deepEqual(await layer.completeUpload(BUCKET, key, uploadId, { parts }), first);
  const notFound = { code: 'NOT_FOUND', details: { what: 'upload' } };
  await assert.rejects(layer.abortUpload(BUCKET, key, uploadId), notFound);
  await assert.rejects(putPart(layer, uploadId, 3), notFound);
  await assert.rejects(layer.listParts(BUCKET, key, uploadId, { after: 0, limit: 1 }), notFound);
  await layer.put(BUCKET, key, utf8('other'), { facts: NO_FACTS });
  await assert.rejects(layer.completeUpload(BUCKET, key, uploadId, { parts }), notFound);
});

test('of many that complete one upload at once all get the same answer', async () => {
  const layer = await aBucket();
  const { uploadId, parts } = await anUpload(layer, [1, 2, 3]);
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => layer.completeUpload(BUCKET, key, uploadId, { parts })),
  );
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
});

test('an upload is completed or aborted, never both', async (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 40; round++) {
    const layer = await aBucket();
    const { uploadId, parts } = await anUpload(layer, [1, 2]);
    const later = async (action: () => Promise<unknown>): Promise<unknown> => {
      for (let turns = random.below(25); turns > 0; turns--) await Promise.resolve();
      return await action();
    };
    const [completed, aborted] = await Promise.allSettled([
      later(() => layer.completeUpload(BUCKET, key, uploadId, { parts })),
      later(() => layer.abortUpload(BUCKET, key, uploadId)),
    ]);
    assert.notEqual(completed.status, aborted.status);
    const found = await layer.list(BUCKET, { limit: 1 });
    assert.equal(found.objects.length, completed.status === 'fulfilled' ? 1 : 0);
    if (completed.status === 'fulfilled') assert.equal((await bytesOf(await layer.get(BUCKET, key))).length, 2 * PART);
  }
});

test('a part that is replaced while the upload completes is the old one or the new one, as the ETag says', async (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 40; round++) {
    const layer = await aBucket();
    const { uploadId, parts } = await anUpload(layer, [1, 2]);
    const replacing = (async () => {
      for (let turns = random.below(25); turns > 0; turns--) await Promise.resolve();
      await putPart(layer, uploadId, 1, new Uint8Array(PART).fill(99));
    })();
    const completing = (async () => {
      for (let turns = random.below(25); turns > 0; turns--) await Promise.resolve();
      await layer.completeUpload(BUCKET, key, uploadId, { parts });
    })();
    const [, completed] = await Promise.allSettled([replacing, completing]);
    if (completed.status === 'rejected') {
      assert.deepEqual([completed.reason.code, completed.reason.details.what], ['NOT_FOUND', 'part']);
    } else assert.equal((await bytesOf(await layer.get(BUCKET, key)))[0], 1);
  }
});

test('what is wrong with the list of parts is named', async () => {
  const layer = await aBucket();
  const { uploadId, parts } = await anUpload(layer, [1, 2, 3]);
  const [one, two, three] = parts as [
    { number: number; etag: string },
    { number: number; etag: string },
    { number: number; etag: string },
  ];
  const complete = (named: typeof parts, more = {}): Promise<PutResult> =>
    layer.completeUpload(BUCKET, key, uploadId, { parts: named, ...more });
  const is = (code: string, what: string) => (error: { code: string; details: { what: string } }) =>
    error.code === code && error.details.what === what;
  await assert.rejects(complete([]), is('INVALID', 'parts'));
  await assert.rejects(complete([two, one]), is('INVALID', 'part-order'));
  await assert.rejects(complete([one, one]), is('INVALID', 'part-order'));
  await assert.rejects(complete([{ number: 0, etag: one.etag }]), is('INVALID', 'part-number'));
  await assert.rejects(complete([one, { number: 7, etag: one.etag }]), is('NOT_FOUND', 'part'));
  await assert.rejects(complete([one, { number: 2, etag: three.etag }]), is('NOT_FOUND', 'part'));
  await assert.rejects(complete([one, two], { size: 2 * PART + 1 }), is('INVALID', 'size'));
  const many = Array.from({ length: 10_001 }, (_, i) => ({ number: i + 1, etag: one.etag }));
  await assert.rejects(complete(many), is('INVALID', 'parts'));
  await putPart(layer, uploadId, 2, new Uint8Array(63));
  const small = { number: 2, etag: toHex(new Uint8Array(createHash('md5').update(new Uint8Array(63)).digest())) };
  await assert.rejects(complete([one, small, three]), is('INVALID', 'part-too-small'));
  assert.equal((await complete([one, small], { size: PART + 63 })).size, PART + 63, 'the last part may be small');
});

test('a failed condition leaves the upload open', async () => {
  const layer = await aBucket();
  await layer.put(BUCKET, key, utf8('old'), { facts: NO_FACTS });
  const { uploadId, parts } = await anUpload(layer, [1]);
  const guarded = layer.completeUpload(BUCKET, key, uploadId, { parts, conditions: { ifNoneMatch: ['*'] } });
  await assert.rejects(guarded, { code: 'PRECONDITION_FAILED' });
  assert.equal((await layer.head(BUCKET, key)).info.size, 3);
  await layer.completeUpload(BUCKET, key, uploadId, { parts });
  assert.equal((await layer.head(BUCKET, key)).info.size, PART);
});

test('parts that were stored in blocks of another size do not become one object', async () => {
  const groups = new MemoryGroups();
  const layer = await aBucket(groups);
  const { uploadId, parts } = await anUpload(layer, [1]);
  const later = aLayer({ groups, seed: 2, sizes: { blockBytes: 512 } });
  const { etag } = await putPart(later, uploadId, 2);
  const complete = (named: typeof parts): Promise<PutResult> =>
    later.completeUpload(BUCKET, key, uploadId, { parts: named });
  await assert.rejects(complete([...parts, { number: 2, etag }]), { code: 'UNSUPPORTED' });
  await complete(parts);
  assert.deepEqual(await bytesOf(await later.get(BUCKET, key)), new Uint8Array(PART).fill(1));
});

test('part numbers and upload ids that cannot be are refused', async () => {
  const layer = await aBucket();
  const { uploadId } = await anUpload(layer, []);
  for (const number of [0, -1, 10_001, 1.5]) {
    await assert.rejects(putPart(layer, uploadId, number), { code: 'INVALID', details: { what: 'part-number' } });
  }
  for (const id of ['', 'x', 'ff'.repeat(15), 'FF'.repeat(16), 'ff'.repeat(16)]) {
    await assert.rejects(putPart(layer, id, 1), { code: 'NOT_FOUND', details: { what: 'upload' } });
  }
});

test('checksums of parts make that of the object: composite, or of all bytes', async () => {
  const layer = await aBucket();
  const bytes = [new SeededRandom(1).bytes(100), new SeededRandom(2).bytes(77)];
  for (const [name, type] of [
    ['sha256', 'COMPOSITE'],
    ['crc32', 'COMPOSITE'],
    ['crc32', 'FULL_OBJECT'],
  ] as const) {
    const { uploadId } = await layer.createUpload(BUCKET, key, {
      facts: NO_FACTS,
      checksumAlgorithm: name,
      checksumType: type,
    });
    const parts: { number: number; etag: string; checksums: Record<string, string> }[] = [];
    for (const [i, part] of bytes.entries()) {
      const checksums = { [name]: base64(name, part) };
      const verify = (): { checksums: Record<string, string> } => ({ checksums });
      const { etag } = await layer.putPart(BUCKET, key, { uploadId, number: i + 1 }, part, { verify });
      parts.push({ number: i + 1, etag, checksums });
    }
    const listed = await layer.listParts(BUCKET, key, uploadId, { after: 0, limit: 10 });
    assert.deepEqual(
      listed.parts.map(({ checksums }) => checksums),
      parts.map(({ checksums }) => checksums),
    );
    const raw = concat(parts.map(({ checksums }) => new Uint8Array(Buffer.from(checksums[name]!, 'base64'))));
    const expected = type === 'FULL_OBJECT' ? base64(name, concat(bytes)) : `${base64(name, raw)}-2`;
    const wrong = layer.completeUpload(BUCKET, key, uploadId, {
      parts,
      checksums: { [name]: base64(name, raw.subarray(1)) },
    });
    await assert.rejects(wrong, { code: 'CHECKSUM_MISMATCH' });
    const altered = parts.map((part) => ({ ...part, checksums: { [name]: base64(name, raw.subarray(2)) } }));
    await assert.rejects(layer.completeUpload(BUCKET, key, uploadId, { parts: altered }), {
      code: 'CHECKSUM_MISMATCH',
    });
    const done = await layer.completeUpload(BUCKET, key, uploadId, { parts, checksums: { [name]: expected } });
    assert.deepEqual([done.checksums, done.checksumType], [{ [name]: expected }, type]);
    const { info } = await layer.head(BUCKET, key);
    assert.deepEqual([info.checksums, info.checksumType], [{ [name]: expected }, type]);
  }
  const unknown = layer.createUpload(BUCKET, key, { facts: NO_FACTS, checksumAlgorithm: 'md5' });
  await assert.rejects(unknown, { code: 'INVALID' });
});

test('a part copied from a range of another object has its bytes, and the checksum that the upload wants', async () => {
  const layer = await aBucket();
  const bytes = new SeededRandom(5).bytes(1_000);
  await layer.put(BUCKET, utf8('source'), bytes, { facts: NO_FACTS });
  const { uploadId } = await layer.createUpload(BUCKET, key, { facts: NO_FACTS, checksumAlgorithm: 'sha256' });
  const source = { bucket: BUCKET, key: utf8('source') };
  const range = { type: 'from', first: 100, last: 899 } as const;
  const { etag, checksums } = await layer.copyPart(BUCKET, key, { uploadId, number: 1 }, { source, range });
  assert.deepEqual(checksums, { sha256: base64('sha256', bytes.subarray(100, 900)) });
  await layer.completeUpload(BUCKET, key, uploadId, { parts: [{ number: 1, etag }] });
  assert.deepEqual(await bytesOf(await layer.get(BUCKET, key)), bytes.slice(100, 900));
});

test('parts are listed in the order of their numbers, in pages', async () => {
  const layer = await aBucket();
  const { uploadId } = await anUpload(layer, [9_999, 1, 300, 256, 255]);
  const numbers: number[] = [];
  let after: number | undefined = 0;
  do {
    const page: Awaited<ReturnType<ObjectLayer['listParts']>> = await layer.listParts(BUCKET, key, uploadId, {
      after,
      limit: 2,
    });
    assert.ok(page.parts.length <= 2);
    assert.ok(page.parts.every(({ size }) => size === PART));
    numbers.push(...page.parts.map(({ number }) => number));
    after = page.next;
  } while (after !== undefined);
  assert.deepEqual(numbers, [1, 255, 256, 300, 9_999]);
  assert.deepEqual((await layer.listParts(BUCKET, key, uploadId, { after: 10_000, limit: 2 })).parts, []);
});

test('uploads are listed by key and id, with prefixes and pages, as the keys themselves are', async (t) => {
  const random = randomOf(t);
  const layer = await aBucket();
  const names = ['a', 'a/', 'a/1', 'a/\u0000', 'a/\u0000\u0001', 'b', 'b/x/y', 'b/x/z', 'c\u0000/q', '/'];
  const all: { key: Uint8Array; uploadId: string }[] = [];
  for (let i = 0; i < 25; i++) {
    const name = utf8(names[random.below(names.length)]!);
    all.push({ key: name, uploadId: (await layer.createUpload(BUCKET, name, { facts: NO_FACTS })).uploadId });
  }
  all.sort((a, b) => compareBytes(a.key, b.key) || (a.uploadId < b.uploadId ? -1 : 1));
  for (const limit of [1, 3, 1_000]) {
    for (const prefix of ['', 'a/', 'b/', 'zz']) {
      for (const delimiter of [undefined, '/', '\u0000']) {
        const shown: string[] = [];
        let next: { key: Uint8Array; uploadId: string } | undefined;
        do {
          const page: Awaited<ReturnType<ObjectLayer['listUploads']>> = await layer.listUploads(BUCKET, {
            limit,
            prefix: utf8(prefix),
            ...(delimiter !== undefined && { delimiter: utf8(delimiter) }),
            ...(next && { after: next.key, afterUploadId: next.uploadId }),
          });
          assert.ok(page.uploads.length + page.prefixes.length <= limit);
          shown.push(
            ...page.uploads.map((upload) => `${toHex(upload.key)} ${upload.uploadId}`),
            ...page.prefixes.map(toHex),
          );
          next = page.next;
        } while (next !== undefined);
        const expected = new Set<string>();
        for (const upload of all) {
          const text = Buffer.from(upload.key).toString();
          if (!text.startsWith(prefix)) continue;
          const at = delimiter === undefined ? -1 : text.indexOf(delimiter, prefix.length);
          expected.add(at < 0 ? `${toHex(upload.key)} ${upload.uploadId}` : toHex(utf8(text.slice(0, at + 1))));
        }
        assert.deepEqual(shown.toSorted(), [...expected].toSorted());
      }
    }
  }
});

test('rows of parts go when their upload is over, and a sweep finds those that were left', async () => {
  const groups = new MemoryGroups();
  const layer = await aBucket(groups);
  const first = await anUpload(layer, [1, 2, 3]);
  const second = await anUpload(layer, [1, 2]);
  const open = await anUpload(layer, [1, 2]);
  await layer.completeUpload(BUCKET, key, first.uploadId, { parts: first.parts.slice(0, 2) });
  await layer.abortUpload(BUCKET, key, second.uploadId);
  await layer.idle();
  assert.equal(await rowsLeft(groups), 3, 'one upload and its two parts');

  // one whose gateway died between the answer and the removal of its parts
  const third = await anUpload(layer, [1, 2]);
  const list = groups.list.bind(groups);
  groups.list = () => Promise.reject(new Error('gone'));
  await layer.completeUpload(BUCKET, key, third.uploadId, { parts: third.parts });
  await layer.idle();
  groups.list = list;
  assert.equal(await rowsLeft(groups), 5);
  assert.deepEqual(await layer.sweepUploads(), { uploads: 0, parts: 2 });
  assert.equal(await rowsLeft(groups), 3);
  await layer.completeUpload(BUCKET, key, open.uploadId, { parts: open.parts });
  assert.equal((await bytesOf(await layer.get(BUCKET, key))).length, 2 * PART);
});

test('an object of more parts than a page has rows is made and read', async () => {
  await makeOfParts(1_200);
});
