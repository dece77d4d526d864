import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { chunkSums, crc32c, utf8 } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { FLAG, KIND } from './entry.ts';
import {
  bodyFits,
  entryBytesOf,
  findMagic,
  headBytesOf,
  keyOf,
  metaOf,
  packSeal,
  readHead,
  SEAL_BYTES,
  stampHead,
  sumsOf,
  unpackSeal,
  ungrouped,
  writeHead,
} from './entry-format.ts';

const EXAMPLE = {
  salt: 0x5eed1234,
  volume: 3,
  place: 4_096,
  fields: {
    kind: KIND.RECORD,
    flags: FLAG.LATEST_ONLY,
    policy: 1,
    group: 0x0a2f,
    tenure: 0,
    sequence: 42,
    ballot: 7,
    commit: 41,
    timeMs: 0x0193a5c2d100,
    timeCount: 1,
    hashHigh: 0x8f3ac1d2,
    hashLow: 0x0b77e654,
  },
  key: Uint8Array.from([0, 0, 0, 9, ...utf8('notes/a.txt')]),
  meta: utf8('{"t":"text/plain"}'),
  body: utf8('hello, webdfs\n'),
};

function packExample(): Buffer {
  const { salt, volume, place, fields, key, meta, body } = EXAMPLE;
  const headBytes = headBytesOf(key.length, meta.length, body.length);
  const bytes = Buffer.alloc(entryBytesOf({ headBytes, bodyBytes: body.length }));
  writeHead(bytes, 0, fields, { key, meta, sums: chunkSums(body), bodyBytes: body.length });
  stampHead(bytes, 0, headBytes, { salt, volume, place, durable: place });
  bytes.set(body, headBytes);
  return bytes;
}

/** Bytes of the first hex dump of a page: lines of `offset  bytes  text`. */
async function dumpOf(page: string): Promise<Buffer> {
  const text = await readFile(new URL(`../../../docs/formats/${page}`, import.meta.url), 'utf8');
  const lines = text.split('\n').filter((line) => /^[0-9a-f]{4} {2}[0-9a-f]{2} /.test(line));
  return Buffer.from(lines.map((line) => line.slice(6, 54).replaceAll(' ', '')).join(''), 'hex');
}

test('the worked example of the format page is what the codec writes and reads', async () => {
  const dump = await dumpOf('volume.md');
  assert.deepEqual(packExample().toString('hex'), dump.toString('hex'));
  const { salt, volume, place, fields } = EXAMPLE;
  const head = readHead(dump, 0, { salt, volume, place })!;
  assert.deepEqual(
    { ...head },
    { ...fields, headBytes: 136, bodyBytes: 14, keyBytes: 15, metaBytes: 18, volume, place, durable: place },
  );
  assert.equal(Buffer.from(keyOf(dump, 0, head)).toString('latin1'), '\0\0\0\tnotes/a.txt');
  assert.equal(Buffer.from(metaOf(dump, 0, head)).toString(), '{"t":"text/plain"}');
  assert.deepEqual([...sumsOf(dump, 0, head)], [0x21d37b4c]);
  assert.equal(dump.toString('latin1', head.headBytes, head.headBytes + head.bodyBytes), 'hello, webdfs\n');
  assert.equal(dump.length, 152);
});

test('an entry is itself only in its own volume, at its own place', () => {
  const bytes = packExample();
  const { salt, volume, place } = EXAMPLE;
  assert.notEqual(readHead(bytes, 0, { salt, volume, place }), undefined);
  assert.equal(readHead(bytes, 0, { salt: salt + 1, volume, place }), undefined);
  assert.equal(readHead(bytes, 0, { salt, volume: volume + 1, place }), undefined);
  assert.equal(readHead(bytes, 0, { salt, volume, place: place + 8 }), undefined);
});

test('a head with any bit turned is refused', (t) => {
  const random = randomOf(t);
  const bytes = packExample();
  const { salt, volume, place } = EXAMPLE;
  for (let i = 0; i < 500; i++) {
    const copy = Buffer.from(bytes);
    const at = random.below(136);
    copy[at]! ^= 1 << random.below(8);
    assert.equal(readHead(copy, 0, { salt, volume, place }), undefined, `byte ${at}`);
  }
});

test('lengths beyond the limits are no head, whatever the checksum says', () => {
  const { salt, volume, place } = EXAMPLE;
  for (const [offset, value] of [
    [16, 1_048_577],
    [24, 16_385],
    [12, 144],
  ] as const) {
    const bytes = packExample();
    bytes.writeUInt32LE(value, offset);
    bytes.writeUInt32LE(crc32c(bytes.subarray(8, 136), salt), 4);
    assert.equal(readHead(bytes, 0, { salt, volume, place }), undefined);
  }
});

test('an unknown kind or flag, and a durable beyond the place, are refused', () => {
  const { salt, volume, place } = EXAMPLE;
  const changes: ((bytes: Buffer) => void)[] = [
    (bytes) => bytes.writeUInt8(11, 9),
    (bytes) => bytes.writeUInt16LE(0x0100, 10),
    (bytes) => bytes.writeUInt32LE(place / 8 + 1, 40),
    (bytes) => bytes.writeUInt8(2, 8),
  ];
  for (const change of changes) {
    const bytes = packExample();
    change(bytes);
    bytes.writeUInt32LE(crc32c(bytes.subarray(8, 136), salt), 4);
    assert.equal(readHead(bytes, 0, { salt, volume, place }), undefined);
  }
});

test('every chunk of a body is checked', (t) => {
  const random = randomOf(t);
  const body = random.bytes(200_000);
  const sums = chunkSums(body);
  assert.equal(bodyFits(body, sums), true);
  for (let i = 0; i < 20; i++) {
    const copy = body.slice();
    copy[random.below(copy.length)]! ^= 1;
    assert.equal(bodyFits(copy, sums), false);
  }
  assert.equal(bodyFits(body.subarray(0, 65_536), sums), false);
});

test('a seal says where a file ends', () => {
  const seal = packSeal({ salt: 9, volume: 4, place: 8_000, end: 7_992 });
  assert.equal(seal.length, SEAL_BYTES);
  assert.equal(unpackSeal(seal, { salt: 9, volume: 4, place: 8_000 }), 7_992);
  assert.equal(unpackSeal(seal, { salt: 9, volume: 4, place: 8_008 }), undefined);
  assert.equal(unpackSeal(packExample(), { salt: EXAMPLE.salt, volume: 3, place: 4_096 }), undefined);
});

test('magic counts only at multiples of eight of the file', () => {
  const bytes = Buffer.alloc(64);
  bytes.write('WDE1', 5);
  bytes.write('WDE1', 28);
  assert.equal(findMagic(bytes, 0, 0), -1);
  assert.equal(findMagic(bytes, 0, 4), 28);
  assert.equal(findMagic(bytes, 29, 4), -1);
});

test('entries outside a group have no place in one', () => {
  const { group, policy, sequence } = ungrouped(KIND.SYNC_MARK, 5);
  assert.deepEqual({ group, policy, sequence }, { group: 0, policy: 0, sequence: 0 });
});
