import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { aDoor, type Answered, type TestDoor } from '../testing.ts';
import { CHECKSUM_ALGORITHMS, type ChecksumAlgorithm, runningChecksum } from './checksums.ts';

async function aBucket(): Promise<TestDoor> {
  const door = await aDoor({ sizes: { blockBytes: 65_536, inlineBytes: 4_096 } });
  await door.ask('PUT', '/bucket');
  return door;
}

function checksum(algorithm: ChecksumAlgorithm, text: string | Uint8Array): string {
  const running = runningChecksum(algorithm);
  running.update(Buffer.from(text));
  return running.digest();
}

const put = async (door: TestDoor, ask: Parameters<TestDoor['ask']>[2]): Promise<Answered> =>
  await door.ask('PUT', '/bucket/k', ask);

/** Nothing may have been stored. */
async function refused(door: TestDoor, ask: Parameters<TestDoor['ask']>[2], code: string): Promise<void> {
  const answer = await put(door, ask);
  assert.equal(answer.code, code, answer.text);
  assert.equal((await door.ask('GET', '/bucket/k')).status, 404);
}

test('checksums are those of their standards', () => {
  // "123456789", the check value of each catalogue
  const known: Record<ChecksumAlgorithm, string> = {
    crc32: 'cbf43926',
    crc32c: 'e3069283',
    crc64nvme: 'ae8b14860a799888',
    sha1: 'f7c3bc1d808e04732adf679965ccc34ca7ae3441',
    sha256: '15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225',
  };
  for (const algorithm of CHECKSUM_ALGORITHMS) {
    assert.equal(Buffer.from(checksum(algorithm, '123456789'), 'base64').toString('hex'), known[algorithm], algorithm);
  }
});

test('a checksum does not depend on how the bytes were cut', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 50 })),
      fc.constantFrom(...CHECKSUM_ALGORITHMS),
      (pieces, algorithm) => {
        const running = runningChecksum(algorithm);
        for (const piece of pieces) running.update(piece);
        assert.equal(running.digest(), checksum(algorithm, Buffer.concat(pieces)));
      },
    ),
    { seed: seedOf(t) },
  );
});

test('each checksum is checked when it comes in a header, and given back', async () => {
  await using door = await aBucket();
  for (const algorithm of CHECKSUM_ALGORITHMS) {
    const name = `x-amz-checksum-${algorithm}`;
    await refused(door, { body: 'hello', headers: { [name]: checksum(algorithm, 'jello') } }, 'BadDigest');
    await refused(door, { body: 'hello', headers: { [name]: 'AAAA' } }, 'InvalidRequest');
    const good = await put(door, { body: 'hello', headers: { [name]: checksum(algorithm, 'hello') } });
    assert.deepEqual([good.status, good.headers[name]], [200, checksum(algorithm, 'hello')]);
    assert.equal(good.headers['x-amz-checksum-type'], 'FULL_OBJECT');
    const got = await door.ask('GET', '/bucket/k', { headers: { 'x-amz-checksum-mode': 'ENABLED' } });
    assert.equal(got.headers[name], checksum(algorithm, 'hello'));
    assert.equal((await door.ask('GET', '/bucket/k')).headers[name], undefined);
    await door.ask('DELETE', '/bucket/k');
  }
});

test('one checksum is enough, and one that was promised must come', async () => {
  await using door = await aBucket();
  const two = { 'x-amz-checksum-crc32': checksum('crc32', 'hello'), 'x-amz-checksum-sha1': checksum('sha1', 'hello') };
  await refused(door, { body: 'hello', headers: two }, 'InvalidRequest');
  await refused(door, { body: 'hello', headers: { 'x-amz-sdk-checksum-algorithm': 'CRC32' } }, 'InvalidRequest');
  await refused(door, { body: 'hello', headers: { 'x-amz-checksum-md4': 'AAAA' } }, 'InvalidRequest');
  await refused(door, { body: 'hello', headers: { 'x-amz-trailer': 'x-amz-checksum-crc32' } }, 'InvalidRequest');
});

test('Content-MD5 is checked', async () => {
  await using door = await aBucket();
  const md5 = createHash('md5').update('hello').digest('base64');
  await refused(door, { body: 'jello', headers: { 'content-md5': md5 } }, 'BadDigest');
  await refused(door, { body: 'hello', headers: { 'content-md5': 'nonsense' } }, 'InvalidDigest');
  assert.equal((await put(door, { body: 'hello', headers: { 'content-md5': md5 } })).status, 200);
});

