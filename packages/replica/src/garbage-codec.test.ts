import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asPolicyId, utf8, WebdfsError } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import {
  decodeExamine,
  decodeNamed,
  decodeVerdicts,
  encodeExamine,
  encodeNamed,
  encodeVerdicts,
  MAX_QUESTIONS,
} from './garbage-codec.ts';

const GROUP = { policy: asPolicyId(1), group: asGroupId(77) };
const QUESTION = { ...GROUP, key: utf8('0000key'), attempt: new Uint8Array(16).fill(4), uploadId: new Uint8Array(16) };
const EXAMINE = { ...GROUP, ids: [new Uint8Array(20).fill(1), new Uint8Array(20).fill(2)] };

test('questions, verdicts and blocks to look at come back as they were', () => {
  assert.deepEqual(decodeNamed(encodeNamed([QUESTION, QUESTION], 8)), { revision: 8, questions: [QUESTION, QUESTION] });
  const verdicts = ['unknown', 'named', 'gone'] as const;
  assert.deepEqual(decodeVerdicts(encodeVerdicts(verdicts)), verdicts);
  assert.deepEqual(decodeExamine(encodeExamine(EXAMINE, 9)), { revision: 9, request: EXAMINE });
});

test('more questions than the limit are refused', () => {
  const many = Array.from({ length: MAX_QUESTIONS + 1 }, () => QUESTION);
  assert.throws(() => decodeNamed(encodeNamed(many, 1)), { code: 'TOO_LARGE' });
});

test('foreign bytes end in a WebdfsError, whichever decoder reads them', (t) => {
  const random = randomOf(t);
  const samples = [encodeNamed([QUESTION], 8), encodeExamine(EXAMINE, 9), encodeVerdicts(['gone'])];
  for (let round = 0; round < 3_000; round++) {
    const sample = samples[random.below(samples.length)]!;
    const head = Uint8Array.from(sample.head);
    head[random.below(head.length)] = random.below(256);
    const message = { head: head.subarray(0, head.length - random.below(2)), attached: sample.attached };
    for (const decode of [decodeNamed, decodeVerdicts, decodeExamine]) {
      try {
        decode(message);
      } catch (error) {
        assert.ok(error instanceof WebdfsError, String(error));
      }
    }
  }
});
