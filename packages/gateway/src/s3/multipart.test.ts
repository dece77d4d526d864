import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { ObjectStore } from '@webdfs/client';
import { aDoor, type Answered, eventually, replacing, type TestDoor } from '../testing.ts';

const element = (text: string, name: string): string | undefined =>
  new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1];
const elements = (text: string, name: string): string[] =>
  [...text.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map((it) => it[1]!);
const md5 = (bytes: Uint8Array | string): Buffer => createHash('md5').update(bytes).digest();

const SMALL = { sizes: { minPartBytes: 4, blockBytes: 16, inlineBytes: 8 } };

async function aBucket(options: Parameters<typeof aDoor>[0] = SMALL): Promise<TestDoor> {
  const door = await aDoor(options);
  await door.ask('PUT', '/bucket');
  return door;
}

async function begin(door: TestDoor, headers: Record<string, string> = {}): Promise<string> {
  return element((await door.ask('POST', '/bucket/k', { query: { uploads: '' }, headers })).text, 'UploadId')!;
}

async function part(door: TestDoor, uploadId: string, number: number, body: string, headers = {}): Promise<string> {
  const answer = await door.ask('PUT', '/bucket/k', { query: { uploadId, partNumber: String(number) }, body, headers });
  assert.equal(answer.status, 200, answer.text);
  return answer.headers['etag']!;
}

function completion(parts: readonly (readonly [number: number, etag: string])[]): string {
  const list = parts.map(([number, etag]) => `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`);
  return `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${list.join('')}</CompleteMultipartUpload>`;
}

async function complete(
  door: TestDoor,
  uploadId: string,
  parts: readonly (readonly [number: number, etag: string])[],
  headers: Record<string, string> = {},
): Promise<Answered> {
  return await door.ask('POST', '/bucket/k', { query: { uploadId }, body: completion(parts), headers });
}

test('parts make an object, with the ETag of their ETags', async () => {
  await using door = await aBucket();
  const uploadId = await begin(door, { 'content-type': 'text/x', 'x-amz-meta-a': '1' });
  const second = await part(door, uploadId, 7, 'world');
  const first = await part(door, uploadId, 2, 'hello ');
  assert.equal(first, `"${md5('hello ').toString('hex')}"`);
  const done = await complete(door, uploadId, [
    [2, first],
    [7, second],
  ]);
  const etag = `${md5(Buffer.concat([md5('hello '), md5('world')])).toString('hex')}-2`;
  assert.deepEqual([done.status, element(done.text, 'ETag')], [200, `&quot;${etag}&quot;`]);
  assert.equal(element(done.text, 'Key'), 'k');
  const got = await door.ask('GET', '/bucket/k');
  assert.deepEqual([got.text, got.headers['etag'], got.headers['x-amz-meta-a']], ['hello world', `"${etag}"`, '1']);
  const byPart = await door.ask('GET', '/bucket/k', { query: { partNumber: '7' } });
  assert.deepEqual(
    [byPart.status, byPart.text, byPart.headers['content-range'], byPart.headers['x-amz-mp-parts-count']],
    [206, 'world', 'bytes 6-10/11', '2'],
  );
  assert.equal((await door.ask('GET', '/bucket/k', { query: { partNumber: '3' } })).code, 'InvalidPartNumber');
});

test('completing twice answers the same', async () => {
  await using door = await aBucket();
  const uploadId = await begin(door);
  const etag = await part(door, uploadId, 1, 'hello');
  const [once, twice] = [await complete(door, uploadId, [[1, etag]]), await complete(door, uploadId, [[1, etag]])];
  assert.deepEqual([once.status, twice.status], [200, 200]);
  assert.equal(element(once.text, 'ETag'), element(twice.text, 'ETag'));
});

test('an upload that cannot be completed says why, and stays', async () => {
  await using door = await aBucket();
  const uploadId = await begin(door);
  const [one, two] = [await part(door, uploadId, 1, 'abc'), await part(door, uploadId, 2, 'def')];
  const code = async (parts: [number, string][], headers = {}): Promise<string | undefined> =>
    (await complete(door, uploadId, parts, headers)).code;
  assert.equal(
    await code([
      [1, one],
      [2, two],
    ]),
    'EntityTooSmall',
  );
  assert.equal(
    await code([
      [2, two],
      [1, one],
    ]),
    'InvalidPartOrder',
  );
  assert.equal(
    await code([
      [1, one],
      [1, one],
    ]),
    'InvalidPartOrder',
  );
  assert.equal(await code([[1, '"wrong"']]), 'InvalidPart');
  assert.equal(await code([[3, one]]), 'InvalidPart');
  assert.equal(await code([]), 'MalformedXML');
  assert.equal(await code([[0, one]]), 'InvalidArgument');
  assert.equal(await code([[10_001, one]]), 'InvalidArgument');
  assert.equal(await code([[1, one]], { 'x-amz-mp-object-size': '4' }), 'InvalidRequest');
  const query = { uploadId };
  assert.equal((await door.ask('POST', '/bucket/k', { query, body: '<Complete' })).code, 'MalformedXML');
  assert.equal((await door.ask('POST', '/bucket/k', { query })).code, 'MalformedXML');
  assert.equal((await door.ask('GET', '/bucket/k')).status, 404);
  assert.equal((await complete(door, uploadId, [[1, one]], { 'x-amz-mp-object-size': '3' })).status, 200);
});

test('completion takes the conditions of a write', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/k', { body: 'there' });
  const uploadId = await begin(door);
  const etag = await part(door, uploadId, 1, 'hello');
  const refused = await complete(door, uploadId, [[1, etag]], { 'if-none-match': '*' });
  assert.deepEqual([refused.status, refused.code], [412, 'PreconditionFailed']);
});

