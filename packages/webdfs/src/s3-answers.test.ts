import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorOf, listOf } from './s3-answers.ts';

test('a listing gives back keys with entities, escapes and spaces as they were', () => {
  const listing = listOf(
    '<ListBucketResult><Contents><Key>a%2Fb+c%26%E6%97%A5</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>' +
      '<ETag>&quot;abc&quot;</ETag><Size>12</Size></Contents><CommonPrefixes><Prefix>d%2F</Prefix></CommonPrefixes>' +
      '<NextContinuationToken>x&#47;y</NextContinuationToken></ListBucketResult>',
  );
  assert.deepEqual(listing, {
    objects: [{ key: 'a/b c&日', size: 12, modified: '2026-01-02T03:04:05.000Z', etag: 'abc' }],
    prefixes: ['d/'],
    next: 'x/y',
  });
});

test('an error answer keeps its code and message, and an empty one is judged by its status', () => {
  const named = errorOf(404, '<Error><Code>NoSuchBucket</Code><Message>no bucket b</Message></Error>', 'list s3://b');
  assert.equal(named.code, 'NOT_FOUND');
  assert.equal(named.message, 'list s3://b: no bucket b (NoSuchBucket)');
  assert.equal(errorOf(503, '', 'get').code, 'UNAVAILABLE');
});

test('an error of a report is told in the words of the store', () => {
  const body = '<Error><Code>NoSuchKey</Code><Message>there is no object s3://b/k</Message></Error>';
  assert.equal(errorOf(404, body, '').message, 'there is no object s3://b/k (NoSuchKey)');
});
