import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { BrokenInvariant, makeLog, SeededRandom, WebdfsError } from '@webdfs/base';
import type { ObjectStore } from '@webdfs/client';
import { openDoor } from './door.ts';
import type { Pieces } from './http/answer.ts';
import { MAX_HEADERS, PACE_SECONDS } from './http/limits.ts';
import { aDoor, eventually, replacing, type TestDoor } from './testing.ts';

/** One test, or more, for each numbered line of the recipe for an HTTP door; on bare sockets, so that nothing is mended on the way. */

async function aBucket(options: Parameters<typeof aDoor>[0] = {}): Promise<TestDoor> {
  const door = await aDoor(options);
  await door.ask('PUT', '/bucket');
  await door.ask('PUT', '/bucket', { query: { acl: '' }, headers: { 'x-amz-acl': 'public-read' } });
  await door.ask('PUT', '/bucket/k', { body: 'hello' });
  return door;
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
const codeOf = (answer: string): string | undefined => /<Code>([^<]*)/.exec(answer)?.[1];

/** A request as text, with the headers of a signature. */
function signedText(door: TestDoor, method: string, path: string, ask: Parameters<TestDoor['signed']>[2] = {}): string {
  const headers = Object.entries(door.signed(method, path, ask)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${headers.join('')}`;
}

const GET = 'GET /bucket/k HTTP/1.1\r\nHost: h\r\n';

/** A store whose `get` answers with these pieces. */
function answering(length: number, pieces: () => Pieces): (store: ObjectStore) => ObjectStore {
  return (store) =>
    replacing(store, {
      get: async (...asked) => ({ ...(await store.get(...asked)), offset: 0, length, body: pieces() }),
    });
}

// ---- 1 and 2: the server and its listeners ----

test('headers that are too many or too large are refused 431', async () => {
  await using door = await aBucket();
  const many = Array.from({ length: MAX_HEADERS + 1 }, (_, i) => `h${i}: v\r\n`).join('');
  for (const headers of [many, `big: ${'x'.repeat(40_000)}\r\n`]) {
    const answer = await door.raw(`${GET}${headers}\r\n`);
    assert.deepEqual([statusOf(answer), codeOf(answer)], [431, 'RequestHeaderSectionTooLarge']);
    assert.match(answer, /\r\nConnection: close\r\n/);
  }
});

test('headers up to the limits are accepted', async () => {
  await using door = await aBucket();
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
  await using door = await aBucket();
  assert.equal(statusOf(await door.raw('CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n')), 405);
  const offered = await door.raw(`${GET}Connection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n`);
  assert.match(offered, /^HTTP\/1\.1 200 [^]*hello$/);
});

// ---- 3: the target ----

test('the absolute form is served, and its authority is the host', async () => {
  await using door = await aBucket();
  const plain = await door.raw('GET http://h/bucket/k HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
  assert.match(plain, /hello$/);
  const hosted = await door.raw('GET http://bucket.localhost/k HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n');
  assert.match(hosted, /hello$/);
});

test('targets that are none are refused 400', async () => {
  await using door = await aBucket();
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
  await using door = await aBucket();
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
  await using door = await aBucket();
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
  await using door = await aBucket();
  for (const coding of ['identity, chunked', 'gzip, chunked', 'identity']) {
    const answer = await door.raw(
      `${signedText(door, 'PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Transfer-Encoding: ${coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    );
    assert.ok([400, 501].includes(statusOf(answer)), `${coding}: ${answer}`);
    assert.match(answer, /Connection: close/);
  }
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
});

test('a body in chunks needs its decoded length, and then is taken', async () => {
  await using door = await aBucket();
  const put = (headers: Record<string, string>): string =>
    `${signedText(door, 'PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD', headers })}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n`;
  const without = await door.raw(put({}));
  assert.deepEqual([statusOf(without), codeOf(without)], [411, 'MissingContentLength']);
  const wrong = await door.raw(put({ 'x-amz-decoded-content-length': '4' }));
  assert.equal(codeOf(wrong), 'IncompleteBody');
  assert.equal(statusOf(await door.raw(put({ 'x-amz-decoded-content-length': '3' }))), 200);
  assert.equal((await door.ask('GET', '/bucket/new')).text, 'abc');
});

// ---- 8: Expect ----

test('100 Continue is said after the signature is right, and not before', async () => {
  await using door = await aBucket();
  const headers = { 'content-length': '5', expect: '100-continue' };
  const good = door.connect();
  good.write(`${signedText(door, 'PUT', '/bucket/new', { body: 'world', headers })}\r\n`);
  assert.match(await good.until(/\r\n\r\n/), /^HTTP\/1\.1 100 Continue\r\n\r\n$/);
  good.write('world');
  assert.match(await good.until(/200 OK[^]*\r\n\r\n/), /200 OK/);
  const bad = await door.raw(
    `${signedText(door, 'PUT', '/bucket/new2', { body: 'world', headers }).replace(/Signature=./, 'Signature=')}\r\n`,
  );
  assert.doesNotMatch(bad, /100 Continue/);
  assert.equal(statusOf(bad), 400);
  assert.match(bad, /\r\nConnection: close\r\n/);
});

test('what can be refused without the body is refused before it is asked for', async () => {
  await using door = await aBucket();
  const headers = { 'content-length': '5', expect: '100-continue' };
  const put = async (path: string, more: Record<string, string>): Promise<[number, string | undefined]> => {
    const answer = await door.raw(
      `${signedText(door, 'PUT', path, { body: 'world', headers: { ...headers, ...more } })}\r\n`,
    );
    return [statusOf(answer), codeOf(answer)];
  };
  assert.deepEqual(await put('/absent/k', {}), [404, 'NoSuchBucket']);
  assert.deepEqual(await put('/bucket/k', { 'if-none-match': '*' }), [412, 'PreconditionFailed']);
  assert.deepEqual(await put(`/bucket/${'x'.repeat(1_025)}`, {}), [400, 'KeyTooLongError']);
  assert.deepEqual(await put('/bucket/new', { 'content-length': String(6 * 1024 ** 3) }), [400, 'EntityTooLarge']);
  assert.deepEqual(await put('/bucket/new', { 'x-amz-checksum-crc32': 'x' }), [400, 'InvalidRequest']);
});

test('another expectation is refused 417', async () => {
  await using door = await aBucket();
  assert.equal(statusOf(await door.raw(`${GET}Expect: the-inquisition\r\n\r\n`)), 417);
});

// ---- 10: slow clients, and too many ----

test('a body that does not advance is given up, and leaves nothing', async () => {
  await using door = await aBucket();
  const connection = door.connect();
  connection.write(
    `${signedText(door, 'PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 200000\r\n\r\n${'x'.repeat(1_000)}`,
  );
  await eventually(() => door.door.active === 1);
  // the body is being waited for once the wheel turns for it
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < PACE_SECONDS; i++) door.clock.advance(1_000);
  const answer = await connection.until(/<\/Error>/);
  assert.deepEqual([statusOf(answer), codeOf(answer)], [400, 'RequestTimeout']);
  for (let i = 0; i < PACE_SECONDS; i++) door.clock.advance(1_000);
  await connection.untilClose();
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
});

test('a body that advances is waited for, however long it takes', async () => {
  await using door = await aBucket();
  const connection = door.connect();
  const { bytesWritten } = connection.socket;
  connection.write(
    `${signedText(door, 'PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 300000\r\n\r\n`,
  );
  await eventually(() => door.door.active === 1);
  for (let sent = 0; sent < 300_000; sent += 100_000) {
    for (let i = 0; i < PACE_SECONDS - 1; i++) door.clock.advance(1_000);
    connection.write(Buffer.alloc(100_000));
    await eventually(
      () => connection.socket.bytesWritten - bytesWritten >= sent && connection.socket.writableLength === 0,
    );
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    door.clock.advance(1_000);
  }
  assert.equal(statusOf(await connection.until(/\r\n\r\n/)), 200);
});

test('an answer that nobody reads is given up', async () => {
  await using door = await aBucket();
  const bytes = Buffer.alloc(32 * 1024 ** 2);
  await door.store.put('bucket', Buffer.from('large'), bytes, { facts: { headers: {}, user: {} } });
  const connection = door.connect();
  connection.socket.pause();
  connection.write('GET /bucket/large HTTP/1.1\r\nHost: h\r\n\r\n');
  await eventually(() => door.door.active === 1);
  // until nothing moves: the kernel's buffers are full
  for (let i = 0; i < 200; i++) await new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < PACE_SECONDS * 4 + 1; i++) door.clock.advance(1_000);
  await eventually(() => door.door.active === 0);
});

