import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { test } from 'node:test';
import fc from 'fast-check';
import { concat, systemClock, utf8, WebdfsError } from '@webdfs/base';
import { type LocalServer, seedOf, serveLocally } from '@webdfs/base/testing';
import { errorOf } from './answers.ts';
import { EtcdClient } from './client.ts';
import { linesOf } from './lines.ts';

/** A member that behaves as it is told. */
async function member(behaviour: RequestListener): Promise<LocalServer & { asked: () => number }> {
  let asked = 0;
  const server = await serveLocally((request, response) => {
    asked++;
    behaviour(request, response);
  });
  return { ...server, asked: () => asked };
}

const GOOD: RequestListener = (_request, response) => response.end('{"header":{"revision":"7"}}');
const SILENT: RequestListener = () => undefined;
const CUT: RequestListener = (request) => request.socket.destroy();
/** Nobody listens there. */
const NOBODY = '127.0.0.1:1';

function clientOf(hosts: readonly string[], timeoutMs = 2_000): EtcdClient {
  return new EtcdClient({ address: { hosts, tls: false }, clock: systemClock, timeoutMs });
}

test('what surely was not sent is sent to another member', async () => {
  await using good = await member(GOOD);
  using client = clientOf([NOBODY, good.host]);
  await client.call('kv/txn', {}, { repeatable: false });
  assert.equal(good.asked(), 1);
});

test('a transaction that may have happened is not sent again', async () => {
  await using cut = await member(CUT);
  await using good = await member(GOOD);
  using client = clientOf([cut.host, good.host]);
  await assert.rejects(
    client.call('kv/txn', {}, { repeatable: false }),
    (error) => error instanceof WebdfsError && error.code === 'UNAVAILABLE' && error.details['sent'] === true,
  );
  assert.deepEqual([cut.asked(), good.asked()], [1, 0]);
});

test('a read is asked of another member when one is silent, or cuts the connection', async () => {
  for (const behaviour of [SILENT, CUT]) {
    await using bad = await member(behaviour);
    await using good = await member(GOOD);
    using client = clientOf([bad.host, good.host]);
    await client.call('kv/range', {}, { repeatable: true });
    await client.call('kv/range', {}, { repeatable: true });
    assert.deepEqual([bad.asked(), good.asked()], [1, 2], 'the one that answered is asked first the next time');
  }
});

test('when nobody is there that is said in time', async () => {
  using client = clientOf([NOBODY, NOBODY], 300);
  await assert.rejects(
    client.call('kv/range', {}, { repeatable: true }),
    (error) => error instanceof WebdfsError && error.code === 'UNAVAILABLE' && error.details['sent'] === false,
  );
});

test('what is no answer of etcd is refused', async () => {
  for (const text of ['404 page not found', '[]', '', '7']) {
    await using odd = await member((_request, response) => response.end(text));
    using client = clientOf([odd.host]);
    await assert.rejects(client.call('kv/range', {}, { repeatable: false }), { code: 'WIRE_CORRUPT' }, text);
  }
});

test('an expired token is renewed, once, and the request sent again', async () => {
  let tokens = 0;
  await using etcd = await member((request, response) => {
    if (request.url === '/v3/auth/authenticate') {
      tokens++;
      response.end('{"token":"fresh"}');
    } else if (request.headers.authorization === 'fresh') response.end('{"done":true}');
    else
      response.end('{"error":"etcdserver: invalid auth token","message":"etcdserver: invalid auth token","code":16}');
  });
  const address = { hosts: [etcd.host], tls: false, user: 'u', password: 'p' };
  using client = new EtcdClient({ address, clock: systemClock });
  assert.equal((await client.call('kv/txn', {}, { repeatable: false }))['done'], true);
  assert.equal((await client.call('kv/txn', {}, { repeatable: false }))['done'], true);
  assert.equal(tokens, 1);
});

test('answers of every kind are no errors', () => {
  for (const answer of [{}, { header: {} }, { result: { created: true } }, { version: '3.6.1', leader: '1' }]) {
    assert.equal(errorOf(answer), undefined);
  }
});

test('errors of etcd, in the shapes of every version, have our codes, by its words where its number says too little', () => {
  const cases = [
    ['etcdserver: mvcc: required revision has been compacted', 11, 'COMPACTED'],
    ['etcdserver: mvcc: required revision is a future revision', 11, 'OLD_STORE'],
    ['etcdserver: mvcc: database space exceeded', 8, 'DISK_FULL'],
    ['etcdserver: too many requests', 8, 'BUSY'],
    ['etcdserver: request is too large', 3, 'TOO_LARGE'],
    ['etcdserver: duplicate key given in txn request', 3, 'INVALID'],
    ['etcdserver: requested lease not found', 5, 'NOT_FOUND'],
    ['etcdserver: lease already exists', 9, 'CONFLICT'],
    ['etcdserver: permission denied', 7, 'ACCESS_DENIED'],
    ['etcdserver: authentication failed, invalid user ID or password', 3, 'ACCESS_DENIED'],
    ['etcdserver: no leader', 14, 'UNAVAILABLE'],
    ['etcdserver: request timed out', 14, 'UNAVAILABLE'],
    ['something new', 2, 'UNAVAILABLE'],
  ] as const;
  for (const [text, number, code] of cases) {
    const shapes = [
      { error: text, message: text, code: number },
      { error: { message: text, grpc_code: number, http_code: 400 } },
      { code: number, message: text, details: [] },
      { error: { code: number, message: text, details: [] } },
    ];
    for (const shape of shapes) assert.equal(errorOf(shape)?.code, code, JSON.stringify(shape));
  }
});

async function* cutAt(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0;
  for (const cut of cuts) {
    yield bytes.subarray(from, from + cut);
    from += cut;
  }
  yield bytes.subarray(from);
}

test('lines come out as they went in, however the stream is cut', async (t) => {
  const objects = fc.array(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(objects, fc.array(fc.nat(30)), async (sent, cuts) => {
      const bytes = concat(sent.map((each) => utf8(`${JSON.stringify(each)}\n`)));
      const got: unknown[] = [];
      for await (const line of linesOf(cutAt(bytes, cuts), 10_000)) got.push(line);
      assert.equal(JSON.stringify(got), JSON.stringify(sent));
    }),
    { seed: seedOf(t), numRuns: 200 },
  );
});

test('a line without an end is given up at its limit', async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield new Uint8Array(100).fill(97);
  }
  await assert.rejects(
    async () => {
      for await (const _ of linesOf(endless(), 1_000)) assert.fail('there is no line');
    },
    { code: 'TOO_LARGE' },
  );
});
