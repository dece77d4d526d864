import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { BrokenInvariant, makeLog, SeededRandom, WebdfsError } from '@webdfs/base';
import type { ObjectStore } from '@webdfs/client';
import { openDoor } from './door.ts';
import type { Pieces } from './http/answer.ts';
import { MAX_PIPELINED, PACE_SECONDS } from './http/limits.ts';
import { aDoor, aPublicBucket, codeOf, eventually, replacing, statusOf } from './testing.ts';

/** The recipe's lines 10 to 18: bodies, answers, slow and vanishing clients, many requests, the end. */

const GET = 'GET /bucket/k HTTP/1.1\r\nHost: h\r\n';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A store whose `get` answers with these pieces. */
function answering(length: number, pieces: () => Pieces): (store: ObjectStore) => ObjectStore {
  return (store) =>
    replacing(store, {
      get: async (...asked) => ({ ...(await store.get(...asked)), offset: 0, length, body: pieces() }),
    });
}

// ---- 10: slow clients, and too many ----

test('a body that does not advance is given up, and leaves nothing', async () => {
  await using door = await aPublicBucket();
  const connection = door.connect();
  connection.write(
    `${door.head('PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 200000\r\n\r\n${'x'.repeat(1_000)}`,
  );
  while (!connection.received.includes('</Error>')) {
    door.clock.advance(1_000);
    await turn();
  }
  const answer = connection.received;
  assert.deepEqual([statusOf(answer), codeOf(answer)], [400, 'RequestTimeout']);
  door.clock.advance(PACE_SECONDS * 1_000);
  await connection.untilClose();
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
});

test('a body that advances is waited for, however long it takes', async () => {
  await using door = await aPublicBucket();
  const connection = door.connect();
  const { bytesWritten } = connection.socket;
  connection.write(`${door.head('PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 300000\r\n\r\n`);
  await eventually(() => door.door.active === 1);
  for (let sent = 0; sent < 300_000; sent += 100_000) {
    for (let i = 0; i < PACE_SECONDS - 1; i++) door.clock.advance(1_000);
    connection.write(Buffer.alloc(100_000));
    await eventually(
      () => connection.socket.bytesWritten - bytesWritten >= sent && connection.socket.writableLength === 0,
    );
    for (let i = 0; i < 50; i++) await turn();
    door.clock.advance(1_000);
  }
  assert.equal(statusOf(await connection.until(/\r\n\r\n/)), 200);
});

test('an answer that nobody reads is given up', async () => {
  await using door = await aPublicBucket();
  const bytes = Buffer.alloc(32 * 1024 ** 2);
  await door.store.put('bucket', Buffer.from('large'), bytes, { facts: { headers: {}, user: {} } });
  const connection = door.connect();
  connection.socket.pause();
  connection.write('GET /bucket/large HTTP/1.1\r\nHost: h\r\n\r\n');
  await eventually(() => door.door.active === 1);
  while (door.door.active > 0) {
    door.clock.advance(1_000);
    await turn();
  }
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
  await using door = await aPublicBucket({ limits: { requests: 2 }, wrap: gate.wrap });
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
  await using door = await aPublicBucket({ sizes: { inlineBytes: 1_000, blockBytes: 65_536 } });
  const whole = `${door.head('PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`;
  for (const end of [10, 200, 500, whole.length - 200_000, whole.length - 150_000, whole.length - 1]) {
    const connection = door.connect();
    connection.write(whole.slice(0, end));
    await eventually(() => connection.socket.writableLength === 0 && !connection.socket.connecting);
    for (let i = 0; i < 20; i++) await turn();
    connection.socket.destroy();
    await eventually(() => door.door.active === 0);
  }
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
  assert.equal((await door.ask('GET', '/bucket/k')).text, 'hello');
});

test('a refusal reaches a client that is still sending', async () => {
  await using door = await aPublicBucket();
  const connection = door.connect();
  const head = `${door.head('PUT', '/absent/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 50000000\r\n\r\n`;
  connection.write(head);
  connection.write(Buffer.alloc(5_000_000));
  const answer = await connection.until(/<\/Error>/);
  assert.deepEqual([statusOf(answer), codeOf(answer)], [404, 'NoSuchBucket']);
  for (let i = 0; i < 10; i++) door.clock.advance(1_000);
  await connection.untilClose();
});

test('a refused body that is small is passed over, and the connection lives', async () => {
  await using door = await aPublicBucket();
  const connection = door.connect();
  const headers = { 'x-amz-checksum-crc32': 'no checksum' };
  connection.write(`${door.head('PUT', '/bucket/new', { headers })}Content-Length: 5\r\n\r\nabc`);
  assert.equal(codeOf(await connection.until(/<\/Error>/)), 'InvalidRequest');
  connection.write(`de${GET}\r\n`);
  assert.match(await connection.until(/hello/), /hello$/);
});

// ---- 13 and 14: answering ----

test('every answer to GET, HEAD and PUT announces its length', async () => {
  await using door = await aPublicBucket();
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
  await using door = await aPublicBucket({ wrap });
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
  await using door = await aPublicBucket({ wrap });
  const answer = await door.ask('GET', '/bucket/k');
  assert.deepEqual([answer.status, answer.code, answer.headers['retry-after']], [503, 'SlowDown', '3']);
});

// ---- 15: the client is gone ----

