import assert from 'node:assert/strict';
import { utf8 } from '@webdfs/base';
import { MAX_PART_NUMBER } from './limits.ts';
import { aLayer, bytesOf, NO_FACTS } from './testing.ts';

// The largest number of parts, made and read: too many rows for the ordinary tests.
const key = utf8('a');
const layer = aLayer({ sizes: { minPartBytes: 1 } });
await layer.createBucket('bucket', { owner: 'me' });
const { uploadId } = await layer.createUpload('bucket', key, { facts: NO_FACTS });
const parts: { number: number; etag: string }[] = [];
for (let number = 1; number <= MAX_PART_NUMBER; number++) {
  const { etag } = await layer.putPart('bucket', key, { uploadId, number }, Uint8Array.of(number & 255), {});
  parts.push({ number, etag });
}
await layer.completeUpload('bucket', key, uploadId, { parts });
const bytes = await bytesOf(await layer.get('bucket', key));
assert.equal(bytes.length, MAX_PART_NUMBER);
assert.ok(bytes.every((byte, i) => byte === ((i + 1) & 255)));
await layer.idle();
assert.deepEqual(await layer.sweepUploads(), { uploads: 0, parts: 0 });
console.log(`an object of ${MAX_PART_NUMBER} parts was made and read`);
