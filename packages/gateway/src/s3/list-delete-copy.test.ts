import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { MAX_XML_BYTES } from '../http/limits.ts';
import { aDoor, type Answered, type TestDoor } from '../testing.ts';
import { keyIn, tokenOf } from './operations/list-objects.ts';

const element = (text: string, name: string): string | undefined =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1];
const elements = (text: string, name: string): string[] =>
  [...text.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map((it) => it[1]!);
const prefixes = (text: string): string[] => [...text.matchAll(/<CommonPrefixes><Prefix>([^<]*)/g)].map((it) => it[1]!);

async function aBucket(...keys: string[]): Promise<TestDoor> {
  const door = await aDoor();
  await door.ask('PUT', '/bucket');
  for (const key of keys) await door.ask('PUT', `/bucket/${encodeURIComponent(key)}`, { body: key });
  return door;
}

const list = async (door: TestDoor, query: Record<string, string>): Promise<Answered> =>
  await door.ask('GET', '/bucket', { query });

test('both listings give keys with size and ETag, grouped by a delimiter', async () => {
  await using door = await aBucket('a', 'd/1', 'd/2', 'e/f/1', 'z');
  for (const query of [{}, { 'list-type': '2' }] as Record<string, string>[]) {
    const all = await list(door, query);
    assert.deepEqual(elements(all.text, 'Key'), ['a', 'd/1', 'd/2', 'e/f/1', 'z']);
    assert.deepEqual(elements(all.text, 'Size'), ['1', '3', '3', '5', '1']);
    assert.equal(element(all.text, 'ETag'), `&quot;${createHash('md5').update('a').digest('hex')}&quot;`);
    const grouped = await list(door, { ...query, delimiter: '/' });
    assert.deepEqual(
      [elements(grouped.text, 'Key'), prefixes(grouped.text)],
      [
        ['a', 'z'],
        ['d/', 'e/'],
      ],
    );
    const below = await list(door, { ...query, delimiter: '/', prefix: 'e/' });
    assert.deepEqual([elements(below.text, 'Key'), prefixes(below.text)], [[], ['e/f/']]);
  }
});

test('pages together give every key and prefix once, in order, whatever their size', async () => {
  const keys = ['a', 'b/1', 'b/2', 'b/3', 'c', 'd/1', 'e'];
  await using door = await aBucket(...keys);
  for (const limit of [1, 2, 3, 100]) {
    const found: string[] = [];
    let token: string | undefined;
    do {
      const page = await list(door, {
        'list-type': '2',
        delimiter: '/',
        'max-keys': String(limit),
        ...(token !== undefined && { 'continuation-token': token }),
      });
      const names = [...elements(page.text, 'Key'), ...prefixes(page.text)];
      assert.ok(names.length <= limit);
      assert.equal(element(page.text, 'KeyCount'), String(names.length));
      found.push(...names);
      token = element(page.text, 'NextContinuationToken');
      assert.equal(element(page.text, 'IsTruncated'), String(token !== undefined));
    } while (token !== undefined);
    assert.deepEqual(found.toSorted(), ['a', 'b/', 'c', 'd/', 'e'], `pages of ${limit}`);
    const old: string[] = [];
    let marker: string | undefined;
    do {
      const page = await list(door, {
        delimiter: '/',
        'max-keys': String(limit),
        ...(marker !== undefined && { marker }),
      });
      old.push(...elements(page.text, 'Key'), ...prefixes(page.text));
      marker = element(page.text, 'NextMarker');
    } while (marker !== undefined);
    assert.deepEqual(old.toSorted(), ['a', 'b/', 'c', 'd/', 'e'], `pages of ${limit}`);
  }
});

test('a listing may begin after a key', async () => {
  await using door = await aBucket('a', 'b', 'c');
  assert.deepEqual(elements((await list(door, { 'list-type': '2', 'start-after': 'a' })).text, 'Key'), ['b', 'c']);
  assert.deepEqual(elements((await list(door, { marker: 'b' })).text, 'Key'), ['c']);
});

test('the owner is told always by the first listing, and by the second when asked', async () => {
  await using door = await aBucket('a');
  assert.equal(element((await list(door, {})).text, 'ID'), 'TESTKEY');
  assert.equal(element((await list(door, { 'list-type': '2' })).text, 'ID'), undefined);
  assert.equal(element((await list(door, { 'list-type': '2', 'fetch-owner': 'true' })).text, 'ID'), 'TESTKEY');
});

test('keys are spelled as the client asked', async () => {
  await using door = await aBucket('a b+c/ü&', '\u0001');
  const plain = await list(door, { 'list-type': '2' });
  assert.deepEqual(elements(plain.text, 'Key'), ['&#x1;', 'a b+c/ü&amp;']);
  const url = await list(door, { 'list-type': '2', 'encoding-type': 'url', prefix: 'a ', delimiter: '+' });
  assert.deepEqual(prefixes(url.text), ['a%20b%2B']);
  assert.deepEqual([element(url.text, 'Prefix'), element(url.text, 'Delimiter')], ['a%20', '%2B']);
  assert.equal((await list(door, { 'encoding-type': 'base64' })).code, 'InvalidArgument');
});

test('a page of no keys is empty and not truncated; a limit that is none is refused', async () => {
  await using door = await aBucket('a');
  const none = await list(door, { 'list-type': '2', 'max-keys': '0' });
  assert.deepEqual([element(none.text, 'KeyCount'), element(none.text, 'IsTruncated')], ['0', 'false']);
  for (const limit of ['-1', 'x', '1.5', '99999999999']) {
    assert.equal((await list(door, { 'max-keys': limit })).code, 'InvalidArgument', limit);
  }
  assert.equal(element((await list(door, { 'max-keys': '100000' })).text, 'MaxKeys'), '1000');
});

test('a continuation token is ours or refused', async (t) => {
  await using door = await aBucket('a');
  for (const token of ['', '1', 'a', '2YQ', '1YQ==', '1Y Q', '1'.repeat(2_000)]) {
    const answer = await list(door, { 'list-type': '2', 'continuation-token': token });
    assert.equal(answer.code, 'InvalidArgument', token);
  }
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 1_024 }), (key) => {
      assert.deepEqual(keyIn(tokenOf(key)), key);
    }),
    { seed: seedOf(t) },
  );
});

