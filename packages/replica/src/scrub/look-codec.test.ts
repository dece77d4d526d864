import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asPolicyId, utf8, WebdfsError } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { BLOCK_ID_BYTES } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import type { VerifyItem } from '../verify-codec.ts';
import {
  decodeBury,
  decodeLookAnswer,
  decodeLooks,
  decodeMend,
  encodeBury,
  encodeLookAnswer,
  encodeLooks,
  encodeMend,
  type LookAnswer,
  MAX_LOOKS,
} from './look-codec.ts';
import {
  decodeNodeScrub,
  decodeScrubRequest,
  encodeNodeScrub,
  encodeScrubRequest,
  type NodeScrub,
} from './scrub-codec.ts';
import { emptyTally } from './tally.ts';

const GROUP = { policy: asPolicyId(1), group: asGroupId(9) };
const RECORD: VerifyItem = { ...GROUP, type: 'record', id: utf8('0000key') };
const BLOCK: VerifyItem = { ...GROUP, type: 'block', id: new Uint8Array(BLOCK_ID_BYTES).fill(3) };
const ANSWER: LookAnswer = {
  suspect: true,
  looks: [
    { state: 'intact', sequence: 2 ** 40, bytes: 70_000, check: 0xdeadbeef, commit: 2 ** 41 },
    { state: 'absent', sequence: 0, bytes: 0, check: 0, commit: 8 },
  ],
};
const MEND = { item: BLOCK, sequence: 7, check: 1, sources: [1, 65_535] };
const BURY = { item: RECORD, hashHigh: 0xffffffff, hashLow: 1, asOf: 12, ballot: 2 ** 41 };
const PROBLEM = {
  policy: 1,
  group: 9,
  key: '00000001',
  what: 'record',
  copies: 2,
  wrong: [{ node: 2, fault: 'damaged' as const }],
  mended: true,
};
const SCRUB: NodeScrub = {
  node: 2,
  revision: 40,
  pass: { id: 5, bytesPerSecond: 2_000_000 },
  state: 'working',
  policies: [
    { policy: 1, counted: Uint8Array.of(1, 2), tally: { ...emptyTally(), objects: [0, 1, 5], problems: [PROBLEM] } },
  ],
  reasons: [{ policy: 1, group: 9, why: 'node 3 is away' }],
  served: 4,
  volumes: { read: 1, of: 2, bytes: 100, done: false },
  bytesPerSecond: 7,
  bytesTotal: 100,
  completion: { pass: 4, atMs: 9, objects: 6, clean: true },
};

test('what is sent is what is read', () => {
  assert.deepEqual(decodeLooks(encodeLooks([RECORD, BLOCK], 5_000_000)), {
    items: [RECORD, BLOCK],
    bytesPerSecond: 5_000_000,
  });
  assert.deepEqual(decodeLookAnswer(encodeLookAnswer(ANSWER)), ANSWER);
  assert.deepEqual(decodeMend(encodeMend(MEND)), MEND);
  assert.deepEqual(decodeBury(encodeBury(BURY)), BURY);
  assert.deepEqual(decodeNodeScrub(encodeNodeScrub(SCRUB)), SCRUB);
  const request = { revision: 7, pass: SCRUB.pass!, completion: SCRUB.completion! };
  assert.deepEqual(decodeScrubRequest(encodeScrubRequest(request)), request);
});

test('more looks than the limit, and a pass at no pace, are refused', () => {
  const many = Array.from({ length: MAX_LOOKS + 1 }, () => RECORD);
  assert.throws(() => encodeLooks(many, 1), { code: 'TOO_LARGE' });
  const still = encodeScrubRequest({ revision: 1, pass: { id: 5, bytesPerSecond: 0 } });
  assert.throws(() => decodeScrubRequest(still), { code: 'INVALID' });
});

test('problems that would not fit an answer are counted instead', () => {
  const problems = Array.from({ length: 1_000 }, () => ({ ...PROBLEM, key: 'ab'.repeat(2_000) }));
  const tally = { ...emptyTally(), problems };
  const told = decodeNodeScrub(encodeNodeScrub({ ...SCRUB, policies: [{ ...SCRUB.policies[0]!, tally }] }));
  const { tally: got } = told.policies[0]!;
  assert.ok(got.problems.length > 10);
  assert.equal(got.problems.length + got.omitted, 1_000);
});

test('foreign bytes end in a WebdfsError, whichever decoder reads them', (t) => {
  const random = randomOf(t);
  const samples: Message[] = [
    encodeLooks([RECORD, BLOCK], 9),
    encodeLookAnswer(ANSWER),
    encodeMend(MEND),
    encodeBury(BURY),
    encodeNodeScrub(SCRUB),
    encodeScrubRequest({ revision: 7, pass: SCRUB.pass! }),
  ];
  const decoders = [decodeLooks, decodeLookAnswer, decodeMend, decodeBury, decodeNodeScrub, decodeScrubRequest];
  for (let round = 0; round < 3_000; round++) {
    const sample = samples[random.below(samples.length)]!;
    const head = Uint8Array.from(sample.head);
    const attached = sample.attached.map((bytes) => Uint8Array.from(bytes));
    const target = random.below(2) === 0 || attached.length === 0 ? head : attached[0]!;
    target[random.below(target.length)] = random.below(256);
    const message = { head: head.subarray(0, head.length - random.below(2)), attached };
    for (const decode of decoders) {
      try {
        decode(message);
      } catch (error) {
        assert.ok(error instanceof WebdfsError, String(error));
      }
    }
  }
});