test('part numbers are 1 to 10 000', async () => {
  await using door = await aBucket();
  const uploadId = await begin(door);
  for (const partNumber of ['0', '10001', '-1', 'x', '']) {
    const answer = await door.ask('PUT', '/bucket/k', { query: { uploadId, partNumber }, body: 'x' });
    assert.equal(answer.code, 'InvalidArgument', partNumber);
  }
  await part(door, uploadId, 10_000, 'x');
});

test('parts and uploads are listed in pages', async () => {
  await using door = await aBucket();
  const uploadId = await begin(door);
  for (const number of [1, 2, 5]) await part(door, uploadId, number, `part ${number}`);
  const first = await door.ask('GET', '/bucket/k', { query: { uploadId, 'max-parts': '2' } });
  assert.deepEqual(elements(first.text, 'PartNumber'), ['1', '2']);
  assert.deepEqual([element(first.text, 'IsTruncated'), element(first.text, 'NextPartNumberMarker')], ['true', '2']);
  const second = await door.ask('GET', '/bucket/k', { query: { uploadId, 'part-number-marker': '2' } });
  assert.deepEqual(elements(second.text, 'PartNumber'), ['5']);
  assert.equal(element(second.text, 'IsTruncated'), 'false');
  const other = element((await door.ask('POST', '/bucket/d%2Fk', { query: { uploads: '' } })).text, 'UploadId');
  const page = await door.ask('GET', '/bucket', { query: { uploads: '', 'max-uploads': '1' } });
  assert.deepEqual(elements(page.text, 'UploadId'), [other]);
  const marker = {
    'key-marker': element(page.text, 'NextKeyMarker')!,
    'upload-id-marker': element(page.text, 'NextUploadIdMarker')!,
  };
  const rest = await door.ask('GET', '/bucket', { query: { uploads: '', ...marker } });
  assert.deepEqual(elements(rest.text, 'UploadId'), [uploadId]);
  const grouped = await door.ask('GET', '/bucket', { query: { uploads: '', delimiter: '/' } });
  assert.match(grouped.text, /<CommonPrefixes><Prefix>d\/<\/Prefix><\/CommonPrefixes>/);
});

test('an aborted upload is gone, with its parts', async () => {
  await using door = await aBucket();
  const uploadId = await begin(door);
  const etag = await part(door, uploadId, 1, 'hello');
  assert.equal((await door.ask('DELETE', '/bucket/k', { query: { uploadId } })).status, 204);
  assert.equal((await complete(door, uploadId, [[1, etag]])).code, 'NoSuchUpload');
  assert.equal((await door.ask('GET', '/bucket/k', { query: { uploadId } })).code, 'NoSuchUpload');
  assert.equal((await door.ask('DELETE', '/bucket/k', { query: { uploadId } })).code, 'NoSuchUpload');
});

test('a part is copied from an object, or from a range of it', async () => {
  await using door = await aBucket();
  await door.ask('PUT', '/bucket/source%20%2B', { body: '0123456789' });
  const uploadId = await begin(door);
  const copied = async (number: number, headers: Record<string, string>): Promise<Answered> =>
    await door.ask('PUT', '/bucket/k', {
      query: { uploadId, partNumber: String(number) },
      headers: { 'x-amz-copy-source': '/bucket/source%20%2B', ...headers },
    });
  const whole = await copied(1, {});
  const range = await copied(2, { 'x-amz-copy-source-range': 'bytes=2-4' });
  assert.match(whole.text, /<CopyPartResult /);
  const etag = (answer: Answered): string => element(answer.text, 'ETag')!;
  assert.equal(
    (
      await complete(door, uploadId, [
        [1, etag(whole)],
        [2, etag(range)],
      ])
    ).status,
    200,
  );
  assert.equal((await door.ask('GET', '/bucket/k')).text, '0123456789234');
  const other = await begin(door);
  for (const bad of ['bytes=2-', 'bytes=4-2', 'bytes=2-10', 'nonsense']) {
    const answer = await door.ask('PUT', '/bucket/k', {
      query: { uploadId: other, partNumber: '1' },
      headers: { 'x-amz-copy-source': '/bucket/source%20%2B', 'x-amz-copy-source-range': bad },
    });
    assert.equal(answer.code, 'InvalidArgument', bad);
  }
});