test('one connection too many is answered 503 and closed', async () => {
  await using door = await aDoor({ limits: { connections: 1 } });
  const first = door.connect();
  first.write('GET / HTTP/1.1\r\nHost: h\r\n\r\n');
  await first.until(/<\/Error>/);
  const second = await door.raw('');
  assert.deepEqual([statusOf(second), codeOf(second)], [503, 'SlowDown']);
  assert.match(second, /\r\nRetry-After: 1\r\n[^]*Connection: close\r\n/);
});

/** A store that answers `get` when it is let go. */
function stopped(): { wrap: (store: ObjectStore) => ObjectStore; letGo: () => void; signals: AbortSignal[] } {
  const waiting: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  const letGo = (): void => {
    for (const wake of waiting.splice(0)) wake();
  };
  const wrap = (store: ObjectStore): ObjectStore =>
    replacing(store, {
      get: async (bucket, key, options) => {
        if (options?.signal !== undefined) signals.push(options.signal);
        await new Promise<void>((resolve) => waiting.push(resolve));
        return await store.get(bucket, key, options);
      },
    });
  return { signals, letGo, wrap };
}

test('one request too many is answered 503, and the others go on', async () => {
  const gate = stopped();
  await using door = await aBucket({ limits: { requests: 2 }, wrap: gate.wrap });
  const two = [door.ask('GET', '/bucket/k'), door.ask('GET', '/bucket/k')];
  await eventually(() => gate.signals.length === 2);
  const third = await door.raw(`${GET}\r\n`);
  assert.deepEqual([statusOf(third), codeOf(third)], [503, 'SlowDown']);
  assert.match(third, /\r\nRetry-After: 1\r\n/);
  gate.letGo();
  for (const answer of await Promise.all(two)) assert.equal(answer.text, 'hello');
});

