import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { compareBytes } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import {
  allHidden,
  behind,
  checkUploadKey,
  hiddenRange,
  type KeyRange,
  MAX_BUCKET_ID,
  objectKey,
  partRange,
  partRow,
  readHiddenRow,
  startsWith,
  uploadRange,
  uploadRow,
} from './keyspace.ts';

// few values, so that keys are often prefixes of each other and full of the bytes that the escape is made of
const key = fc
  .array(fc.constantFrom(0, 1, 2, 0x2f, 0xfe, 0xff), { minLength: 1, maxLength: 6 })
  .map((bytes) => Uint8Array.from(bytes));
const id = fc.uint8Array({ minLength: 16, maxLength: 16 });
const bucket = fc.constantFrom(1, 2, 255, 256, MAX_BUCKET_ID);
const number = fc.constantFrom(1, 2, 255, 256, 10_000);

function inside(row: Uint8Array, { from, before }: KeyRange): boolean {
  return compareBytes(from, row) <= 0 && compareBytes(row, before) < 0;
}

test('rows of uploads are ordered as bucket, key, id, and parts as their numbers', (t) => {
  const row = fc.tuple(bucket, key, id, number);
  fc.assert(
    fc.property(row, row, ([bucketA, keyA, idA, numberA], [bucketB, keyB, idB, numberB]) => {
      const order = Math.sign(bucketA - bucketB || compareBytes(keyA, keyB) || compareBytes(idA, idB));
      const uploads = compareBytes(uploadRow(bucketA, keyA, idA), uploadRow(bucketB, keyB, idB));
      assert.equal(Math.sign(uploads), order);
      const parts = compareBytes(
        partRow(bucketA, keyA, { uploadId: idA, number: numberA }),
        partRow(bucketB, keyB, { uploadId: idB, number: numberB }),
      );
      assert.equal(Math.sign(parts), order === 0 ? Math.sign(numberA - numberB) : order);
    }),
    { seed: seedOf(t), numRuns: 2_000 },
  );
});

test('a row says again what it was made of', (t) => {
  fc.assert(
    fc.property(bucket, key, id, number, (bucketId, keyBytes, uploadId, part) => {
      const upload = { bucket: bucketId, key: keyBytes, uploadId };
      assert.deepEqual(readHiddenRow(uploadRow(bucketId, keyBytes, uploadId)), { ...upload, number: undefined });
      const row = partRow(bucketId, keyBytes, { uploadId, number: part });
      assert.deepEqual(readHiddenRow(row), { ...upload, number: part });
    }),
    { seed: seedOf(t) },
  );
});

test('ranges hold the rows they are for, and no others', (t) => {
  fc.assert(
    fc.property(bucket, key, id, number, key, (bucketId, keyBytes, uploadId, part, other) => {
      const upload = uploadRow(bucketId, keyBytes, uploadId);
      const row = partRow(bucketId, keyBytes, { uploadId, number: part });
      assert.ok(inside(row, partRange(bucketId, keyBytes, uploadId)));
      assert.ok(!inside(upload, partRange(bucketId, keyBytes, uploadId)));
      assert.equal(inside(row, partRange(bucketId, other, uploadId)), compareBytes(keyBytes, other) === 0);
      assert.equal(inside(upload, uploadRange(bucketId, other)), startsWith(keyBytes, other));
      assert.ok(!inside(row, uploadRange(bucketId, new Uint8Array(0))));
      for (const hidden of [upload, row]) {
        assert.ok(inside(hidden, hiddenRange(bucketId)) && inside(hidden, allHidden()));
        assert.ok(!inside(hidden, hiddenRange(bucketId === 1 ? 2 : 1)));
      }
      assert.ok(!inside(objectKey(bucketId, keyBytes), allHidden()));
    }),
    { seed: seedOf(t), numRuns: 500 },
  );
});

test('behind a prefix stands the first key that has it not', (t) => {
  fc.assert(
    fc.property(key, key, (prefix, other) => {
      const end = behind(prefix);
      if (end === undefined) assert.ok(prefix.every((byte) => byte === 255));
      else assert.equal(startsWith(other, prefix), compareBytes(prefix, other) <= 0 && compareBytes(other, end) < 0);
    }),
    { seed: seedOf(t), numRuns: 1_000 },
  );
});

test('bytes that are no row are refused, not misread', (t) => {
  assert.throws(() => readHiddenRow(new Uint8Array(4)), { code: 'CORRUPT' });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        const { bucket: bucketId, key: keyBytes, uploadId, number: part } = readHiddenRow(bytes);
        const again =
          part === undefined
            ? uploadRow(bucketId, keyBytes, uploadId)
            : partRow(bucketId, keyBytes, { uploadId, number: part });
        assert.deepEqual(again.subarray(4), bytes.subarray(4));
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'CORRUPT');
      }
    }),
    { seed: seedOf(t), numRuns: 1_000 },
  );
});

test('a key whose rows would not fit cannot be uploaded in parts', () => {
  checkUploadKey(new Uint8Array(1_024).fill(1));
  checkUploadKey(new Uint8Array(900));
  assert.throws(() => checkUploadKey(new Uint8Array(1_024)), { code: 'TOO_LARGE' });
  assert.ok(uploadRow(1, new Uint8Array(900), new Uint8Array(16)).length <= 2_048);
});
