import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { concat } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { checkChecksum, type ChecksumName, runningChecksum, wholeChecksum } from './composite-checksums.ts';

const parts = fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 8 });
const crcs: ChecksumName[] = ['crc32', 'crc32c', 'crc64nvme'];

function digest(name: ChecksumName, bytes: Uint8Array): Uint8Array {
  const running = runningChecksum(name);
  running.update(bytes);
  return running.digest();
}

function base64(name: ChecksumName, bytes: Uint8Array): string {
  return Buffer.from(digest(name, bytes)).toString('base64');
}

test('the checksum of the whole is combined from those of its parts', (t) => {
  fc.assert(
    fc.property(parts, fc.constantFrom(...crcs), (pieces, name) => {
      const known = pieces.map((bytes) => ({ checksum: base64(name, bytes), size: bytes.length }));
      assert.equal(wholeChecksum(name, 'FULL_OBJECT', known), base64(name, concat(pieces)));
    }),
    { seed: seedOf(t), numRuns: 500 },
  );
});

test('long parts of one size are combined as well', () => {
  for (const name of crcs) {
    const pieces = [1, 2, 3].map((value) => new Uint8Array(1_000_003).fill(value));
    const known = pieces.map((bytes) => ({ checksum: base64(name, bytes), size: bytes.length }));
    assert.equal(wholeChecksum(name, 'FULL_OBJECT', known), base64(name, concat(pieces)));
  }
});

test('a composite checksum is that of the parts’ checksums, and says how many they are', (t) => {
  fc.assert(
    fc.property(parts, fc.constantFrom<ChecksumName>('crc32', 'crc32c', 'sha1', 'sha256'), (pieces, name) => {
      const known = pieces.map((bytes) => ({ checksum: base64(name, bytes), size: bytes.length }));
      const expected = base64(name, concat(pieces.map((bytes) => digest(name, bytes))));
      assert.equal(wholeChecksum(name, 'COMPOSITE', known), `${expected}-${pieces.length}`);
    }),
    { seed: seedOf(t) },
  );
});

test('check values of the algorithms', () => {
  const nine = new TextEncoder().encode('123456789');
  assert.equal(base64('crc32', nine), Buffer.from('cbf43926', 'hex').toString('base64'));
  assert.equal(base64('crc32c', nine), Buffer.from('e3069283', 'hex').toString('base64'));
  assert.equal(base64('crc64nvme', nine), Buffer.from('ae8b14860a799888', 'hex').toString('base64'));
});

test('pairs that S3 does not know, and checksums of a wrong length, are refused', () => {
  for (const [name, type] of [
    ['md5', 'COMPOSITE'],
    ['sha256', 'FULL_OBJECT'],
    ['crc64nvme', 'COMPOSITE'],
    ['crc32', 'HALF'],
  ]) {
    assert.throws(() => checkChecksum(name!, type!), { code: 'INVALID' });
  }
  checkChecksum('crc32', 'FULL_OBJECT');
  assert.throws(() => wholeChecksum('crc32', 'COMPOSITE', [{ checksum: 'AAAA', size: 1 }]), { code: 'INVALID' });
});
