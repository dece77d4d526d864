import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { aDoor, type TestDoor } from '../testing.ts';
import { presign } from './signer.ts';
import { KEY } from '../testing.ts';

const md5 = (bytes: Uint8Array | string): string => createHash('md5').update(bytes).digest('hex');
const element = (text: string, name: string): string | undefined =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1];
const elements = (text: string, name: string): string[] =>
  [...text.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map((it) => it[1]!);

async function aBucket(options: Parameters<typeof aDoor>[0] = {}): Promise<TestDoor> {
  const door = await aDoor(options);
  await door.ask('PUT', '/bucket');
  return door;
}

test('a bucket is made, found, listed and deleted', async () => {
  await using door = await aDoor();
  const made = await door.ask('PUT', '/bucket');
  assert.equal(made.status, 200);
  assert.equal(made.headers['location'], '/bucket');
  assert.equal((await door.ask('HEAD', '/bucket')).headers['x-amz-bucket-region'], 'us-east-1');
  assert.deepEqual(elements((await door.ask('GET', '/')).text, 'Name'), ['bucket']);
  assert.equal((await door.ask('PUT', '/bucket')).code, 'BucketAlreadyOwnedByYou');
  assert.equal((await door.ask('DELETE', '/bucket')).status, 204);
  assert.equal((await door.ask('HEAD', '/bucket')).status, 404);
  assert.equal((await door.ask('DELETE', '/bucket')).code, 'NoSuchBucket');
});

test('buckets are listed in pages, by prefix', async () => {
  await using door = await aDoor();
  for (const name of ['aa-2', 'aa-1', 'bbb', 'aa-3']) await door.ask('PUT', `/${name}`);
  const first = await door.ask('GET', '/', { query: { prefix: 'aa', 'max-buckets': '2' } });
  assert.deepEqual(elements(first.text, 'Name'), ['aa-1', 'aa-2']);
  const token = element(first.text, 'ContinuationToken')!;
  const second = await door.ask('GET', '/', {
    query: { prefix: 'aa', 'max-buckets': '2', 'continuation-token': token },
  });
  assert.deepEqual(elements(second.text, 'Name'), ['aa-3']);
  assert.equal(element(second.text, 'ContinuationToken'), undefined);
});

test('any region may be named, and is told again', async () => {
  await using door = await aDoor();
  const body = '<CreateBucketConfiguration><LocationConstraint>mars-1</LocationConstraint></CreateBucketConfiguration>';
  assert.equal((await door.ask('PUT', '/mars', { body })).status, 200);
  assert.match((await door.ask('GET', '/mars', { query: { location: '' } })).text, />mars-1<\/LocationConstraint>/);
  await door.ask('PUT', '/earth');
  assert.match((await door.ask('GET', '/earth', { query: { location: '' } })).text, /<LocationConstraint [^>]*><\/Loc/);
  assert.equal((await door.ask('PUT', '/bad', { body: '<Create' })).code, 'MalformedXML');
});

test('names that S3 does not allow are refused', async () => {
  await using door = await aDoor();
  for (const name of [
    'ab',
    'Upper',
    '192.168.0.1',
    'a..b',
    'a.-b',
    'a-.b',
    '-ab',
    'ab-',
    'xn--abc',
    'a_b',
    'x'.repeat(64),
  ]) {
    assert.equal((await door.ask('PUT', `/${name}`)).code, 'InvalidBucketName', name);
  }
});

test('an access list that S3 does not know is nonsense, one that it knows is not built', async () => {
  await using door = await aBucket();
  const code = async (path: string, acl: string, query = {}): Promise<string | undefined> =>
    (await door.ask('PUT', path, { query, headers: { 'x-amz-acl': acl } })).code;
  assert.equal(await code('/other', 'public-ready'), 'InvalidArgument');
  assert.equal(await code('/other', 'public-read-write'), 'NotImplemented');
  assert.equal(await code('/bucket', 'public-ready', { acl: '' }), 'InvalidArgument');
  assert.equal(await code('/bucket/k', 'public-ready'), 'InvalidArgument');
  assert.equal(await code('/bucket/k', 'public-read'), 'AccessControlListNotSupported');
});

test('a bucket with objects is not deleted', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/k', { body: 'x' });
  const answer = await door.ask('DELETE', '/bucket');
  assert.deepEqual([answer.status, answer.code], [409, 'BucketNotEmpty']);
});

