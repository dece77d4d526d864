import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { aDoor, type TestDoor } from '../testing.ts';

async function aBucket(): Promise<TestDoor> {
  const door = await aDoor();
  await door.ask('PUT', '/bucket');
  return door;
}

const AS = { as: 'bearer' } as const;

test('an object is put, read, looked at and deleted with a token', async () => {
  await using door = await aBucket();
  const headers = { 'content-type': 'text/x', 'x-amz-meta-a': '1' };
  const put = await door.ask('PUT', '/bucket/a//b', { ...AS, body: 'hello', headers });
  const etag = `"${createHash('md5').update('hello').digest('hex')}"`;
  assert.deepEqual([put.status, put.headers['etag'], put.text], [201, etag, '']);
  const got = await door.ask('GET', '/bucket/a//b', AS);
  assert.deepEqual(
    [got.status, got.text, got.headers['content-type'], got.headers['x-amz-meta-a']],
    [200, 'hello', 'text/x', '1'],
  );
  const head = await door.ask('HEAD', '/bucket/a//b', AS);
  assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '5']);
  const range = await door.ask('GET', '/bucket/a//b', { ...AS, headers: { range: 'bytes=1-2' } });
  assert.deepEqual([range.status, range.text], [206, 'el']);
  assert.equal((await door.ask('GET', '/bucket/a//b', { ...AS, headers: { 'if-none-match': etag } })).status, 304);
  assert.equal((await door.ask('DELETE', '/bucket/a//b', AS)).status, 204);
  assert.equal((await door.ask('DELETE', '/bucket/a//b', AS)).status, 404);
});

test('both doors open on the same objects', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/k', { ...AS, body: 'plain' });
  assert.equal((await door.ask('GET', '/bucket/k')).text, 'plain');
  await door.ask('PUT', '/bucket/k', { body: 'signed' });
  assert.equal((await door.ask('GET', '/bucket/k', AS)).text, 'signed');
});

test('a wrong token is refused 401, whatever is asked, and nothing is stored', async () => {
  await using door = await aBucket();
  for (const token of ['Bearer wrong', 'bearer ', 'Bearer a b', `Bearer ${'x'.repeat(600)}`]) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const answer = await door.ask(method, '/bucket/k', { ...AS, headers: { authorization: token }, body: 'x' });
      assert.equal(answer.status, 401, token);
      assert.equal(answer.headers['www-authenticate'], 'Bearer');
    }
  }
  assert.equal((await door.ask('GET', '/bucket/k')).status, 404);
});

test('conditions and digests of a write are kept', async () => {
  await using door = await aBucket();
  const put = async (headers: Record<string, string>): Promise<number> =>
    (await door.ask('PUT', '/bucket/k', { ...AS, body: 'hello', headers })).status;
  assert.equal(await put({ 'content-md5': createHash('md5').update('jello').digest('base64') }), 400);
  assert.equal(await put({ 'if-none-match': '*' }), 201);
  assert.equal(await put({ 'if-none-match': '*' }), 412);
  assert.equal(await put({ 'if-match': '"no"' }), 412);
});

test('errors are one line, or JSON for those who ask for it', async () => {
  await using door = await aBucket();
  const line = await door.ask('GET', '/bucket/absent', AS);
  assert.deepEqual([line.status, line.text], [404, 'NoSuchKey: there is no such key\n']);
  const json = await door.ask('GET', '/bucket/absent', { ...AS, headers: { accept: 'application/json' } });
  const { code, requestId } = JSON.parse(json.text) as { code: string; requestId: string };
  assert.deepEqual([code, requestId], ['NoSuchKey', json.headers['x-amz-request-id']]);
  assert.equal((await door.ask('GET', '/absent/k', AS)).status, 404);
  assert.equal((await door.ask('GET', '/bucket', AS)).status, 404);
  assert.equal((await door.ask('GET', '/', AS)).status, 404);
  assert.equal((await door.ask('PUT', `/bucket/${'x'.repeat(1_025)}`, { ...AS, body: '' })).status, 400);
  const patch = await door.ask('PATCH', '/bucket/k', AS);
  assert.deepEqual([patch.status, patch.headers['allow']], [405, 'GET, HEAD, PUT, DELETE']);
});

test('a body of unknown length is refused 411', async () => {
  await using door = await aBucket();
  const { authorization } = door.headersFor('PUT', '/bucket/k', AS);
  const answer = await door.raw(
    `PUT /bucket/k HTTP/1.1\r\nHost: h\r\nAuthorization: ${authorization}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\n\r\n`,
  );
  assert.match(answer, /^HTTP\/1\.1 411 [^]*MissingContentLength/);
});