test('a client that goes away cancels what was begun for it', async () => {
  const gate = stopped();
  await using door = await aPublicBucket({ wrap: gate.wrap });
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
  await using door = await aPublicBucket({ wrap });
  const connection = door.connect();
  connection.socket.pause();
  connection.write(`${GET}\r\n`);
  await eventually(() => pulled > 2);
  for (let i = 0; i < 100; i++) await turn();
  assert.ok(held <= 2, `${held} pieces in flight`);
  connection.socket.destroy();
  await eventually(() => held === 0 && closed && door.door.active === 0);
});

// ---- 16: half-close and pipelining ----

test('a client may close its half after the request', async () => {
  await using door = await aPublicBucket();
  const connection = door.connect();
  connection.socket.end(`${GET}\r\n`);
  assert.match(await connection.untilClose(), /hello$/);
});

test('the end of input inside a body is an abort', async () => {
  await using door = await aPublicBucket();
  const connection = door.connect();
  connection.socket.end(
    `${door.head('PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 10\r\n\r\nabc`,
  );
  await connection.untilClose();
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
});

test('requests sent ahead are served one after another, effects included', async () => {
  await using door = await aPublicBucket();
  const puts = Array.from({ length: 20 }, (_, i) => {
    const body = String(i);
    return `${door.head('PUT', '/bucket/last', { body })}Content-Length: ${body.length}\r\n\r\n${body}`;
  });
  const connection = door.connect();
  connection.write(`${puts.join('')}GET /bucket/last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
  const answer = await connection.untilClose();
  assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, 21);
  assert.match(answer, /\r\n\r\n19$/);
});

test('what follows a request and is none is refused only after the request was answered', async () => {
  await using door = await aPublicBucket();
  const head = `${door.head('PUT', '/bucket/new', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 3\r\n\r\n`;
  const answers = await door.raw(`${head}abcdef\r\n\r\n`);
  assert.deepEqual(
    [...answers.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((it) => it[1]),
    ['200', '400'],
  );
  assert.equal((await door.ask('GET', '/bucket/new')).text, 'abc');
});

test('a body that is no longer one in the middle is refused at once, with all that was sent ahead behind it', async () => {
  await using door = await aPublicBucket();
  const head = door.head('PUT', '/bucket/new', {
    payload: 'UNSIGNED-PAYLOAD',
    headers: { 'x-amz-decoded-content-length': '5' },
  });
  const answers = await door.raw(`${GET}\r\n${head}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\nnonsense\r\n`);
  assert.deepEqual(
    [...answers.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((it) => it[1]),
    ['200', '400'],
  );
  assert.equal((await door.ask('GET', '/bucket/new')).status, 404);
});

test('thousands of requests sent ahead are all answered', async () => {
  await using door = await aPublicBucket();
  const count = 3_000;
  const connection = door.connect();
  const request = 'HEAD /bucket/k HTTP/1.1\r\nHost: h\r\n\r\n';
  connection.write(request.repeat(count));
  connection.write('GET /bucket/k HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
  const answer = await connection.untilClose();
  assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, count + 1);
});

// ---- 17 and 18: ends and names ----

test('requests beyond what may wait are left in the network until there is room, bodies or not', async () => {
  const slow = (store: ObjectStore): ObjectStore =>
    replacing(store, {
      head: async (...asked) => {
        await turn();
        return await store.head(...asked);
      },
    });
  await using door = await aPublicBucket({ wrap: slow });
  const connection = door.connect();
  const padding = `X-Padding: ${'x'.repeat(100)}\r\n`;
  const put = `${door.head('PUT', '/bucket/p', { payload: 'UNSIGNED-PAYLOAD' })}Content-Length: 1\r\n\r\nx`;
  const head = `HEAD /bucket/k HTTP/1.1\r\nHost: h\r\n${padding}\r\n`;
  const times = MAX_PIPELINED + 1_024;
  connection.write((put + head.repeat(63)).repeat(times / 64));
  connection.write('GET /bucket/k HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
  const answers = await connection.untilClose();
  assert.equal(answers.match(/HTTP\/1\.1 200/g)?.length, times + 1);
});

test('a door that closes finishes what it serves, says so, and takes no more', async () => {
  const gate = stopped();
  await using door = await aPublicBucket({ wrap: gate.wrap });
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
  await using door = await aPublicBucket({ wrap: gate.wrap });
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
  await using door = await aPublicBucket();
  const ids = new Set<unknown>();
  for (let i = 0; i < 10; i++) ids.add((await door.ask('GET', '/bucket/k')).headers['x-amz-request-id']);
  assert.equal(ids.size, 10);
});

test('a port that is taken is a clear error', async () => {
  await using door = await aPublicBucket();
  const { store, keys, clock } = door;
  const second = openDoor({ store, keys, clock, random: new SeededRandom(2), host: '127.0.0.1', port: door.door.port });
  await assert.rejects(second, /cannot listen on 127\.0\.0\.1:\d+/);
});

test('two doors share a port when both are told to', async () => {
  await using door = await aPublicBucket();
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
  await using door = await aPublicBucket({
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
  await using door = await aPublicBucket();
  const body = 'x'.repeat(100_000);
  const put = `${door.head('PUT', '/bucket/big', { body })}Content-Length: ${body.length}\r\n\r\n${body}`;
  const connection = door.connect();
  connection.write(`${put}${put}GET /bucket/big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
  const answer = await connection.untilClose();
  const etag = createHash('md5').update(body).digest('hex');
  assert.equal(answer.split(`ETag: "${etag}"`).length, 4);
});