test('an object comes back as it was put: bytes, ETag, headers, metadata', async () => {
  await using door = await aBucket();
  const headers = {
    'content-type': 'text/plain',
    'cache-control': 'no-store',
    'content-encoding': 'aws-chunked,gzip',
    'content-disposition': 'attachment',
    'content-language': 'de',
    expires: 'Thu, 01 Dec 1994 16:00:00 GMT',
    'x-amz-meta-one': 'a  b',
    'x-amz-meta-two': Buffer.from('grüße').toString('latin1'),
  };
  const put = await door.ask('PUT', '/bucket/k', { body: 'hello', headers });
  assert.deepEqual([put.status, put.headers['etag'], put.headers['content-length']], [200, `"${md5('hello')}"`, '0']);
  for (const method of ['GET', 'HEAD']) {
    const got = await door.ask(method, '/bucket/k');
    assert.equal(got.status, 200);
    assert.equal(got.text, method === 'GET' ? 'hello' : '');
    assert.equal(got.headers['content-length'], '5');
    assert.equal(got.headers['content-encoding'], 'gzip');
    for (const name of [
      'content-type',
      'cache-control',
      'content-disposition',
      'content-language',
      'expires',
    ] as const) {
      assert.equal(got.headers[name], headers[name]);
    }
    assert.equal(got.headers['x-amz-meta-one'], 'a  b');
    assert.equal(got.headers['x-amz-meta-two'], headers['x-amz-meta-two']);
    assert.equal(got.headers['etag'], `"${md5('hello')}"`);
    assert.equal(got.headers['last-modified'], new Date(door.clock.now()).toUTCString());
    assert.match(String(got.headers['x-amz-request-id']), /^[0-9A-F]{16}$/);
    assert.ok(got.headers['x-amz-id-2']);
  }
});

test('metadata and encodings come back as the bytes that they were, UTF-8 or not', async () => {
  await using door = await aBucket();
  for (const value of ['caf\xe9', 'caf\xc3\xa9', '\xff\xfe', 'a, b,c']) {
    await door.ask('PUT', '/bucket/k', { headers: { 'x-amz-meta-a': value, 'content-encoding': 'deflate, gzip' } });
    const { headers } = await door.ask('HEAD', '/bucket/k');
    assert.deepEqual([headers['x-amz-meta-a'], headers['content-encoding']], [value, 'deflate, gzip']);
  }
});

test('a body without a length is refused, an expectation of nothing is not', async () => {
  await using door = await aBucket();
  const head = door.head('PUT', '/bucket/k', { payload: 'UNSIGNED-PAYLOAD' });
  assert.match(await door.raw(`${head}Connection: close\r\n\r\n`), /^HTTP\/1\.1 411 .*<Code>MissingContentLength</s);
  const rest = 'Expect: \r\nConnection: close\r\nContent-Length: 2\r\n\r\nab';
  assert.match(await door.raw(head + rest), /^HTTP\/1\.1 200 /);
  assert.equal((await door.ask('GET', '/bucket/k')).text, 'ab');
});

test('keys are opaque bytes: each of these is its own object', async () => {
  await using door = await aBucket();
  const keys = [
    'a//b',
    '..',
    '../x',
    './x',
    'foo',
    'foo/bar',
    'd/',
    '/',
    ' ',
    'a+b',
    'a b',
    'a%2Fb',
    'a\\b',
    'ü',
    'u\u0308',
    '🦆',
    '\u0001\n',
    "!*'()",
    '&<>"',
    '?',
    '#',
    'x'.repeat(1_024),
  ];
  for (const key of keys) {
    const put = await door.ask('PUT', `/bucket/${encodeURIComponent(key)}`, { body: key });
    assert.equal(put.status, 200, key);
  }
  for (const key of keys) assert.equal((await door.ask('GET', `/bucket/${encodeURIComponent(key)}`)).text, key);
  const listed = await door.ask('GET', '/bucket', { query: { 'list-type': '2', 'encoding-type': 'url' } });
  const found = elements(listed.text, 'Key').map((it) => decodeURIComponent(it));
  assert.deepEqual(
    found,
    keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
  );
  const tooLong = await door.ask('PUT', `/bucket/${'x'.repeat(1_025)}`, { body: '' });
  assert.deepEqual([tooLong.status, tooLong.code], [400, 'KeyTooLongError']);
});

