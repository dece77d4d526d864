import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asPolicyId, chunkSums, utf8, WebdfsError } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { KIND, type LogEntry } from '@webdfs/store';
import type { Message } from '@webdfs/wire';
import { decodeFetched, encodeFetched } from './fetch-codec.ts';
import {
  decodeLearn,
  decodeLearnAnswer,
  decodeLearned,
  decodePage,
  decodePageRequest,
  encodeLearn,
  encodeLearnAnswer,
  encodeLearned,
  encodePage,
  encodePageRequest,
  type LearnOrder,
  MAX_LEARN_GROUPS,
  type Page,
} from './learner-codec.ts';

const GROUP = { policy: asPolicyId(3), group: asGroupId(4_095) };
const SUM = { commit: 12, objects: 3, blocks: 4, digest: 2 ** 48 - 1, notes: 0xffff_ffff };
const ORDER: LearnOrder = { ...GROUP, ballot: 2 ** 41, base: { sequence: 9, ballot: 7 }, sum: SUM };

const PAGES: Page[] = [
  { kind: 'sum', sum: SUM },
  {
    kind: 'records',
    asOf: 12,
    next: 'a cursor',
    rows: [
      { hashHigh: 1, hashLow: 0xffff_ffff, key: utf8('0000abc'), sequence: 4, tombstone: false },
      { hashHigh: 2, hashLow: 0, key: utf8('0000abd'), sequence: 5, tombstone: true },
    ],
  },
  {
    kind: 'blocks',
    asOf: 12,
    next: undefined,
    rows: [{ id: new Uint8Array(20).fill(9), sequence: 8, size: 8_388_608 }],
  },
  { kind: 'notes', asOf: 12, next: 'ff', rows: [{ name: utf8('n'), value: utf8('value') }] },
  {
    kind: 'requests',
    asOf: 12,
    next: undefined,
    rows: [{ requestId: new Uint8Array(16), sequence: 1, ballot: 2, timeMs: 3 }],
  },
];

const ENTRY: LogEntry = {
  ...GROUP,
  kind: KIND.RECORD,
  flags: 1,
  sequence: 5,
  ballot: 9,
  commit: 4,
  timeMs: 1_800_000_000_000,
  timeCount: 2,
  hashHigh: 7,
  hashLow: 8,
  key: utf8('0000key'),
  meta: new Uint8Array(48),
  body: utf8('bytes'),
  sums: chunkSums(utf8('bytes')),
};

test('orders, answers, reports, pages and entries come back as they were', () => {
  assert.deepEqual(decodeLearn(encodeLearn(5, [ORDER, ORDER])), { receiver: 5, orders: [ORDER, ORDER] });
  const answers = ['equal', 'accepted', 'refused'] as const;
  assert.deepEqual(decodeLearnAnswer(encodeLearnAnswer(answers)), answers);
  const reports = [
    { ...GROUP, ballot: 4, outcome: 'ready' as const },
    { ...GROUP, ballot: 4, outcome: 'failed' as const },
  ];
  assert.deepEqual(decodeLearned(encodeLearned(6, reports)), { sender: 6, reports });
  const request = { ...GROUP, ballot: 4, kind: 'records' as const, above: 11, after: 'a cursor' };
  assert.deepEqual(decodePageRequest(encodePageRequest(request)), request);
  for (const page of PAGES) assert.deepEqual(decodePage(encodePage(page), page.kind), page);
  const fetched = [
    { state: 'entry' as const, entry: ENTRY },
    { state: 'absent' as const },
    { state: 'damaged' as const },
  ];
  assert.deepEqual(decodeFetched(encodeFetched(fetched)), fetched);
});

test('a page of another kind than was asked for, or more orders than the limit, are refused', () => {
  assert.throws(() => decodePage(encodePage(PAGES[1]!), 'blocks'), { code: 'CORRUPT' });
  const many = Array.from({ length: MAX_LEARN_GROUPS + 1 }, () => ORDER);
  assert.throws(() => decodeLearn(encodeLearn(5, many)), { code: 'TOO_LARGE' });
});

test('foreign bytes end in a WebdfsError, whichever decoder reads them', (t) => {
  const random = randomOf(t);
  const samples: Message[] = [
    encodeLearn(5, [ORDER]),
    encodePageRequest({ ...GROUP, ballot: 4, kind: 'notes', above: 1, after: 'x' }),
    encodeFetched([{ state: 'entry', entry: ENTRY }]),
    ...PAGES.map(encodePage),
  ];
  const decoders: ((message: Message) => unknown)[] = [
    decodeLearn,
    decodeLearnAnswer,
    decodeLearned,
    decodePageRequest,
    decodeFetched,
    ...PAGES.map((page) => (message: Message) => decodePage(message, page.kind)),
  ];
  for (let round = 0; round < 3_000; round++) {
    const sample = samples[random.below(samples.length)]!;
    const head = Uint8Array.from(sample.head);
    const attached = sample.attached.map((bytes) => Uint8Array.from(bytes));
    const target = random.below(2) === 0 || attached.length === 0 ? head : attached[0]!;
    if (target.length > 0) target[random.below(target.length)] = random.below(256);
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
