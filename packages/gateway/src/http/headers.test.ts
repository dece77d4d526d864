import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { Refusal } from '../refusal.ts';
import { amzDate, httpDate, parseAmzDate, parseHttpDate } from './dates.ts';
import { headerOfText, isHeaderValue, readHeaders } from './headers.ts';

test('a header that must be single and comes twice is refused, in any case', () => {
  for (const name of [
    'Host',
    'Authorization',
    'X-Amz-Date',
    'x-amz-content-sha256',
    'Content-MD5',
    'Range',
    'Expect',
  ]) {
    const twice = () => readHeaders([name, 'a', name.toLowerCase(), 'a']);
    assert.throws(twice, (error) => error instanceof Refusal && error.code === 'InvalidRequest', name);
  }
});

test('other headers that come twice are joined as Signature V4 signs them', () => {
  assert.equal(readHeaders(['X-Amz-Meta-A', '1', 'x-amz-meta-a', '2']).get('x-amz-meta-a'), '1,2');
});

test('a text stands in a header as its UTF-8, whatever its characters are', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const value = headerOfText(text);
      assert.match(value, /^[\0-\xff]*$/);
      assert.equal(Buffer.from(value, 'latin1').toString('utf8'), text);
    }),
    { seed: seedOf(t) },
  );
});

test('a value with a line break cannot stand in a header', () => {
  assert.ok(!isHeaderValue('a\r\nSet-Cookie: b'));
  assert.ok(!isHeaderValue('a\0'));
  assert.ok(isHeaderValue('attachment; filename="a b.txt"\t\xc3'));
});

test('a date survives both its forms', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_799 }), (seconds) => {
      assert.equal(httpDate(seconds * 1_000), new Date(seconds * 1_000).toUTCString());
      assert.equal(parseHttpDate(httpDate(seconds * 1_000)), seconds * 1_000);
      assert.equal(parseAmzDate(amzDate(seconds * 1_000)), seconds * 1_000);
    }),
    { seed: seedOf(t) },
  );
});

test('the three forms of RFC 9110 are dates, and what is none is not', () => {
  const ms = Date.UTC(1994, 10, 6, 8, 49, 37);
  assert.equal(parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT'), ms);
  assert.equal(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT'), ms);
  assert.equal(parseHttpDate('Sun Nov  6 08:49:37 1994'), ms);
  for (const text of ['', '1994', 'yesterday', '1994-11-06T08:49:37Z', 'Sun, 06 Nov 1994 08:49:37']) {
    assert.equal(parseHttpDate(text), undefined, text);
  }
  for (const text of ['20131324T000000Z', '20130230T000000Z', '20130524T000000', '2013-05-24T00:00:00Z']) {
    assert.equal(parseAmzDate(text), undefined, text);
  }
});