test('a range is answered 206 with its bytes, and one that does not exist 416', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/k', { body: '0123456789' });
  const ranged = async (range: string): Promise<[number, string, string | undefined]> => {
    const got = await door.ask('GET', '/bucket/k', { headers: { range } });
    return [got.status, got.status < 300 ? got.text : (got.code ?? ''), got.headers['content-range']];
  };
  assert.deepEqual(await ranged('bytes=0-0'), [206, '0', 'bytes 0-0/10']);
  assert.deepEqual(await ranged('bytes=8-'), [206, '89', 'bytes 8-9/10']);
  assert.deepEqual(await ranged('bytes=5-999'), [206, '56789', 'bytes 5-9/10']);
  assert.deepEqual(await ranged('bytes=-3'), [206, '789', 'bytes 7-9/10']);
  assert.deepEqual(await ranged('bytes=-99'), [206, '0123456789', 'bytes 0-9/10']);
  assert.deepEqual(await ranged('bytes=10-'), [416, 'InvalidRange', 'bytes */10']);
  assert.deepEqual(await ranged('bytes=5-4'), [416, 'InvalidRange', 'bytes */10']);
  assert.deepEqual(await ranged('bytes=-0'), [416, 'InvalidRange', 'bytes */10']);
  assert.deepEqual(await ranged(`bytes=${'9'.repeat(99)}-`), [416, 'InvalidRange', 'bytes */10']);
  assert.deepEqual(await ranged('bytes=0-1,3-4'), [200, '0123456789', undefined]);
  assert.deepEqual(await ranged('cows=1-2'), [200, '0123456789', undefined]);
  const head = await door.ask('HEAD', '/bucket/k', { headers: { range: 'bytes=2-4' } });
  assert.deepEqual([head.status, head.headers['content-length']], [206, '3']);
  await door.ask('PUT', '/bucket/empty', { body: '' });
  assert.equal((await door.ask('GET', '/bucket/empty', { headers: { range: 'bytes=0-' } })).status, 416);
});

test('a range with If-Range is given only of the object that is meant', async () => {
  await using door = await aBucket();
  const { headers } = await door.ask('PUT', '/bucket/k', { body: '0123456789' });
  const status = async (value: string): Promise<number> =>
    (await door.ask('GET', '/bucket/k', { headers: { range: 'bytes=0-1', 'if-range': value } })).status;
  assert.equal(await status(headers['etag']!), 206);
  assert.equal(await status('"other"'), 200);
  assert.equal(await status(new Date(door.clock.now()).toUTCString()), 206);
  assert.equal(await status(new Date(0).toUTCString()), 200);
});

test('conditions are answered 304 and 412', async () => {
  await using door = await aBucket();
  const etag = `"${md5('x')}"`;
  await door.ask('PUT', '/bucket/k', { body: 'x' });
  const asked = async (headers: Record<string, string>, method = 'GET') =>
    await door.ask(method, '/bucket/k', { headers });
  const fresh = await asked({ 'if-none-match': etag });
  assert.deepEqual([fresh.status, fresh.text, fresh.headers['etag']], [304, '', etag]);
  assert.equal((await asked({ 'if-match': '"no"' })).code, 'PreconditionFailed');
  const head = await asked({ 'if-match': '"no"' }, 'HEAD');
  assert.deepEqual([head.status, head.text], [412, '']);
  assert.equal((await asked({ 'if-match': etag })).status, 200);
  // the connection lives on after a 304
  assert.equal((await asked({})).text, 'x');
});

