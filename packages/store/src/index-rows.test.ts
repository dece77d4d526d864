import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import fc from 'fast-check';
import { asGroupId, asPolicyId, compareBytes, type GroupKey } from '@webdfs/base';
import {
  afterPrefix,
  blockRowKey,
  blockState,
  groupPrefix,
  orderRowKey,
  packBlock,
  packBlockGone,
  packOrder,
  packPiece,
  packPieceKey,
  packRecord,
  recordRowKey,
  ROW,
  tombstoneRowKey,
  unpackBlock,
  unpackBlockKey,
  unpackOrder,
  unpackOrderKey,
  unpackPiece,
  unpackPieceKey,
  unpackRecord,
  unpackTombstoneKey,
} from './index-rows.ts';
import {
  groupRowKey,
  noteRowKey,
  packDamage,
  packGroup,
  packNote,
  packRequests,
  packVolume,
  pendingRowKey,
  requestsRowKey,
  timeOfRequestsRow,
  unpackDamage,
  unpackGroup,
  unpackGroupKey,
  unpackNote,
  unpackPendingKey,
  unpackRequests,
  unpackVolume,
} from './state-rows.ts';

const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
const u48 = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const u53 = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const place = fc.integer({ min: 0, max: 0xffff_ffff }).map((eighths) => eighths * 8);
const bytes = (length: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: length, maxLength: length });
const group: fc.Arbitrary<GroupKey> = fc.record({
  policy: fc.integer({ min: 0, max: 65_535 }).map(asPolicyId),
  group: u32.map(asGroupId),
});
const entryPlace = { volume: u32, place, entryBytes: u32 };

/** Equal but for the class of byte arrays. */
function same(actual: unknown, expected: unknown): void {
  assert.deepEqual(plain(actual), plain(expected));
}

function plain(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return [...(value as Uint8Array)];
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
}

test('rows come back as they were packed', () => {
  const record = fc.tuple(
    group,
    fc.record({
      ...entryPlace,
      sequence: u48,
      flags: fc.nat(65_535),
      timeMs: u48,
      hashHigh: u32,
      hashLow: u32,
      summary: bytes(32),
    }),
  );
  fc.assert(
    fc.property(record, ([key, value]) => same(unpackRecord(packRecord({ ...key, ...value })), { ...key, ...value })),
  );
  fc.assert(
    fc.property(u48, fc.boolean(), (sequence, tombstone) =>
      same(unpackOrder(packOrder({ sequence, tombstone })), { sequence, tombstone }),
    ),
  );
  const piece = fc.record({ volume: u32, place, headBytes: u32, length: u32 });
  const block = fc.record({
    ...entryPlace,
    size: fc.constant(200_000),
    sequence: u48,
    flags: fc.nat(65_535),
    timeMs: u48,
    hashHigh: u32,
    hashLow: u32,
    generation: u32,
    pieces: fc.array(piece, { maxLength: 9 }),
    sums: fc.array(u32, { minLength: 4, maxLength: 4 }).map((sums) => Uint32Array.from(sums)),
  });
  fc.assert(fc.property(block, (value) => same(unpackBlock(packBlock(value)), value)));
  fc.assert(fc.property(group, piece, (key, value) => same(unpackPiece(packPiece(key, value)), { ...key, ...value })));
  const requests = fc.array(
    fc
      .tuple(group, fc.record({ requestId: bytes(16), sequence: u48, ballot: u53 }))
      .map(([key, facts]) => ({ ...key, ...facts })),
  );
  fc.assert(fc.property(requests, (value) => same(unpackRequests(packRequests(value)), value)));
  const note = fc.record({
    ...entryPlace,
    sequence: u48,
    removed: fc.boolean(),
    value: fc.uint8Array({ maxLength: 50 }),
  });
  fc.assert(fc.property(note, (value) => same(unpackNote(packNote(value)), value)));
});

test('state rows come back as they were packed', () => {
  const groupValue = fc.record({
    last: u53,
    lastBallot: u53,
    commit: u53,
    commitBallot: u53,
    proven: u53,
    objects: u53,
    blocks: u53,
    bytes: u53,
    digest: u48,
    tenure: u32,
    dropping: fc.boolean(),
    markPlace: fc.record(entryPlace),
    markText: fc.uint8Array({ maxLength: 40 }),
  });
  fc.assert(fc.property(groupValue, (value) => same(unpackGroup(packGroup(value)), value)));
  const volume = fc.record({
    applied: u53,
    end: u53,
    size: u53,
    live: u53,
    tombstones: u53,
    entries: u32,
    horizon: u32,
    state: fc.constantFrom('open', 'sealed', 'gone'),
    lane: fc.constantFrom(0, 1, 2),
  });
  fc.assert(fc.property(volume, (value) => same(unpackVolume(packVolume(value as never)), value)));
  const damage = { length: 5, foundMs: 6, what: 'x', headLost: true, key: 'abcd', policy: 1, group: 2 };
  same(unpackDamage(packDamage(damage)), damage);
});

