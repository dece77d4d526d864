import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asPolicyId, chunkSums, concat, EMPTY, toHex, utf8, WebdfsError } from '@webdfs/base';
import { randomOf, seedOf } from '@webdfs/base/testing';
import type { Message } from '@webdfs/wire';
import * as fc from 'fast-check';
import { Attachment } from './attachment.ts';
import {
  decodePutBlock,
  decodePutBlockAnswer,
  decodeReadBlock,
  encodePutBlock,
  encodePutBlockAnswer,
  encodeReadBlock,
  packBlockOwner,
  unpackBlockOwner,
} from './block-codec.ts';
import {
  decodeListAnswer,
  decodeListRequest,
  encodeListAnswer,
  encodeListRequest,
  GroupSet,
  type NodeListRequest,
} from './list-codec.ts';
import {
  decodeReadAnswer,
  decodeReadRequest,
  decodeWriteAnswer,
  decodeWriteRequest,
  encodeReadAnswer,
  encodeReadRequest,
  encodeWriteAnswer,
  encodeWriteRequest,
  MAX_CONDITION_TAGS,
  MAX_REQUIREMENTS,
} from './request-codec.ts';
import type { ListRow, WriteRequest } from './requests.ts';
import { decodeStatusAnswer, encodeStatusAnswer } from './status-codec.ts';
import {
  decodeVerifyAnswer,
  decodeVerifyRequest,
  encodeVerifyAnswer,
  encodeVerifyRequest,
  MAX_VERIFY_ITEMS,
} from './verify-codec.ts';

const bytes = (length: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: length, maxLength: length });
const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
const u53 = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const key = fc.uint8Array({ minLength: 4, maxLength: 80 });
const group = { policy: fc.integer({ min: 1, max: 65_535 }).map(asPolicyId), group: u32.map(asGroupId) };
const tags = fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { maxLength: 3 });

const writeRequest: fc.Arbitrary<WriteRequest> = fc
  .record({
    ...group,
    requestId: bytes(16),
    ageMs: u32,
    kind: fc.constantFrom('put' as const, 'delete' as const),
    key,
    hashHigh: u32,
    hashLow: u32,
    conditions: fc.record({ ifMatch: tags, ifNoneMatch: tags }, { requiredKeys: [] }),
    requires: fc.array(fc.record({ key, sequence: fc.integer({ min: -1, max: 1_000_000 }) }), { maxLength: 5 }),
    closes: fc.option(key, { nil: undefined }),
    summary: bytes(32),
    owner: fc.uint8Array({ maxLength: 100 }),
    body: fc.uint8Array({ maxLength: 300 }),
  })
  .map(({ closes, ...rest }) => ({
    ...rest,
    ...(closes === undefined ? {} : { closes }),
    summary: rest.kind === 'put' ? rest.summary : EMPTY,
  }));

/** With every run of bytes in hexadecimal, so that views and copies compare. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, field: unknown) => (field instanceof Uint8Array ? toHex(field) : field)));
}

/** The same message as a transport may deliver it: the attached bytes cut anywhere. */
function recut(message: Message, cuts: readonly number[]): Message {
  const all = concat(message.attached);
  const bounds = [0, ...cuts.map((cut) => cut % (all.length + 1)), all.length].toSorted((a, b) => a - b);
  return { head: message.head, attached: bounds.slice(1).map((end, i) => all.subarray(bounds[i]!, end)) };
}

test('a write request comes back as it was, whatever pieces its attachment arrives in', (t) => {
  const property = fc.property(writeRequest, u53, fc.array(fc.nat(), { maxLength: 4 }), (request, revision, cuts) => {
    const arrived = decodeWriteRequest(recut(encodeWriteRequest(request, revision), cuts));
    assert.equal(arrived.revision, revision);
    assert.deepEqual(arrived.sums, chunkSums(request.body));
    assert.deepEqual(plain(arrived.request), plain(request));
    assert.equal('closes' in arrived.request, 'closes' in request);
  });
  fc.assert(property, { seed: seedOf(t) });
});

test('a body of several chunks is handed over without a copy and with a checksum for each chunk', () => {
  const body = new Uint8Array(150_000).fill(7);
  const request = { ...aWrite(), body };
  const arrived = decodeWriteRequest(encodeWriteRequest(request, 1));
  assert.equal(arrived.request.body, body);
  assert.equal(arrived.sums.length, 3);
});

test('a flipped bit anywhere in the attachment is refused as CORRUPT', (t) => {
  const random = randomOf(t);
  const request = { ...aWrite(), body: random.bytes(70_000), owner: random.bytes(99) };
  const message = encodeWriteRequest(request, 1);
  for (let i = 0; i < 200; i++) {
    const whole = Uint8Array.from(Buffer.concat(message.attached));
    whole[random.below(whole.length)]! ^= 1 << random.below(8);
    assert.throws(
      () => decodeWriteRequest({ head: message.head, attached: [whole] }),
      (error) => error instanceof WebdfsError && error.code === 'CORRUPT',
    );
  }
});