// ---- 11: taking a body ----

test('an upload that is cut at any stage leaves no object and takes no door down', async () => {
  await using door = await aBucket({ sizes: { inlineBytes: 1_000, blockBytes: 65_536 } });
  const whole = `${signedText(door, 'PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`;
  for (const end of [10, 200, 500, whole.length - 200_000, whole.length - 150_000, whole.length - 1]) {
    const connection = door.connect();
    connection.write(whole.slice(0, end));
    await eventually(() => connection.socket.writableLength === 0 && !connection.socket.connecting);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    connection.socket.destroy();
    await eventually(() => door.door.active === 0);
  }
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
  assert.equal((await door.ask('GET', '/bucket/k')).text, 'hello');
});

test('a refusal reaches a client that is still sending', async () => {
  await using door = await aBucket();
  const connection = door.connect();
  const head = `${signedText(door, 'PUT', '/absent/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 50000000\r\n\r\n`;
  connection.write(head);
  connection.write(Buffer.alloc(5_000_000));
  const answer = await connection.until(/<\/Error>/);
  assert.deepEqual([statusOf(answer), codeOf(answer)], [404, 'NoSuchBucket']);
  for (let i = 0; i < 10; i++) door.clock.advance(1_000);
  await connection.untilClose();
});

test('a refused body that is small is passed over, and the connection lives', async () => {
  await using door = await aBucket();
  const connection = door.connect();
  const headers = { 'x-amz-checksum-crc32': 'no checksum' };
  connection.write(`${signedText(door, 'PUT', '/bucket/new', { headers })}Content-Length: 5\r\n\r\nabc`);
  assert.equal(codeOf(await connection.until(/<\/Error>/)), 'InvalidRequest');
  connection.write(`de${GET}\r\n`);
  assert.match(await connection.until(/hello/), /hello$/);
});

// ---- 13 and 14: answering ----

