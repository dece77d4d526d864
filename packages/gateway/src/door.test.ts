import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_HEADERS } from './http/limits.ts';
import { aDoor, aPublicBucket, codeOf, statusOf } from './testing.ts';

/** One test, or more, for each numbered line of the recipe for an HTTP door; on bare sockets, so that nothing is mended on the
 * way. Lines 1 to 8 here, what a request may be; the others, how it is served, in door-serving.test.ts. */

const GET = 'GET /bucket/k HTTP/1.1\r\nHost: h\r\n';

// ---- 1 and 2: the server and its listeners ----

test('headers that are too many or too large are refused 431', async () => {
  await using door = await aPublicBucket();
  const many = Array.from({ length: MAX_HEADERS + 1 }, (_, i) => `h${i}: v\r\n`).join('');
  for (const headers of [many, `big: ${'x'.repeat(40_000)}\r\n`]) {
    const answer = await door.raw(`${GET}${headers}\r\n`);
    assert.deepEqual([statusOf(answer), codeOf(answer)], [431, 'RequestHeaderSectionTooLarge']);
    assert.match(answer, /\r\nConnection: close\r\n/);
  }
});

test('headers up to the limits are accepted', async () => {
  await using door = await aPublicBucket();
  const many = Array.from({ length: MAX_HEADERS - 2 }, (_, i) => `h${i}: v\r\n`).join('');
  assert.equal(statusOf(await door.raw(`${GET}${many}Connection: close\r\n\r\n`)), 200);
  assert.equal(statusOf(await door.raw(`${GET}big: ${'x'.repeat(30_000)}\r\nConnection: close\r\n\r\n`)), 200);
});

test('a header that does not come in time is answered 408', async () => {
  await using door = await aDoor({ limits: { headersTimeoutMs: 50 } });
  const answer = await door.raw('GET / HTTP/1.1\r\nHost:');
  assert.deepEqual([statusOf(answer), codeOf(answer)], [408, 'RequestTimeout']);
});

test('CONNECT is refused, and an offer to upgrade is passed over', async () => {
  await using door = await aPublicBucket();
  assert.equal(statusOf(await door.raw('CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n')), 405);
  const offered = await door.raw(`${GET}Connection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n`);
  assert.match(offered, /^HTTP\/1\.1 200 [^]*hello$/);
});

// ---- 3: the target ----

