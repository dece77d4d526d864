import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ObjectInfo } from '@webdfs/client';
import { Refusal } from '../refusal.ts';
import { judge, parseEtags, readConditions, writeConditions } from './conditions.ts';

const INFO: ObjectInfo = {
  bucket: 'b',
  key: new Uint8Array([1]),
  size: 1,
  etag: 'e1',
  modifiedMs: Date.UTC(1994, 10, 6, 8, 49, 37, 500),
  parts: 0,
  version: '',
  headers: {},
  user: {},
};
const BEFORE = 'Sun, 06 Nov 1994 08:49:36 GMT';
const SAME = 'Sun, 06 Nov 1994 08:49:37 GMT';

function verdict(headers: Record<string, string>): string {
  const conditions = readConditions(new Map(Object.entries(headers)));
  return conditions === undefined ? 'none' : judge(conditions, INFO);
}

test('the table of RFC 9110 and S3: ETags count before dates', () => {
  const cases: [Record<string, string>, string][] = [
    [{}, 'none'],
    [{ 'if-match': '"e1"' }, 'answer'],
    [{ 'if-match': 'e1' }, 'answer'],
    [{ 'if-match': '"e0", "e1"' }, 'answer'],
    [{ 'if-match': '*' }, 'answer'],
    [{ 'if-match': '"e0"' }, 'failed'],
    [{ 'if-none-match': '"e1"' }, 'not-modified'],
    [{ 'if-none-match': 'W/"e1"' }, 'not-modified'],
    [{ 'if-none-match': '*' }, 'not-modified'],
    [{ 'if-none-match': '"e0"' }, 'answer'],
    [{ 'if-modified-since': SAME }, 'not-modified'],
    [{ 'if-modified-since': BEFORE }, 'answer'],
    [{ 'if-unmodified-since': SAME }, 'answer'],
    [{ 'if-unmodified-since': BEFORE }, 'failed'],
    [{ 'if-match': '"e1"', 'if-unmodified-since': BEFORE }, 'answer'],
    [{ 'if-none-match': '"e1"', 'if-modified-since': BEFORE }, 'not-modified'],
    [{ 'if-none-match': '"e0"', 'if-modified-since': SAME }, 'answer'],
    [{ 'if-match': '"e0"', 'if-none-match': '"e1"' }, 'failed'],
    [{ 'if-modified-since': 'never' }, 'none'],
  ];
  for (const [headers, expected] of cases) assert.equal(verdict(headers), expected, JSON.stringify(headers));
});

test('a write takes If-Match, and of If-None-Match only the star', () => {
  const of = (headers: Record<string, string>) => writeConditions(new Map(Object.entries(headers)));
  assert.equal(of({}), undefined);
  assert.deepEqual(of({ 'if-match': '"a"' }), { ifMatch: ['a'] });
  assert.deepEqual(of({ 'if-none-match': '*' }), { ifNoneMatch: ['*'] });
  assert.throws(
    () => of({ 'if-none-match': '"a"' }),
    (error) => error instanceof Refusal && error.code === 'NotImplemented',
  );
});

test('a list of ETags is read with and without quotes', () => {
  assert.deepEqual(parseEtags(' "a" ,W/"b",c,, '), ['a', 'b', 'c']);
});