test('If-None-Match: * writes only what is not there, If-Match only over what is', async () => {
  await using door = await aBucket();
  const put = async (headers: Record<string, string>): Promise<[number, string | undefined]> => {
    const answer = await door.ask('PUT', '/bucket/k', { body: 'x', headers });
    return [answer.status, answer.code];
  };
  assert.deepEqual(await put({ 'if-match': '"a"' }), [404, 'NoSuchKey']);
  assert.deepEqual(await put({ 'if-none-match': '*' }), [200, undefined]);
  assert.deepEqual(await put({ 'if-none-match': '*' }), [412, 'PreconditionFailed']);
  assert.deepEqual(await put({ 'if-match': '"wrong"' }), [412, 'PreconditionFailed']);
  assert.deepEqual(await put({ 'if-match': `"${md5('x')}"` }), [200, undefined]);
  assert.deepEqual(await put({ 'if-none-match': '"a"' }), [501, 'NotImplemented']);
});

test('what is not there is said to be not there, by name', async () => {
  await using door = await aBucket();
  const code = async (method: string, path: string, query = {}): Promise<string | undefined> =>
    (await door.ask(method, path, { query })).code;
  assert.equal(await code('GET', '/bucket/k'), 'NoSuchKey');
  assert.equal(await code('GET', '/absent/k'), 'NoSuchBucket');
  assert.equal(await code('PUT', '/absent/k'), 'NoSuchBucket');
  assert.equal(await code('GET', '/absent'), 'NoSuchBucket');
  assert.equal(await code('GET', '/absent', { 'max-keys': '0' }), 'NoSuchBucket');
  assert.equal(await code('GET', '/bucket/k', { uploadId: '0'.repeat(32) }), 'NoSuchUpload');
  assert.equal(await code('GET', '/bucket/k', { uploadId: 'nonsense' }), 'NoSuchUpload');
  assert.equal(await code('GET', '/bucket/k', { versionId: 'v1' }), 'NoSuchVersion');
  assert.equal((await door.ask('DELETE', '/bucket/k')).status, 204);
});

test('the error of a HEAD has no body', async () => {
  await using door = await aBucket();
  const answer = await door.ask('HEAD', '/bucket/k');
  assert.deepEqual([answer.status, answer.text], [404, '']);
  assert.ok(answer.headers['x-amz-request-id']);
  assert.equal((await door.ask('HEAD', '/bucket')).status, 200);
});

test('an error document names code, resource and request', async () => {
  await using door = await aBucket();
  const { text, headers } = await door.ask('GET', '/bucket/a%26b');
  assert.match(text, /^<\?xml version="1.0" encoding="UTF-8"\?>\n<Error><Code>NoSuchKey<\/Code>/);
  assert.equal(element(text, 'Resource'), '/bucket/a%26b');
  assert.equal(element(text, 'RequestId'), headers['x-amz-request-id']);
  assert.equal(headers['content-type'], 'application/xml');
});

test('what is not built answers 501, and what S3 does not know 405', async () => {
  await using door = await aBucket();
  const cases: [string, string, Record<string, string>, number, string][] = [
    ['PUT', '/bucket', { versioning: '' }, 501, 'NotImplemented'],
    ['PUT', '/bucket', { lifecycle: '' }, 501, 'NotImplemented'],
    ['GET', '/bucket', { analytics: '' }, 501, 'NotImplemented'],
    ['POST', '/bucket', {}, 501, 'NotImplemented'],
    ['PUT', '/bucket/k', { tagging: '' }, 501, 'NotImplemented'],
    ['POST', '/bucket/k', { restore: '' }, 501, 'NotImplemented'],
    ['POST', '/bucket/k', { select: '' }, 501, 'NotImplemented'],
    ['PATCH', '/bucket/k', {}, 405, 'MethodNotAllowed'],
    ['POST', '/bucket/k', {}, 405, 'MethodNotAllowed'],
    ['DELETE', '/', {}, 405, 'MethodNotAllowed'],
    ['OPTIONS', '/bucket/k', {}, 403, 'AccessForbidden'],
  ];
  for (const [method, path, query, status, code] of cases) {
    const answer = await door.ask(method, path, { query });
    assert.deepEqual([answer.status, answer.code], [status, code], `${method} ${path} ${JSON.stringify(query)}`);
  }
});