test('the absolute form is served, and its authority is the host', async () => {
  await using door = await aPublicBucket();
  const plain = await door.raw('GET http://h/bucket/k HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
  assert.match(plain, /hello$/);
  const hosted = await door.raw('GET http://bucket.localhost/k HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n');
  assert.match(hosted, /hello$/);
});

test('targets that are none are refused 400', async () => {
  await using door = await aPublicBucket();
  for (const target of [
    '*',
    '/bucket/k#part',
    'bucket/k',
    '/bucket/%zz',
    '/bucket/%ff',
    '/bucket/k?a=%zz',
    '/bucket/\xff',
    '/bucket/a b',
  ]) {
    const answer = await door.raw(`GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
    assert.equal(statusOf(answer), 400, target);
  }
});

// ---- 5: headers that must be single ----

test('a header that steers the request must not come twice', async () => {
  await using door = await aPublicBucket();
  for (const name of [
    'Host',
    'Authorization',
    'X-Amz-Date',
    'X-Amz-Content-Sha256',
    'Content-MD5',
    'Range',
    'Expect',
  ]) {
    const value = name === 'Expect' ? '100-continue' : 'h';
    const answer = await door.raw(
      `GET /bucket/k HTTP/1.1\r\nHost: h\r\n${name}: ${value}\r\n${name}: ${value}\r\n\r\n`,
    );
    assert.equal(statusOf(answer), 400, `${name}: ${answer.slice(0, 200)}`);
    assert.match(answer, /\r\nConnection: close\r\n/);
  }
});

// ---- 6: framing ----

test('malformed framing is refused 400 and ends the connection', async () => {
  await using door = await aPublicBucket();
  const put = 'PUT /bucket/new HTTP/1.1\r\nHost: h\r\n';
  const bad: Record<string, string> = {
    'both lengths': `${put}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two lengths': `${put}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`,
    'a signed length': `${put}Content-Length: +3\r\n\r\nabc`,
    'a negative length': `${put}Content-Length: -3\r\n\r\nabc`,
    'a bare LF': 'GET /bucket/k HTTP/1.1\nHost: h\n\n',
    'a folded line': `${GET}A: b\r\n c\r\n\r\n`,
    'a space before the colon': `${GET}A : b\r\n\r\n`,
    'a NUL': `${GET}A: b\0c\r\n\r\n`,
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'no host': 'GET /bucket/k HTTP/1.1\r\nConnection: close\r\n\r\n',
    'no host in HTTP/1.0': 'GET /bucket/k HTTP/1.0\r\n\r\n',
    'no HTTP at all': '\x16\x03\x01\x02\x00\x01\r\n\r\n',
  };
  for (const [what, text] of Object.entries(bad)) {
    const answer = await door.raw(text);
    assert.equal(statusOf(answer), 400, what);
    assert.ok(codeOf(answer), what);
  }
});

test('a transfer coding other than chunked is refused', async () => {
  await using door = await aPublicBucket();
  for (const coding of ['identity, chunked', 'gzip, chunked', 'identity']) {
    const answer = await door.raw(
      `${door.head('PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Transfer-Encoding: ${coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    );
    assert.ok([400, 501].includes(statusOf(answer)), `${coding}: ${answer}`);
    assert.match(answer, /Connection: close/);
  }
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
});

test('a body in chunks needs its decoded length, and then is taken', async () => {
  await using door = await aPublicBucket();
  const put = (headers: Record<string, string>): string =>
    `${door.head('PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD', headers })}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n`;
  const without = await door.raw(put({}));
  assert.deepEqual([statusOf(without), codeOf(without)], [411, 'MissingContentLength']);
  const wrong = await door.raw(put({ 'x-amz-decoded-content-length': '4' }));
  assert.equal(codeOf(wrong), 'IncompleteBody');
  assert.equal(statusOf(await door.raw(put({ 'x-amz-decoded-content-length': '3' }))), 200);
  assert.equal((await door.ask('GET', '/bucket/new')).text, 'abc');
});

// ---- 8: Expect ----

test('100 Continue is said after the signature is right, and not before', async () => {
  await using door = await aPublicBucket();
  const headers = { 'content-length': '5', expect: '100-continue' };
  const good = door.connect();
  good.write(`${door.head('PUT', '/bucket/new', { body: 'world', headers })}\r\n`);
  assert.match(await good.until(/\r\n\r\n/), /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
  good.write('world');
  assert.match(await good.until(/200 OK[^]*\r\n\r\n/), /200 OK/);
  const bad = await door.raw(
    `${door.head('PUT', '/bucket/new2', { body: 'world', headers }).replace(/Signature=./, 'Signature=')}\r\n`,
  );
  assert.doesNotMatch(bad, /100 Continue/);
  assert.equal(statusOf(bad), 400);
  assert.match(bad, /\r\nConnection: close\r\n/);
});

test('what can be refused without the body is refused before it is asked for', async () => {
  await using door = await aPublicBucket();
  const headers = { 'content-length': '5', expect: '100-continue' };
  const put = async (path: string, more: Record<string, string>): Promise<[number, string | undefined]> => {
    const answer = await door.raw(`${door.head('PUT', path, { body: 'world', headers: { ...headers, ...more } })}\r\n`);
    return [statusOf(answer), codeOf(answer)];
  };
  assert.deepEqual(await put('/absent/k', {}), [404, 'NoSuchBucket']);
  assert.deepEqual(await put('/bucket/k', { 'if-none-match': '*' }), [412, 'PreconditionFailed']);
  assert.deepEqual(await put(`/bucket/${'x'.repeat(1_025)}`, {}), [400, 'KeyTooLongError']);
  assert.deepEqual(await put('/bucket/new', { 'content-length': String(6 * 1024 ** 3) }), [400, 'EntityTooLarge']);
  assert.deepEqual(await put('/bucket/new', { 'x-amz-checksum-crc32': 'x' }), [400, 'InvalidRequest']);
});

test('another expectation is refused 417', async () => {
  await using door = await aPublicBucket();
  assert.equal(statusOf(await door.raw(`${GET}Expect: the-inquisition\r\n\r\n`)), 417);
});