test('checksums of parts make the checksum of the object', async () => {
  await using door = await aBucket();
  const { crc32 } = await import('node:zlib');
  const base64 = (text: string): string => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(crc32(text));
    return bytes.toString('base64');
  };
  const uploadId = await begin(door, { 'x-amz-checksum-algorithm': 'CRC32', 'x-amz-checksum-type': 'FULL_OBJECT' });
  const one = await part(door, uploadId, 1, 'hello ', { 'x-amz-checksum-crc32': base64('hello ') });
  const two = await part(door, uploadId, 2, 'world', { 'x-amz-checksum-crc32': base64('world') });
  const wrong = await complete(
    door,
    uploadId,
    [
      [1, one],
      [2, two],
    ],
    { 'x-amz-checksum-crc32': base64('other') },
  );
  assert.equal(wrong.code, 'BadDigest');
  const done = await complete(
    door,
    uploadId,
    [
      [1, one],
      [2, two],
    ],
    { 'x-amz-checksum-crc32': base64('hello world') },
  );
  assert.equal(done.status, 200, done.text);
  assert.equal(element(done.text, 'ChecksumCRC32'), base64('hello world'));
  assert.equal(element(done.text, 'ChecksumType'), 'FULL_OBJECT');
  const head = await door.ask('HEAD', '/bucket/k', { headers: { 'x-amz-checksum-mode': 'ENABLED' } });
  assert.equal(head.headers['x-amz-checksum-crc32'], base64('hello world'));
});

test('a kind of checksum that S3 does not make is refused', async () => {
  await using door = await aBucket();
  const code = async (headers: Record<string, string>): Promise<string | undefined> =>
    (await door.ask('POST', '/bucket/k', { query: { uploads: '' }, headers })).code;
  assert.equal(await code({ 'x-amz-checksum-algorithm': 'MD4' }), 'InvalidRequest');
  assert.equal(
    await code({ 'x-amz-checksum-algorithm': 'SHA1', 'x-amz-checksum-type': 'FULL_OBJECT' }),
    'InvalidRequest',
  );
  assert.equal(
    await code({ 'x-amz-checksum-algorithm': 'CRC64NVME', 'x-amz-checksum-type': 'COMPOSITE' }),
    'InvalidRequest',
  );
  assert.equal(await code({ 'x-amz-checksum-type': 'COMPOSITE' }), 'InvalidRequest');
  assert.equal(await code({ 'x-amz-checksum-algorithm': 'CRC64NVME' }), undefined);
});

/** A store whose completions wait until they are let go. */
function waiting(): {
  wrap: (store: ObjectStore) => ObjectStore;
  asked: () => boolean;
  letGo: (error?: Error) => void;
} {
  let gate: { resolve: () => void; reject: (error: Error) => void } | undefined;
  return {
    asked: () => gate !== undefined,
    letGo: (error) => (error === undefined ? gate?.resolve() : gate?.reject(error)),
    wrap: (store) =>
      replacing(store, {
        completeUpload: async (...asked) => {
          await new Promise<void>((resolve, reject) => {
            gate = { resolve, reject };
          });
          return await store.completeUpload(...asked);
        },
      }),
  };
}

test('a completion that takes long sends white space, then the document', async () => {
  const gate = waiting();
  await using door = await aBucket({ ...SMALL, wrap: gate.wrap });
  const uploadId = await begin(door);
  const etag = await part(door, uploadId, 1, 'hello');
  const answer = complete(door, uploadId, [[1, etag]]);
  await eventually(gate.asked);
  for (let i = 0; i < 3; i++) door.clock.advance(10_000);
  gate.letGo();
  const { status, headers, text } = await answer;
  assert.deepEqual([status, headers['content-length']], [200, undefined]);
  assert.match(text, /^<\?xml [^>]*>\n {2}<CompleteMultipartUploadResult /);
});

test('a completion that fails after white space says so in its document', async () => {
  const gate = waiting();
  await using door = await aBucket({ ...SMALL, wrap: gate.wrap });
  const uploadId = await begin(door);
  const etag = await part(door, uploadId, 1, 'hello');
  const answer = complete(door, uploadId, [[1, etag]]);
  await eventually(gate.asked);
  door.clock.advance(10_000);
  gate.letGo(new Error('lost'));
  const { status, text } = await answer;
  assert.equal(status, 200);
  assert.match(text, /^<\?xml [^>]*>\n<Error><Code>InternalError<\/Code>/);
});