test('what clients ask of a bucket before they begin has an answer', async () => {
  await using door = await aBucket();
  const status = async (name: string): Promise<[number, string | undefined]> => {
    const answer = await door.ask('GET', '/bucket', { query: { [name]: '' } });
    return [answer.status, answer.code];
  };
  for (const name of [
    'versioning',
    'acl',
    'location',
    'policyStatus',
    'logging',
    'notification',
    'accelerate',
    'requestPayment',
    'uploads',
    'versions',
  ]) {
    assert.deepEqual(await status(name), [200, undefined], name);
  }
  const lacks: Record<string, string> = {
    cors: 'NoSuchCORSConfiguration',
    encryption: 'ServerSideEncryptionConfigurationNotFoundError',
    lifecycle: 'NoSuchLifecycleConfiguration',
    'object-lock': 'ObjectLockConfigurationNotFoundError',
    ownershipControls: 'OwnershipControlsNotFoundError',
    policy: 'NoSuchBucketPolicy',
    publicAccessBlock: 'NoSuchPublicAccessBlockConfiguration',
    replication: 'ReplicationConfigurationNotFoundError',
    tagging: 'NoSuchTagSet',
    website: 'NoSuchWebsiteConfiguration',
  };
  for (const [name, code] of Object.entries(lacks)) assert.deepEqual(await status(name), [404, code], name);
});

test('asking for what is not there, such as encryption, is refused and stores nothing', async () => {
  await using door = await aBucket();
  const cases: Record<string, [string, string]> = {
    'x-amz-server-side-encryption': ['AES256', 'NotImplemented'],
    'x-amz-server-side-encryption-customer-algorithm': ['AES256', 'NotImplemented'],
    'x-amz-object-lock-mode': ['GOVERNANCE', 'InvalidRequest'],
    'x-amz-tagging': ['a=b', 'NotImplemented'],
    'x-amz-storage-class': ['GLACIER', 'InvalidStorageClass'],
    'x-amz-acl': ['public-read', 'AccessControlListNotSupported'],
    'x-amz-grant-read': ['id=x', 'AccessControlListNotSupported'],
    'x-amz-website-redirect-location': ['/x', 'NotImplemented'],
  };
  for (const [name, [value, code]] of Object.entries(cases)) {
    assert.equal((await door.ask('PUT', '/bucket/k', { body: 'x', headers: { [name]: value } })).code, code, name);
  }
  assert.equal((await door.ask('GET', '/bucket/k')).status, 404);
  for (const headers of [{ 'x-amz-acl': 'private' }, { 'x-amz-storage-class': 'STANDARD' }, { 'x-amz-tagging': '' }]) {
    assert.equal(
      (await door.ask('PUT', '/bucket/k', { body: 'x', headers: headers as Record<string, string> })).status,
      200,
    );
  }
});

test('a signed request may say which headers it wants, anyone may not', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/k', { body: 'x' });
  const query = { 'response-content-type': 'text/x', 'response-content-disposition': 'attachment; filename="ü.txt"' };
  const got = await door.ask('GET', '/bucket/k', { query });
  assert.equal(got.headers['content-type'], 'text/x');
  assert.equal(
    Buffer.from(String(got.headers['content-disposition']), 'latin1').toString(),
    query['response-content-disposition'],
  );
  const split = await door.ask('GET', '/bucket/k', { query: { 'response-expires': 'a\r\nSet-Cookie: b' } });
  assert.equal(split.code, 'InvalidArgument');
  await door.ask('PUT', '/bucket', { query: { acl: '' }, headers: { 'x-amz-acl': 'public-read' } });
  assert.equal((await door.ask('GET', '/bucket/k', { query, as: 'anyone' })).code, 'InvalidRequest');
});