test('any listing parameters are answered or refused, never a failure of ours', async (t) => {
  await using door = await aBucket('a', 'b/c');
  const name = fc.constantFrom(
    'prefix',
    'delimiter',
    'marker',
    'max-keys',
    'continuation-token',
    'start-after',
    'encoding-type',
    'fetch-owner',
    'list-type',
    'key-marker',
    'versions',
    'uploads',
    'max-uploads',
    'upload-id-marker',
  );
  const value = fc.oneof(
    fc.constantFrom('', '0', '1', '2', '-1', 'url', 'a', '/', 'true'),
    fc.string({ unit: 'grapheme' }),
  );
  await fc.assert(
    fc.asyncProperty(fc.dictionary(name, value, { noNullPrototype: true }), async (query) => {
      const { status, code } = await list(door, query);
      assert.ok(status === 200 || (status === 400 && code === 'InvalidArgument'), `${status} ${code}`);
    }),
    { seed: seedOf(t), numRuns: 100 },
  );
});

test('objects without versions are their own only version', async () => {
  await using door = await aBucket('a', 'b');
  const { text } = await list(door, { versions: '', 'max-keys': '1' });
  assert.deepEqual(
    [element(text, 'Key'), element(text, 'VersionId'), element(text, 'IsLatest')],
    ['a', 'null', 'true'],
  );
  assert.deepEqual(
    elements((await list(door, { versions: '', 'key-marker': element(text, 'NextKeyMarker')! })).text, 'Key'),
    ['b'],
  );
});

function deletion(keys: readonly string[], more = ''): string {
  return `<Delete>${more}${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('')}</Delete>`;
}

async function deleteKeys(door: TestDoor, body: string, headers?: Record<string, string>): Promise<Answered> {
  const md5 = { 'content-md5': createHash('md5').update(body).digest('base64') };
  return await door.ask('POST', '/bucket', { query: { delete: '' }, body, headers: headers ?? md5 });
}

test('many keys are deleted at once, those that were there and those that were not', async () => {
  await using door = await aBucket('a', 'b', 'c&d');
  const answer = await deleteKeys(door, deletion(['a', 'c&amp;d', 'absent']));
  assert.deepEqual(elements(answer.text, 'Key'), ['a', 'c&amp;d', 'absent']);
  assert.deepEqual(elements((await list(door, {})).text, 'Key'), ['b']);
  const quiet = await deleteKeys(door, deletion(['b'], '<Quiet>true</Quiet>'));
  assert.deepEqual([quiet.status, elements(quiet.text, 'Key')], [200, []]);
});

test('a key that cannot be deleted says why, and the others go', async () => {
  await using door = await aBucket('a');
  const body = `<Delete><Object><Key>${'x'.repeat(1_025)}</Key></Object><Object><Key>a</Key><VersionId>null</VersionId></Object><Object><Key>b</Key><VersionId>v</VersionId></Object></Delete>`;
  const answer = await deleteKeys(door, body);
  assert.deepEqual(elements(answer.text, 'Code'), ['KeyTooLongError', 'NoSuchVersion']);
  assert.deepEqual(elements((await list(door, {})).text, 'Key'), []);
});

test('an ETag that is named keeps an object of another, and nothing of what is not there', async () => {
  await using door = await aBucket('a', 'b');
  const etag = createHash('md5').update('b').digest('hex');
  const named = (key: string, more: string): string => `<Object><Key>${key}</Key>${more}</Object>`;
  const tag = (value: string): string => `<ETag>&quot;${value}&quot;</ETag>`;
  const body = `<Delete>${named('a', tag('wrong'))}${named('b', tag(etag))}${named('absent', tag('any'))}</Delete>`;
  const answer = await deleteKeys(door, body);
  assert.deepEqual([answer.status, elements(answer.text, 'Code')], [200, ['PreconditionFailed']]);
  const alone = async (key: string, headers: Record<string, string>): Promise<number> =>
    (await door.ask('DELETE', `/bucket/${key}`, { headers })).status;
  assert.equal(await alone('a', { 'if-match': '"wrong"' }), 412);
  assert.equal(await alone('absent', { 'if-match': '*' }), 204);
  // what cannot be looked at must not be passed over
  assert.equal(await alone('a', { 'x-amz-if-match-size': '7' }), 501);
  assert.equal((await deleteKeys(door, `<Delete>${named('a', '<Size>7</Size>')}</Delete>`)).code, 'NotImplemented');
  assert.deepEqual(elements((await list(door, {})).text, 'Key'), ['a']);
});

