import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokenInvariant, ERROR_CODES, REMEDY, WebdfsError } from '@webdfs/base';
import { isOurFault, REFUSAL_OF, refusalOf } from './errors.ts';
import { Refusal, REFUSAL_CODES, statusOf } from './refusal.ts';

test('every code of the system has its answer', () => {
  assert.deepEqual(Object.keys(REFUSAL_OF).toSorted(), [...ERROR_CODES].toSorted());
  for (const code of ERROR_CODES) assert.ok(REFUSAL_CODES.includes(REFUSAL_OF[code]), code);
});

test('who must act is who the status says: the caller 3xx and 4xx, time 503, the operator 5xx', () => {
  // two codes whose remedy is the caller's, and yet the very same request may be sent again; and a race that S3 answers 409
  const others = new Set(['FENCED', 'CONFLICT']);
  for (const code of ERROR_CODES) {
    if (others.has(code)) continue;
    const status = statusOf(REFUSAL_OF[code]);
    if (REMEDY[code] === 'retry') assert.equal(status, 503, code);
    if (REMEDY[code] === 'operator') assert.ok(status === 500 || status === 507, code);
    if (REMEDY[code] === 'caller') assert.ok((status >= 300 && status < 500) || status === 501, code);
  }
});

test('what was not found is named', () => {
  const code = (what?: string): string =>
    refusalOf(new WebdfsError('NOT_FOUND', 'gone', what === undefined ? {} : { details: { what } })).code;
  assert.deepEqual(
    [code('bucket'), code('key'), code('upload'), code('part'), code()],
    ['NoSuchBucket', 'NoSuchKey', 'NoSuchUpload', 'InvalidPart', 'NoSuchKey'],
  );
});

test('what was invalid or too large is named where S3 has a name for it', () => {
  const code = (code: 'INVALID' | 'TOO_LARGE' | 'CHECKSUM_MISMATCH', what: string): string =>
    refusalOf(new WebdfsError(code, 'no', { details: { what } })).code;
  assert.equal(code('INVALID', 'part-too-small'), 'EntityTooSmall');
  assert.equal(code('INVALID', 'bucket-name'), 'InvalidBucketName');
  assert.equal(code('INVALID', 'anything'), 'InvalidArgument');
  assert.equal(code('TOO_LARGE', 'key'), 'KeyTooLongError');
  assert.equal(code('TOO_LARGE', 'object'), 'EntityTooLarge');
  assert.equal(code('CHECKSUM_MISMATCH', 'part'), 'InvalidPart');
});

test('what only the operator may see is not answered', () => {
  const refusal = refusalOf(new WebdfsError('CORRUPT', 'volume /data/7 at 4096'));
  assert.equal(refusal.code, 'InternalError');
  assert.ok(!refusal.message.includes('/data/7'));
  assert.ok(!refusalOf(new TypeError('x is undefined')).message.includes('undefined'));
});

test('bugs and sick machines are for the log, the rest is not', () => {
  assert.ok(isOurFault(new TypeError()));
  assert.ok(isOurFault(new BrokenInvariant('x')));
  assert.ok(isOurFault(new WebdfsError('DISK_FAILED', 'x')));
  assert.ok(!isOurFault(new WebdfsError('UNAVAILABLE', 'x')));
  assert.ok(!isOurFault(new Refusal('SlowDown')));
});
