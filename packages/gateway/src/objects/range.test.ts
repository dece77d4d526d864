import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { parseCopyRange, parseRange } from './range.ts';

test('one range of bytes is understood', () => {
  assert.deepEqual(parseRange('bytes=0-9'), { type: 'from', first: 0, last: 9 });
  assert.deepEqual(parseRange('bytes=5-'), { type: 'from', first: 5 });
  assert.deepEqual(parseRange('bytes=-5'), { type: 'suffix', count: 5 });
  assert.deepEqual(parseRange('Bytes = 0-0 '), { type: 'from', first: 0, last: 0 });
});

test('what is no range, another unit, or several ranges, is ignored', () => {
  for (const header of [
    undefined,
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'items=0-1',
    'bytes=0-1,3-4',
    'bytes=--5',
    'bytes=1.5-2',
  ]) {
    assert.equal(parseRange(header), undefined, header);
  }
});

test('a range that no object has is said to be none', () => {
  for (const header of ['bytes=5-4', 'bytes=-0', 'bytes=-00']) assert.equal(parseRange(header), 'none', header);
});

test('absurd numbers are numbers that can be counted with', () => {
  const huge = '9'.repeat(400);
  for (const header of [`bytes=${huge}-`, `bytes=0-${huge}`, `bytes=-${huge}`, `bytes=${huge}-${huge}`]) {
    const range = parseRange(header);
    assert.ok(range !== undefined && range !== 'none' && range.type !== 'part', header);
    const numbers = range.type === 'suffix' ? [range.count] : [range.first, range.last ?? 0];
    assert.ok(
      numbers.every((it) => Number.isSafeInteger(it) && it >= 0),
      header,
    );
  }
});

test('any header is a range, none, or ignored', (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^bytes=[\d,-]{0,20}$/)), (header) => {
      const range = parseRange(header);
      if (range === undefined || range === 'none' || range.type === 'part') return;
      if (range.type === 'suffix') assert.ok(range.count > 0);
      else assert.ok(range.first <= (range.last ?? range.first));
    }),
    { seed: seedOf(t), numRuns: 1_000 },
  );
});

test('the range of a copied part has both ends', () => {
  assert.deepEqual(parseCopyRange('bytes=0-5242879'), { type: 'from', first: 0, last: 5_242_879 });
  for (const header of ['bytes=5-', 'bytes=-5', 'bytes=5-4', '0-5', `bytes=0-${'9'.repeat(20)}`]) {
    assert.equal(parseCopyRange(header), undefined, header);
  }
});