test('every answer to GET, HEAD and PUT announces its length', async () => {
  await using door = await aBucket();
  for (const [method, path] of [
    ['GET', '/bucket/k'],
    ['HEAD', '/bucket/k'],
    ['PUT', '/bucket/k'],
    ['GET', '/bucket'],
    ['GET', '/absent/k'],
    ['HEAD', '/absent/k'],
  ] as const) {
    assert.match(String((await door.ask(method, path)).headers['content-length']), /^\d+$/, `${method} ${path}`);
  }
});

test('an error after the head ends the connection with a body that is too short', async () => {
  let released = 0;
  const pieces = async function* (): AsyncGenerator<{ bytes: Uint8Array; hold: () => void; release: () => void }> {
    yield { bytes: Buffer.from('12345'), hold: () => undefined, release: () => released++ };
    // the head and the piece leave
    await eventually(() => released === 1);
    throw new Error('the disk broke');
  };
  const wrap = answering(10, pieces);
  await using door = await aBucket({ wrap });
  const answer = await door.raw(`${GET}\r\n`);
  assert.match(answer, /^HTTP\/1\.1 200 [^]*Content-Length: 10\r\n/i);
  assert.doesNotMatch(answer, /<Error>/);
  assert.ok(answer.split('\r\n\r\n')[1]!.length < 10);
  assert.equal(released, 1);
  assert.equal((await door.ask('HEAD', '/bucket/k')).status, 200);
});

test('an error before the first piece is still an answer', async () => {
  const failed = new WebdfsError('UNAVAILABLE', 'no member answers', { retryAfterMs: 2_500 });
  const pieces = (): AsyncIterable<never> => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(failed) }),
  });
  const wrap = answering(10, pieces);
  await using door = await aBucket({ wrap });
  const answer = await door.ask('GET', '/bucket/k');
  assert.deepEqual([answer.status, answer.code, answer.headers['retry-after']], [503, 'SlowDown', '3']);
});

// ---- 15: the client is gone ----

test('a client that goes away cancels what was begun for it', async () => {
  const gate = stopped();
  await using door = await aBucket({ wrap: gate.wrap });
  const connection = door.connect();
  connection.write(`${GET}\r\n`);
  await eventually(() => gate.signals.length === 1);
  connection.socket.destroy();
  await eventually(() => gate.signals[0]!.aborted);
  gate.letGo();
  await eventually(() => door.door.active === 0);
});

test('pieces that a gone client did not read are given back', async () => {
  let held = 0;
  let pulled = 0;
  let closed = false;
  const pieces = async function* (): AsyncGenerator<{ bytes: Uint8Array; hold: () => void; release: () => void }> {
    try {
      for (;;) {
        held += 1;
        pulled += 1;
        await Promise.resolve();
        yield { bytes: Buffer.alloc(1024 ** 2), hold: () => undefined, release: () => (held -= 1) };
      }
    } finally {
      closed = true;
    }
  };
  const wrap = answering(1024 ** 3, pieces);
  await using door = await aBucket({ wrap });
  const connection = door.connect();
  connection.socket.pause();
  connection.write(`${GET}\r\n`);
  await eventually(() => pulled > 2);
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(held <= 2, `${held} pieces in flight`);
  connection.socket.destroy();
  await eventually(() => held === 0 && closed && door.door.active === 0);
});

// ---- 16: half-close and pipelining ----

test('a client may close its half after the request', async () => {
  await using door = await aBucket();
  const connection = door.connect();
  connection.socket.end(`${GET}\r\n`);
  assert.match(await connection.untilClose(), /hello$/);
});

test('the end of input inside a body is an abort', async () => {
  await using door = await aBucket();
  const connection = door.connect();
  connection.socket.end(
    `${signedText(door, 'PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 10\r\n\r\nabc`,
  );
  await connection.untilClose();
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
});

