import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { smoothedRate, timeLeft } from './time-left.ts';

const RATES = { network: 10, read: 5, write: 5 };

test('the node that needs longest tells the time that is left, and what it waits for', () => {
  const left = timeLeft(
    new Map([
      [asNodeId(1), { left: { receive: 100, send: 0, read: 0, write: 0 }, rates: RATES }],
      [asNodeId(2), { left: { receive: 10, send: 40, read: 40, write: 20 }, rates: RATES }],
    ]),
  );
  assert.deepEqual(left, { node: 2, resource: 'device', seconds: 12 });
});

test('a node that lags counts, however fast the others are', () => {
  const usage = { receive: 100, send: 0, read: 0, write: 0 };
  const slow = { left: usage, rates: { ...RATES, network: 1, write: Infinity } };
  const nodes = new Map([1, 2, 3].map((id) => [asNodeId(id), { left: usage, rates: { ...RATES, write: Infinity } }]));
  assert.deepEqual(timeLeft(nodes.set(asNodeId(4), slow)), { node: 4, resource: 'receive', seconds: 100 });
});

test('nothing left takes no time at all', () => {
  const none = { receive: 0, send: 0, read: 0, write: 0 };
  assert.equal(timeLeft(new Map([[asNodeId(1), { left: none, rates: { ...RATES, network: 0 } }]])), undefined);
});

test('a rate as shown moves half way to what was seen within its half-life', () => {
  assert.equal(smoothedRate(undefined, { bytes: 100, seconds: 2 }, 10), 50);
  assert.equal(smoothedRate(50, { bytes: 0, seconds: 10 }, 10), 25);
  assert.equal(smoothedRate(50, { bytes: 0, seconds: 0 }, 10), 50);
});
