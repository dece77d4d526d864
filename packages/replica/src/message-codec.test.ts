import assert from 'node:assert/strict';
import test from 'node:test';
import { asGroupId, asPolicyId, chunkSums, SeededRandom, WebdfsError } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { KIND, type LogEntry } from '@webdfs/store';
import { BatchWriter, unpackBatch } from './message-codec.ts';
import type { ProtocolMessage } from './messages.ts';

const TO = { policy: asPolicyId(1), group: asGroupId(77), ballot: 2 ** 40 + 12 };

function anEntry(random: SeededRandom, bytes: number): LogEntry {
  const body = random.bytes(bytes);
  return {
    policy: TO.policy,
    group: TO.group,
    kind: KIND.RECORD,
    flags: 1,
    sequence: 42,
    ballot: 2 ** 40 + 11,
    commit: 40,
    timeMs: 1_800_000_000_123,
    timeCount: 7,
    hashHigh: 0xdead_beef,
    hashLow: 0x0102_0304,
    key: random.bytes(20),
    meta: random.bytes(60),
    body,
    sums: chunkSums(body),
  };
}

function oneOfEach(random: SeededRandom): ProtocolMessage[] {
  return [
    { type: 'query', ...TO, round: 3 },
    {
      type: 'tail',
      ...TO,
      round: 3,
      commit: 5,
      last: 9,
      lastBallot: 8,
      runs: [
        { ballot: 7, last: 6 },
        { ballot: 8, last: 9 },
      ],
    },
    { type: 'sync', ...TO, receiver: 99, after: 7, commit: 5 },
    { type: 'append', ...TO, commit: 5, entry: anEntry(random, 0) },
    { type: 'append', ...TO, commit: 5, entry: anEntry(random, 100_000) },
    { type: 'append', ...TO, commit: 5, entry: anEntry(random, 17) },
    { type: 'ack', ...TO, last: 9 },
    { type: 'ack', ...TO, last: 9, expects: 10 },
    { type: 'not-synced', ...TO },
    { type: 'commit', ...TO, commit: 9 },
    { type: 'release', ...TO },
    { type: 'released', ...TO },
    { type: 'stale', ...TO, revision: 1_234 },
    { type: 'lost', ...TO, commit: 9 },
    { type: 'full', ...TO },
  ];
}

test('a batch comes out as it went in', (t) => {
  const messages = oneOfEach(randomOf(t));
  const writer = new BatchWriter();
  for (const message of messages) writer.add(message);
  const { session, messages: unpacked } = unpackBatch(writer.take(55));
  assert.equal(session, 55);
  assert.deepEqual(unpacked, messages);
  assert.equal(writer.count, 0);
});

test('a flipped bit anywhere behind the head is refused', (t) => {
  const random = randomOf(t);
  const writer = new BatchWriter();
  for (const message of oneOfEach(random)) writer.add(message);
  const { head, attached } = writer.take(1);
  for (let i = 0; i < 200; i++) {
    const at = random.below(attached.length);
    const bytes = attached[at]!.slice();
    if (bytes.length === 0) continue;
    bytes[random.below(bytes.length)]! ^= 1 << random.below(8);
    const damaged = attached.map((part, i) => (i === at ? bytes : part));
    assert.throws(() => unpackBatch({ head, attached: damaged }), WebdfsError);
  }
});

test('a foreign post ends in an error of ours, never in another', (t) => {
  const random = randomOf(t);
  const writer = new BatchWriter();
  for (const message of oneOfEach(random)) writer.add(message);
  const { head, attached } = writer.take(1);
  for (let i = 0; i < 300; i++) {
    const foreign = random.below(2) === 0 ? random.bytes(random.below(64)) : head.slice(0, random.below(head.length));
    try {
      unpackBatch({ head: foreign, attached: random.below(2) === 0 ? attached : [random.bytes(random.below(200))] });
    } catch (error) {
      assert.ok(error instanceof WebdfsError, String(error));
    }
  }
});