test('a public bucket is open to anyone for reading, and for nothing else', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/k', { body: 'x' });
  const status = async (method: string, path: string, query = {}): Promise<number> =>
    (await door.ask(method, path, { query, as: 'anyone' })).status;
  assert.equal((await door.ask('GET', '/bucket/k', { as: 'anyone' })).code, 'AccessDenied');
  assert.equal((await door.ask('GET', '/', { as: 'anyone' })).code, 'AccessDenied');
  const acl = await door.ask('PUT', '/bucket', { query: { acl: '' }, headers: { 'x-amz-acl': 'public-read' } });
  assert.equal(acl.status, 200);
  assert.match((await door.ask('GET', '/bucket', { query: { acl: '' } })).text, /AllUsers.*READ/);
  assert.equal(element((await door.ask('GET', '/bucket', { query: { policyStatus: '' } })).text, 'IsPublic'), 'true');
  assert.deepEqual(
    [await status('GET', '/bucket/k'), await status('HEAD', '/bucket/k'), await status('GET', '/bucket')],
    [200, 200, 200],
  );
  assert.equal(await status('GET', '/bucket', { 'list-type': '2' }), 200);
  for (const [method, path, query] of [
    ['PUT', '/bucket/k', {}],
    ['DELETE', '/bucket/k', {}],
    ['DELETE', '/bucket', {}],
    ['POST', '/bucket', { delete: '' }],
    ['GET', '/bucket', { acl: '' }],
    ['GET', '/bucket', { uploads: '' }],
    ['POST', '/bucket/k', { uploads: '' }],
    ['GET', '/', {}],
  ] as const) {
    assert.equal(await status(method, path, query), 403, `${method} ${path}`);
  }
  await door.ask('PUT', '/bucket', { query: { acl: '' }, headers: { 'x-amz-acl': 'private' } });
  assert.equal(await status('GET', '/bucket/k'), 403);
});

test('a presigned URL reads and writes without a header of its own', async () => {
  await using door = await aBucket();
  const url = (method: string): string =>
    presign({
      method,
      host: door.door.address,
      path: '/bucket/k',
      credentials: KEY,
      region: 'x',
      nowMs: door.clock.now(),
      expiresSeconds: 60,
    });
  assert.equal((await door.ask('PUT', url('PUT'), { body: 'hello', as: 'anyone' })).status, 200);
  assert.equal((await door.ask('GET', url('GET'), { as: 'anyone' })).text, 'hello');
  assert.equal((await door.ask('GET', url('PUT'), { as: 'anyone' })).code, 'SignatureDoesNotMatch');
  const old = url('GET');
  door.clock.advance(61_000);
  assert.equal((await door.ask('GET', old, { as: 'anyone' })).code, 'AccessDenied');
});

test('a bucket may stand in the host, before a known domain', async () => {
  await using door = await aDoor({ domains: ['s3.test'] });
  await door.ask('PUT', '/bucket');
  await door.ask('PUT', '/bucket/a/b', { body: 'hello' });
  for (const host of ['bucket.localhost', 'bucket.s3.test:80', 'bucket.S3.test']) {
    const got = await door.ask('GET', '/a/b', { headers: { host } });
    assert.equal(got.text, 'hello', host);
    assert.equal((await door.ask('GET', '/', { headers: { host } })).status, 200);
  }
  assert.equal((await door.ask('GET', '/a/b', { headers: { host: 'bucket.other.test' } })).code, 'NoSuchBucket');
});

test('user metadata beyond 2 KiB is refused', async () => {
  await using door = await aBucket();
  const put = async (bytes: number): Promise<string | undefined> =>
    (await door.ask('PUT', '/bucket/k', { headers: { 'x-amz-meta-a': 'x'.repeat(bytes - 1) } })).code;
  assert.equal(await put(2_048), undefined);
  assert.equal(await put(2_049), 'MetadataTooLarge');
});

test('an object has no tags and the access of its bucket', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/k', { body: 'x' });
  assert.match((await door.ask('GET', '/bucket/k', { query: { tagging: '' } })).text, /<TagSet><\/TagSet>/);
  assert.match((await door.ask('GET', '/bucket/k', { query: { acl: '' } })).text, /FULL_CONTROL/);
  const attributes = await door.ask('GET', '/bucket/k', {
    query: { attributes: '' },
    headers: { 'x-amz-object-attributes': 'ETag,ObjectSize' },
  });
  assert.deepEqual([element(attributes.text, 'ETag'), element(attributes.text, 'ObjectSize')], [md5('x'), '1']);
  assert.equal(element(attributes.text, 'StorageClass'), undefined);
});
