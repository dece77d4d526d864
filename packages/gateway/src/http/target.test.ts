import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { Refusal } from '../refusal.ts';
import { decodePercent, encodePercent } from './percent.ts';
import { MAX_QUERY_NAMES } from './limits.ts';
import { Query } from './query.ts';
import { addressOf, bucketOfHost, decodePath, parseTarget } from './target.ts';

const refused = (code: string) => (error: unknown) => error instanceof Refusal && error.code === code;

function addressed(url: string, hostBucket?: string): [bucket: string, key: string] {
  const { bucket, key } = addressOf(decodePath(parseTarget(url).path, false), hostBucket);
  return [bucket, Buffer.from(key).toString()];
}

test('a target is never normalised: dots, slashes and backslashes belong to the key', () => {
  assert.deepEqual(addressed('/b//x/../%2e%2e/a%2Fb'), ['b', '/x/../../a/b']);
  assert.deepEqual(addressed('/b/a//b'), ['b', 'a//b']);
  assert.deepEqual(addressed('/b/..'), ['b', '..']);
  assert.deepEqual(addressed('/b/%5C'), ['b', '\\']);
  assert.deepEqual(addressed('/b/d/'), ['b', 'd/']);
});

test('the service, a bucket and an object are told apart', () => {
  assert.deepEqual(addressed('/'), ['', '']);
  assert.deepEqual(addressed('/b'), ['b', '']);
  assert.deepEqual(addressed('/b/'), ['b', '']);
  assert.deepEqual(addressed('/b//'), ['b', '/']);
  assert.deepEqual(addressed('/', 'hosted'), ['hosted', '']);
  assert.deepEqual(addressed('/a/b', 'hosted'), ['hosted', 'a/b']);
});

test('the absolute form gives its authority, and the path behind it', () => {
  assert.deepEqual(parseTarget('http://h:9/b/k?x=1'), { path: '/b/k', query: 'x=1', authority: 'h:9' });
  assert.deepEqual(parseTarget('https://h'), { path: '/', query: '', authority: 'h' });
  assert.deepEqual(parseTarget('http://h?x'), { path: '/', query: 'x', authority: 'h' });
});

test('other forms of a target are refused', () => {
  for (const url of ['*', 'h:80', '', 'b/k', '/b/k#part', 'http://h/b#part', 'http:///b', 'ftp://h/b']) {
    assert.throws(() => parseTarget(url), refused('InvalidURI'), url);
  }
});

test('an escape that is none, and bytes that are not UTF-8, are refused', () => {
  for (const path of ['/b/%', '/b/%2', '/b/%zz', '/b/%C3', '/b/%FF', '/b/%ED%A0%80', '/b/a b', '/b/é']) {
    assert.throws(() => decodePath(path, false), refused('InvalidURI'), path);
    assert.throws(() => Query.parse(path.replace('é', '%E9')), refused('InvalidURI'), path);
  }
});

test('what is encoded decodes to itself, once', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const bytes = Buffer.from(text);
      for (const keepSlash of [true, false]) {
        const encoded = encodePercent(bytes, keepSlash);
        assert.match(encoded, /^(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})*$/);
        assert.deepEqual(Buffer.from(decodePercent(encoded, false)!), bytes);
      }
    }),
    { seed: seedOf(t) },
  );
});

test('the canonical path is the same, whatever of it a client encoded', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.array(fc.boolean(), { maxLength: 40 }), (text, choices) => {
      const canonical = encodePercent(Buffer.from(`/${text}`), true);
      let index = 0;
      const free = canonical.replace(/[A-Za-z0-9._~-]/g, (it) =>
        choices[index++] === true ? `%${it.charCodeAt(0).toString(16)}` : it,
      );
      // an escape's own digits are not to be touched
      const input = canonical.includes('%') ? canonical : free;
      assert.equal(decodePath(input, false).canonical, canonical);
    }),
    { seed: seedOf(t) },
  );
});

test('any target is parsed or refused, never anything else', (t) => {
  const target = fc.oneof(
    fc.webUrl(),
    fc.stringMatching(/^\/[ -~]{0,40}$/),
    fc.string(),
    fc.webPath().map((it) => `${it}?%zz`),
  );
  fc.assert(
    fc.property(target, (url) => {
      try {
        const { path, query } = parseTarget(url);
        addressOf(decodePath(path, false), undefined);
        Query.parse(query);
      } catch (error) {
        assert.ok(error instanceof Refusal, String(error));
      }
    }),
    { seed: seedOf(t), numRuns: 500 },
  );
});

test('in the query a plus is a space, and the canonical form says %20', () => {
  const query = Query.parse('b=1+2&a&A=%7e&b=%2B&a=');
  assert.equal(query.get('b'), '1 2');
  assert.equal(query.get('a'), '');
  assert.equal(query.has('c'), false);
  assert.equal(query.canonical(), 'A=~&a=&a=&b=%2B&b=1%202');
  assert.equal(query.canonical('a'), 'A=~&b=%2B&b=1%202');
});

test('a query has at most so many names', () => {
  const names = (count: number): string => Array.from({ length: count }, (_, i) => `n${i}`).join('&');
  assert.equal(Query.parse(names(MAX_QUERY_NAMES)).size, MAX_QUERY_NAMES);
  assert.throws(() => Query.parse(names(MAX_QUERY_NAMES + 1)), refused('InvalidURI'));
});

test('a host names a bucket only before one of the domains', () => {
  const domains = ['localhost', 's3.example.org'];
  const cases: [string, string | undefined][] = [
    ['b.localhost', 'b'],
    ['b.localhost:9000', 'b'],
    ['B.LocalHost', 'b'],
    ['a.b.s3.example.org:80', 'a.b'],
    ['localhost', undefined],
    ['localhost:9000', undefined],
    ['notlocalhost', undefined],
    ['.localhost', undefined],
    ['127.0.0.1:9000', undefined],
    ['[::1]', undefined],
    ['[::1]:9000', undefined],
    ['b.example.org', undefined],
  ];
  for (const [host, bucket] of cases) assert.equal(bucketOfHost(host, domains), bucket, host);
});