test('the parts of the largest upload fit as requirements, one more is TOO_LARGE', () => {
  const requires = Array.from({ length: MAX_REQUIREMENTS }, (_, i) => ({
    key: utf8(`hidden/${'k'.repeat(1_024)}/upload/${String(i).padStart(5, '0')}`),
    sequence: i - 1,
  }));
  const { request } = decodeWriteRequest(encodeWriteRequest({ ...aWrite(), requires }, 1));
  assert.equal(request.requires.length, MAX_REQUIREMENTS);
  assert.equal(request.requires[0]!.sequence, -1);
  assert.deepEqual(Buffer.from(request.requires.at(-1)!.key), Buffer.from(requires.at(-1)!.key));
  assert.throws(() => encodeWriteRequest({ ...aWrite(), requires: [...requires, requires[0]!] }, 1), {
    code: 'TOO_LARGE',
  });
});

test('more ETags than the limit are refused, an empty list stays a condition', () => {
  const ifMatch = Array.from({ length: MAX_CONDITION_TAGS + 1 }, () => 'e');
  assert.throws(() => encodeWriteRequest({ ...aWrite(), conditions: { ifMatch } }, 1), { code: 'TOO_LARGE' });
  const long = { ifMatch: ['e'.repeat(129)] };
  assert.throws(() => encodeWriteRequest({ ...aWrite(), conditions: long }, 1), { code: 'TOO_LARGE' });
  const { request } = decodeWriteRequest(encodeWriteRequest({ ...aWrite(), conditions: { ifMatch: [] } }, 1));
  assert.deepEqual(request.conditions, { ifMatch: [] });
});

test('answers to writes and reads come back as they were, absence included', () => {
  const replaced = { sequence: 4, summary: new Uint8Array(32).fill(3) };
  const answer = { sequence: 5, ballot: 2 ** 41, modifiedMs: 1_800_000_000_000, replaced };
  assert.deepEqual(decodeWriteAnswer(encodeWriteAnswer(answer)), answer);
  const first = { ...answer, replaced: undefined };
  assert.deepEqual(decodeWriteAnswer(encodeWriteAnswer(first)), first);
  const read = { sequence: 9, modifiedMs: 7, flags: 513, summary: replaced.summary, owner: utf8('o'), body: utf8('b') };
  assert.deepEqual(decodeReadAnswer(encodeReadAnswer(read)), read);
  assert.equal(decodeReadAnswer(encodeReadAnswer(undefined)), undefined);
  const request = { policy: asPolicyId(1), group: asGroupId(9), key: utf8('key'), entry: true };
  assert.deepEqual(decodeReadRequest(encodeReadRequest(request, 12)), { request, revision: 12 });
});

test('a page of a listing comes back with its rows, prefixes, and the groups it covers', () => {
  const covered = new GroupSet(4_096);
  for (const one of [0, 7, 8, 4_095]) covered.add(one);
  const row = { prefix: false, sequence: 3, modifiedMs: 5, flags: 0, summary: new Uint8Array(32).fill(1) };
  const rows: ListRow[] = [
    { ...row, key: utf8('0000a/b') },
    { ...row, key: utf8('0000a/c/'), prefix: true, sequence: 0, modifiedMs: 0, summary: EMPTY },
    { ...row, key: utf8('0000b') },
  ];
  const answer = decodeListAnswer(encodeListAnswer({ rows, covered, next: utf8('0000b\0'), revision: 77 }));
  assert.deepEqual(answer.rows, rows);
  assert.deepEqual(answer.covered.missing(4_096).length, 4_092);
  assert.equal(answer.covered.has(4_095), true);
  assert.equal(answer.revision, 77);
  const request: NodeListRequest = {
    policy: asPolicyId(2),
    from: utf8('a'),
    before: utf8('b'),
    take: 1_000,
    collapse: { prefixLength: 6, delimiter: utf8('/') },
    groups: covered,
  };
  assert.deepEqual(decodeListRequest(encodeListRequest(request, 3)), { request, revision: 3 });
  assert.throws(() => decodeListRequest(encodeListRequest({ ...request, take: 1_001 }, 3)), { code: 'INVALID' });
});

test('a set of groups names those it lacks, up to a limit', (t) => {
  const property = fc.property(
    fc.uniqueArray(fc.nat({ max: 255 })),
    fc.integer({ min: 1, max: 256 }),
    (some, limit) => {
      const set = new GroupSet(256);
      for (const one of some) set.add(one);
      const lacking = Array.from({ length: 256 }, (_, i) => i).filter((i) => !some.includes(i));
      assert.deepEqual(set.missing(256, limit), lacking.slice(0, limit));
    },
  );
  fc.assert(property, { seed: seedOf(t) });
});