test('requests sent ahead are served one after another, effects included', async () => {
  await using door = await aBucket();
  const puts = Array.from({ length: 20 }, (_, i) => {
    const body = String(i);
    return `${signedText(door, 'PUT', '/bucket/last', { body })}Content-Length: ${body.length}\r\n\r\n${body}`;
  });
  const connection = door.connect();
  connection.write(`${puts.join('')}GET /bucket/last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
  const answer = await connection.untilClose();
  assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, 21);
  assert.match(answer, /\r\n\r\n19$/);
});

test('thousands of requests sent ahead are all answered', async () => {
  await using door = await aBucket();
  const count = 3_000;
  const connection = door.connect();
  const request = 'HEAD /bucket/k HTTP/1.1\r\nHost: h\r\n\r\n';
  connection.write(request.repeat(count));
  connection.write('GET /bucket/k HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
  const answer = await connection.untilClose();
  assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, count + 1);
});

// ---- 17 and 18: ends and names ----

test('a door that closes finishes what it serves, says so, and takes no more', async () => {
  const gate = stopped();
  await using door = await aBucket({ wrap: gate.wrap });
  const connection = door.connect();
  connection.write(`${GET}\r\n`);
  await eventually(() => gate.signals.length === 1);
  const closed = door.door.close(60_000);
  gate.letGo();
  const answer = await connection.untilClose();
  assert.match(answer, /\r\nConnection: close\r\n[^]*hello$/);
  await closed;
  await assert.rejects(door.ask('GET', '/bucket/k'));
});

test('a door that closes waits no longer than its grace', async () => {
  const gate = stopped();
  await using door = await aBucket({ wrap: gate.wrap });
  const connection = door.connect();
  connection.write(`${GET}\r\n`);
  await eventually(() => gate.signals.length === 1);
  const closed = door.door.close(500);
  door.clock.advance(500);
  await closed;
  assert.equal(await connection.untilClose(), '');
  gate.letGo();
});

test('every request has its own id', async () => {
  await using door = await aBucket();
  const ids = new Set<unknown>();
  for (let i = 0; i < 10; i++) ids.add((await door.ask('GET', '/bucket/k')).headers['x-amz-request-id']);
  assert.equal(ids.size, 10);
});

test('a port that is taken is a clear error', async () => {
  await using door = await aBucket();
  const { store, keys, clock } = door;
  const second = openDoor({ store, keys, clock, random: new SeededRandom(2), host: '127.0.0.1', port: door.door.port });
  await assert.rejects(second, /cannot listen on 127\.0\.0\.1:\d+/);
});

test('two doors share a port when both are told to', async () => {
  await using door = await aBucket();
  const { store, keys, clock } = door;
  const options = { store, keys, clock, random: new SeededRandom(2), host: '127.0.0.1', reusePort: true } as const;
  const first = await openDoor({ ...options, port: 0 });
  const second = await openDoor({ ...options, port: first.port });
  assert.equal(second.port, first.port);
  const closed = Promise.all([first.close(0), second.close(0)]);
  clock.advance(1);
  await closed;
});

test('a bug answers 500 and is told, without its words', async () => {
  const lines: string[] = [];
  const broken: Error[] = [];
  const wrap = (store: ObjectStore): ObjectStore =>
    replacing(store, { head: () => Promise.reject(new BrokenInvariant('two and two are four')) });
  await using door = await aBucket({
    wrap,
    log: makeLog({ write: (line) => lines.push(line), now: () => 0 }),
    onBroken: (error) => broken.push(error),
  });
  const answer = await door.ask('GET', '/bucket/k', { query: { tagging: '' } });
  assert.deepEqual([answer.status, answer.code], [500, 'InternalError']);
  assert.doesNotMatch(answer.text, /two and two/);
  assert.equal(broken.length, 1);
  assert.match(lines.join(''), /two and two are four/);
});

test('the body of a request is what its hash says, even when it waits behind others', async () => {
  await using door = await aBucket();
  const body = 'x'.repeat(100_000);
  const put = `${signedText(door, 'PUT', '/bucket/big', { body })}Content-Length: ${body.length}\r\n\r\n${body}`;
  const connection = door.connect();
  connection.write(`${put}${put}GET /bucket/big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
  const answer = await connection.untilClose();
  const etag = createHash('md5').update(body).digest('hex');
  assert.equal(answer.split(`ETag: "${etag}"`).length, 4);
});