test('a deletion needs a digest that is right, and 1 to 1 000 keys', async () => {
  await using door = await aBucket('a');
  assert.equal((await deleteKeys(door, deletion(['a']), {})).code, 'InvalidRequest');
  assert.equal(
    (await deleteKeys(door, deletion(['a']), { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' })).code,
    'BadDigest',
  );
  assert.equal((await deleteKeys(door, deletion(['a']), { 'x-amz-checksum-crc32': 'AAAAAA==' })).code, 'BadDigest');
  assert.equal((await deleteKeys(door, deletion([]))).code, 'MalformedXML');
  assert.equal((await deleteKeys(door, '<Delete><Object/></Delete>')).code, 'MalformedXML');
  assert.equal((await deleteKeys(door, '<Undelete/>')).code, 'MalformedXML');
  assert.equal((await deleteKeys(door, '')).code, 'MissingRequestBodyError');
  assert.equal(
    (await deleteKeys(door, deletion(Array.from({ length: 1_001 }, (_, i) => `${i}`)))).code,
    'MalformedXML',
  );
  assert.equal((await deleteKeys(door, ' '.repeat(MAX_XML_BYTES + 1))).code, 'MaxMessageLengthExceeded');
  assert.equal((await deleteKeys(door, `<!DOCTYPE a>${deletion(['a'])}`)).code, 'MalformedXML');
  assert.deepEqual(elements((await list(door, {})).text, 'Key'), ['a']);
});

const copy = async (door: TestDoor, target: string, headers: Record<string, string>): Promise<Answered> =>
  await door.ask('PUT', `/bucket/${target}`, { headers });

test('a copy has the bytes and the metadata of its source, or new metadata', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/a%20%2B', {
    body: 'hello',
    headers: { 'x-amz-meta-a': '1', 'content-type': 'text/x' },
  });
  for (const source of ['/bucket/a%20%2B', 'bucket/a%20%2B', 'bucket/a%20%2B?versionId=null']) {
    const done = await copy(door, 'copy', { 'x-amz-copy-source': source });
    assert.match(done.text, /<CopyObjectResult /, done.text);
    const got = await door.ask('GET', '/bucket/copy');
    assert.deepEqual([got.text, got.headers['x-amz-meta-a'], got.headers['content-type']], ['hello', '1', 'text/x']);
  }
  await copy(door, 'copy', {
    'x-amz-copy-source': '/bucket/copy',
    'x-amz-metadata-directive': 'REPLACE',
    'x-amz-meta-b': '2',
  });
  const replaced = await door.ask('GET', '/bucket/copy');
  assert.deepEqual(
    [replaced.text, replaced.headers['x-amz-meta-a'], replaced.headers['x-amz-meta-b']],
    ['hello', undefined, '2'],
  );
});

test('a copy that cannot be made says why', async () => {
  await using door = await aBucket('a');
  const code = async (headers: Record<string, string>, target = 'b'): Promise<string | undefined> =>
    (await copy(door, target, headers)).code;
  assert.equal(await code({ 'x-amz-copy-source': '/bucket/a' }, 'a'), 'InvalidRequest');
  assert.equal(await code({ 'x-amz-copy-source': '/bucket/absent' }), 'NoSuchKey');
  assert.equal(await code({ 'x-amz-copy-source': '/absent/a' }), 'NoSuchBucket');
  assert.equal(await code({ 'x-amz-copy-source': '/bucket' }), 'InvalidArgument');
  assert.equal(await code({ 'x-amz-copy-source': '/bucket/a?versionId=v' }), 'NoSuchVersion');
  assert.equal(await code({ 'x-amz-copy-source': '/bucket/a', 'x-amz-metadata-directive': 'MOVE' }), 'InvalidArgument');
  assert.equal(
    await code({ 'x-amz-copy-source': '/bucket/a', 'x-amz-copy-source-if-match': '"x"' }),
    'PreconditionFailed',
  );
  const etag = `"${createHash('md5').update('a').digest('hex')}"`;
  assert.equal(
    await code({ 'x-amz-copy-source': '/bucket/a', 'x-amz-copy-source-if-none-match': etag }),
    'PreconditionFailed',
  );
  assert.equal(await code({ 'x-amz-copy-source': '/bucket/a', 'x-amz-copy-source-if-match': etag }), undefined);
  assert.equal(await code({ 'x-amz-copy-source': '/bucket/a', 'if-none-match': '*' }), 'PreconditionFailed');
});