test('the SHA-256 that was signed is checked; an unsigned payload is not', async () => {
  await using door = await aBucket();
  const other = createHash('sha256').update('jello').digest('hex');
  await refused(door, { body: 'hello', payload: other }, 'XAmzContentSHA256Mismatch');
  await refused(door, { body: 'hello', payload: 'STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD' }, 'NotImplemented');
  assert.equal((await put(door, { body: 'hello', payload: 'UNSIGNED-PAYLOAD' })).status, 200);
});

function framed(text: string, trailer = ''): string {
  return `${text.length.toString(16)}\r\n${text}\r\n0\r\n${trailer}\r\n`;
}

const TRAILED = {
  payload: 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
  headers: {
    'content-encoding': 'aws-chunked',
    'x-amz-decoded-content-length': '5',
    'x-amz-trailer': 'x-amz-checksum-crc32',
  },
};

test('a checksum is checked when it comes in the trailer, and given back', async () => {
  await using door = await aBucket();
  const trailer = `x-amz-checksum-crc32:${checksum('crc32', 'hello')}\r\n`;
  await refused(door, { ...TRAILED, body: framed('jello', trailer) }, 'BadDigest');
  await refused(door, { ...TRAILED, body: framed('hello') }, 'InvalidRequest');
  await refused(door, { ...TRAILED, body: framed('hell', trailer) }, 'IncompleteBody');
  await refused(door, { ...TRAILED, body: 'hello' }, 'IncompleteBody');
  await refused(door, { ...TRAILED, body: 'hello\r\n' }, 'InvalidRequest');
  await refused(door, { ...TRAILED, body: '5\r\nhel' }, 'IncompleteBody');
  const good = await put(door, { ...TRAILED, body: framed('hello', trailer) });
  assert.deepEqual([good.status, good.headers['x-amz-checksum-crc32']], [200, checksum('crc32', 'hello')]);
  const got = await door.ask('GET', '/bucket/k');
  assert.deepEqual([got.text, got.headers['content-encoding']], ['hello', undefined]);
});

test('a decoded length must be there, and be one', async () => {
  await using door = await aBucket();
  const { 'x-amz-decoded-content-length': _, ...without } = TRAILED.headers;
  await refused(door, { ...TRAILED, headers: without, body: framed('hello') }, 'MissingContentLength');
  for (const length of ['-5', '5.0', 'five', '']) {
    const headers = { ...TRAILED.headers, 'x-amz-decoded-content-length': length };
    await refused(door, { ...TRAILED, headers, body: framed('hello') }, 'InvalidArgument');
  }
});

test('more than 5 GiB in one request is refused before a byte is read', async () => {
  await using door = await aBucket();
  const headers = { ...TRAILED.headers, 'x-amz-decoded-content-length': String(5 * 1024 ** 3 + 1) };
  await refused(door, { ...TRAILED, headers, body: framed('hello') }, 'EntityTooLarge');
});

test('a large body streams through both framings and comes back byte by byte', async () => {
  await using door = await aBucket();
  const bytes = Buffer.alloc(3_000_001, 'some bytes that repeat ');
  const etag = `"${createHash('md5').update(bytes).digest('hex')}"`;
  assert.equal((await put(door, { body: bytes })).headers['etag'], etag);
  assert.deepEqual((await door.ask('GET', '/bucket/k')).bytes, bytes);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 100_000) {
    const chunk = bytes.subarray(at, at + 100_000);
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n'));
  }
  chunks.push(Buffer.from(`0\r\nx-amz-checksum-crc32:${sum.toString('base64')}\r\n\r\n`));
  const headers = { ...TRAILED.headers, 'x-amz-decoded-content-length': String(bytes.length) };
  const answer = await door.ask('PUT', '/bucket/l', { ...TRAILED, headers, body: Buffer.concat(chunks) });
  assert.equal(answer.headers['etag'], etag, answer.text);
  const range = await door.ask('GET', '/bucket/l', { headers: { range: 'bytes=65530-200000' } });
  assert.deepEqual(range.bytes, bytes.subarray(65_530, 200_001));
});