test('keys come back as they were packed', () => {
  const order = fc
    .tuple(group, fc.record({ hashHigh: u32, hashLow: u32, key: fc.uint8Array() }))
    .map(([key, rest]) => ({ ...key, ...rest }));
  fc.assert(fc.property(order, (value) => same(unpackOrderKey(orderRowKey(value)), value)));
  fc.assert(fc.property(group, bytes(20), (key, id) => same(unpackBlockKey(blockRowKey(key, id)), { ...key, id })));
  const piece = fc.record({ id: bytes(20), generation: u32, offset: u32 });
  fc.assert(fc.property(piece, (value) => same(unpackPieceKey(packPieceKey(value)), value)));
  fc.assert(
    fc.property(group, u53, u53, (key, sequence, ballot) =>
      same(unpackPendingKey(pendingRowKey({ ...key, sequence, ballot })), { ...key, sequence, ballot }),
    ),
  );
  fc.assert(fc.property(group, (key) => same(unpackGroupKey(groupRowKey(key)), key)));
  fc.assert(
    fc.property(u48, fc.uint8Array({ minLength: 2 }), (timeMs, rowKey) =>
      same(unpackTombstoneKey(tombstoneRowKey(timeMs, rowKey)), { timeMs, rowKey }),
    ),
  );
  assert.equal(timeOfRequestsRow(requestsRowKey(1_800_000_000_123.7, 9)), 1_800_000_000_123);
  assert.equal(unpackPieceKey(new Uint8Array(27)), undefined);
});

test('rows of records sort like their keys, those of a group by hash, then key', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
      assert.equal(Math.sign(compareBytes(recordRowKey(a), recordRowKey(b))), Math.sign(compareBytes(a, b)));
    }),
  );
  const key = { policy: asPolicyId(1), group: asGroupId(2) };
  fc.assert(
    fc.property(u32, u32, fc.uint8Array(), fc.uint8Array(), (one, two, a, b) => {
      const first = orderRowKey({ ...key, hashHigh: one, hashLow: 0, key: a });
      const second = orderRowKey({ ...key, hashHigh: two, hashLow: 0, key: b });
      const expected = one === two ? Math.sign(compareBytes(a, b)) : Math.sign(one - two);
      assert.equal(Math.sign(compareBytes(first, second)), expected);
    }),
  );
});

test('everything that begins with a prefix lies between it and what comes after it', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), fc.uint8Array(), (prefix, rest) => {
      const after = afterPrefix(prefix);
      const inside = Uint8Array.from([...prefix, ...rest]);
      if (after === undefined) assert.ok(prefix.every((byte) => byte === 0xff));
      else assert.ok(compareBytes(prefix, inside) <= 0 && compareBytes(inside, after) < 0);
    }),
  );
  assert.equal(afterPrefix(Uint8Array.of(0xff, 0xff)), undefined);
  assert.equal(groupPrefix(ROW.ORDER, { policy: asPolicyId(1), group: asGroupId(2) }).length, 7);
});

test('the row of a block that is gone says so, and holds no block', () => {
  const row = packBlockGone({ sequence: 77, timeMs: 5 });
  assert.deepEqual(blockState(row), { sequence: 77, gone: true });
  assert.equal(unpackBlock(row), undefined);
});

test('rows of a wrong length are refused', () => {
  for (const unpack of [unpackRecord, unpackOrder, unpackBlock, unpackPiece, unpackGroup, unpackVolume, unpackNote]) {
    assert.throws(() => unpack(new Uint8Array(5)), { code: 'CORRUPT' }, unpack.name);
  }
  assert.throws(() => unpackRequests(new Uint8Array(37)), { code: 'CORRUPT' });
  assert.throws(() => unpackOrderKey(new Uint8Array(14)), { code: 'CORRUPT' });
  assert.equal(noteRowKey({ policy: asPolicyId(1), group: asGroupId(2) }, new Uint8Array(3)).length, 10);
});

test('the worked example of the format page is what the codec writes', async () => {
  const text = await readFile(new URL('../../../docs/formats/index.md', import.meta.url), 'utf8');
  const lines = text.split('\n').filter((line) => /^[0-9a-f]{4} {2}[0-9a-f]{2} /.test(line));
  const dump = lines.map((line) => line.slice(6, 54).replaceAll(' ', '')).join('');
  const value = unpackRecord(Buffer.from(dump, 'hex'));
  same(value, {
    volume: 3,
    place: 4_096,
    entryBytes: 152,
    sequence: 42,
    flags: 1,
    timeMs: 0x0193a5c2d100,
    policy: 1,
    group: 0x0a2f,
    hashHigh: 0x8f3ac1d2,
    hashLow: 0x0b77e654,
    summary: new Uint8Array(32).fill(5),
  });
  assert.equal(packRecord(value).toString('hex'), dump);
  const key = Uint8Array.from([0, 0, 0, 9, ...new TextEncoder().encode('notes/a.txt')]);
  const shown = /key `(72 [0-9a-f ]+)`/.exec(text)![1]!;
  assert.equal(recordRowKey(key).toString('hex'), shown.replaceAll(' ', ''));
});