test('heads of blocks, verification and status come back as they were', () => {
  const id = new Uint8Array(20).fill(9);
  const bare = { policy: asPolicyId(1), group: asGroupId(3), id };
  const put = { ...bare, key: utf8('0000key'), uploadId: new Uint8Array(16) };
  assert.deepEqual(decodePutBlock(encodePutBlock(put, 8)), { request: put, revision: 8 });
  const answer = { size: 100_000, sums: Uint32Array.of(1, 0xffff_ffff) };
  assert.deepEqual(decodePutBlockAnswer(encodePutBlockAnswer(answer)), answer);
  const read = { ...bare, offset: 65_536, length: 4_096 };
  assert.deepEqual(decodeReadBlock(encodeReadBlock(read, 8)), { request: read, revision: 8 });
  const owner = { key: put.key, uploadId: put.uploadId };
  assert.deepEqual(unpackBlockOwner(packBlockOwner(owner)), owner);
  const items = [
    { ...bare, type: 'block' as const },
    { ...bare, type: 'record' as const, id: utf8('0000key') },
  ];
  assert.deepEqual(decodeVerifyRequest(encodeVerifyRequest(items)), items);
  assert.throws(() => encodeVerifyRequest(Array.from({ length: MAX_VERIFY_ITEMS + 1 }, () => items[0]!)), {
    code: 'TOO_LARGE',
  });
  const results = [
    { state: 'absent' as const, sequence: 0, size: 0 },
    { state: 'damaged' as const, sequence: 5, size: 10 },
  ];
  assert.deepEqual(decodeVerifyAnswer(encodeVerifyAnswer(results)), results);
  assert.throws(() => decodeStatusAnswer(encodeStatusAnswer({} as never)), { code: 'CORRUPT' });
});

const DECODERS: Record<string, (message: Message) => unknown> = {
  decodeWriteRequest,
  decodeWriteAnswer,
  decodeReadRequest,
  decodeReadAnswer,
  decodeListRequest,
  decodeListAnswer,
  decodePutBlock,
  decodePutBlockAnswer,
  decodeReadBlock,
  decodeVerifyRequest,
  decodeVerifyAnswer,
  decodeStatusAnswer,
  unpackBlockOwner: (message) => unpackBlockOwner(message.head),
};

test('foreign bytes end in a WebdfsError, whichever decoder reads them', (t) => {
  const random = randomOf(t);
  const samples: Message[] = [
    encodeWriteRequest({ ...aWrite(), requires: [{ key: utf8('r'), sequence: 1 }], body: random.bytes(300) }, 7),
    encodeReadAnswer({ sequence: 1, modifiedMs: 1, flags: 0, summary: EMPTY, owner: utf8('o'), body: utf8('body') }),
    encodeVerifyRequest([{ policy: asPolicyId(1), group: asGroupId(3), type: 'record', id: utf8('key') }]),
    encodePutBlockAnswer({ size: 100_000, sums: Uint32Array.of(1, 2) }),
  ];
  for (let round = 0; round < 4_000; round++) {
    const sample = samples[random.below(samples.length)]!;
    const head = random.below(3) === 0 ? random.bytes(random.below(120)) : Uint8Array.from(sample.head);
    for (let i = random.below(4); i >= 0 && head.length > 0; i--) head[random.below(head.length)] = random.below(256);
    const message = { head: head.subarray(0, head.length - random.below(2)), attached: sample.attached };
    for (const [name, decode] of Object.entries(DECODERS)) {
      try {
        decode(message);
      } catch (error) {
        assert.ok(error instanceof WebdfsError, `${name} threw ${String(error)}`);
      }
    }
  }
});

test('an attachment that is shorter or longer than announced is CORRUPT', () => {
  const attachment = new Attachment([Uint8Array.of(1, 2), EMPTY, Uint8Array.of(3)]);
  assert.deepEqual(attachment.take(3), Uint8Array.of(1, 2, 3));
  attachment.end();
  assert.throws(() => attachment.take(1), { code: 'CORRUPT' });
  assert.throws(() => new Attachment([Uint8Array.of(1)]).end(), { code: 'CORRUPT' });
});

function aWrite(): WriteRequest {
  return {
    policy: asPolicyId(1),
    group: asGroupId(2),
    requestId: new Uint8Array(16).fill(1),
    ageMs: 0,
    kind: 'put',
    key: utf8('0000key'),
    hashHigh: 1,
    hashLow: 2,
    conditions: {},
    requires: [],
    summary: new Uint8Array(32),
    owner: EMPTY,
    body: EMPTY,
  };
}
