import assert from 'node:assert/strict';
import test from 'node:test';
import { asGroupId, asNodeId, asPolicyId } from '@webdfs/base';
import type { GroupView } from '@webdfs/cluster';
import { judge, type Judgement } from './judge.ts';
import type { ProtocolMessage } from './messages.ts';

const [ONE, TWO, THREE] = [asNodeId(1), asNodeId(2), asNodeId(3)];
const TO = { policy: asPolicyId(1), group: asGroupId(0) };
const VIEW = { ballot: 10, primary: ONE, inSync: [ONE, TWO, THREE] } as unknown as GroupView;

function judged(
  self: number,
  from: number,
  message: Partial<ProtocolMessage> & { type: ProtocolMessage['type'] },
): Judgement {
  const whole = { ...TO, ballot: 10, ...message } as ProtocolMessage;
  return judge(whole, { self: asNodeId(self), from: asNodeId(from), revision: 10, view: VIEW });
}

test('a member takes what the primary of its own map says under exactly its map’s ballot', () => {
  for (const type of ['query', 'sync', 'append', 'commit', 'lost'] as const) {
    assert.equal(judged(2, 1, { type }), 'take');
    assert.equal(judged(2, 3, { type }), 'drop', `${type} by another member`);
  }
});

test('an older ballot is refused with this node’s revision, a newer one waits for the map', () => {
  assert.equal(judged(2, 1, { type: 'append', ballot: 9 }), 'stale');
  assert.equal(judged(2, 1, { type: 'append', ballot: 11 }), 'newer');
});

test('answers of another ballot are dropped: refusals of refusals would never end', () => {
  assert.equal(judged(1, 2, { type: 'ack', ballot: 9 }), 'drop');
  assert.equal(judged(1, 2, { type: 'ack' }), 'take');
  assert.equal(judged(3, 2, { type: 'ack' }), 'drop');
});

test('a node is released as soon as its map has come as far as the ballot that asks', () => {
  assert.equal(judged(2, 1, { type: 'release' }), 'released');
  assert.equal(judged(2, 1, { type: 'release', ballot: 9 }), 'released');
  assert.equal(judged(2, 1, { type: 'release', ballot: 11 }), 'newer');
});
