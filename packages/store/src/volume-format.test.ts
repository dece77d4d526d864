import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32c } from '@webdfs/base';
import { LANE, packVolumeHead, unpackVolumeHead, volumeFileName, volumeOfFileName } from './volume-format.ts';

const HEAD = {
  lane: LANE.BULK,
  volume: 12,
  salt: 0xfedcba98,
  storeId: '0123456789abcdef'.repeat(2),
  madeAtMs: 1_796_058_849_148,
};

test('the head of a volume comes back as it was written', () => {
  const bytes = packVolumeHead(HEAD);
  assert.equal(bytes.length, 64);
  assert.deepEqual(unpackVolumeHead(bytes, 12, HEAD.storeId), HEAD);
});

test('a head of another volume, another store, or with a bit turned is none', () => {
  const bytes = packVolumeHead(HEAD);
  assert.equal(unpackVolumeHead(bytes, 13, HEAD.storeId), undefined);
  assert.equal(unpackVolumeHead(bytes, 12, 'f'.repeat(32)), undefined);
  for (let at = 0; at < 64; at++) {
    const copy = Uint8Array.from(bytes);
    copy[at]! ^= 0x10;
    assert.equal(unpackVolumeHead(copy, 12, HEAD.storeId), undefined, `byte ${at}`);
  }
  assert.equal(unpackVolumeHead(bytes.subarray(0, 63), 12, HEAD.storeId), undefined);
});

test('a newer format is refused by name', () => {
  const bytes = Buffer.from(packVolumeHead(HEAD));
  bytes.writeUInt16LE(2, 8);
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, 60)), 60);
  assert.throws(() => unpackVolumeHead(bytes, 12, HEAD.storeId), {
    code: 'NEWER_FORMAT',
    message: 'volume 12 has format 2, this program knows 1: upgrade the node',
  });
});

test('names of volumes have at least eight digits', () => {
  assert.equal(volumeFileName(7), '00000007.vol');
  assert.equal(volumeFileName(123_456_789), '123456789.vol');
  assert.equal(volumeOfFileName('00000007.vol'), 7);
  assert.equal(volumeOfFileName('123456789.vol'), 123_456_789);
  for (const name of ['7.vol', '000000007.vol', '0000000x.vol', '00000007.vol.new', '9999999999.vol']) {
    assert.equal(volumeOfFileName(name), undefined, name);
  }
});
