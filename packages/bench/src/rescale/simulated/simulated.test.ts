import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, EMPTY } from '@webdfs/base';
import type { Transfer } from '@webdfs/rescale';
import { EventQueue } from './event-queue.ts';
import { SimulatedNetwork } from './network.ts';
import { SimulatedStorage } from './storage.ts';

const RATES = { network: 10, read: 10, write: 5 };
const NODE = asNodeId(1);

function transfer(from: number, to: number): Transfer {
  return { parcel: 1, bytes: 100, from: asNodeId(from), to: asNodeId(to), depth: 0, key: 0 };
}

/** When each of some transfers was received. */
function receivedAt(transfers: readonly Transfer[], latency = 0): number[] {
  const queue = new EventQueue();
  const network = new SimulatedNetwork(queue, () => RATES, latency);
  const times: number[] = [];
  for (const one of transfers) {
    network.send(one, EMPTY, { sent: () => undefined, received: () => times.push(queue.now) });
  }
  queue.run();
  return times;
}

test('actions run in the order of their times, and of being asked for', () => {
  const queue = new EventQueue();
  const seen: string[] = [];
  for (const [at, name] of [
    [3, 'd'],
    [1, 'a'],
    [2, 'b'],
    [2, 'c'],
  ] as const) {
    queue.at(at, () => seen.push(`${name}${queue.now}`));
  }
  queue.run();
  assert.deepEqual(seen, ['a1', 'b2', 'c2', 'd3']);
});

test('a link carries one transfer after the other each way, both ways at once', () => {
  assert.deepEqual(receivedAt([transfer(1, 2), transfer(1, 3)]), [10, 20]);
  assert.deepEqual(receivedAt([transfer(1, 3), transfer(2, 3)]), [10, 20]);
  assert.deepEqual(receivedAt([transfer(1, 2), transfer(2, 1)]), [10, 10]);
  assert.deepEqual(receivedAt([transfer(1, 2)], 2), [12]);
});

test('a device does one thing at a time, each at its own rate', () => {
  const queue = new EventQueue();
  const storage = new SimulatedStorage(queue, () => RATES);
  const seen: number[] = [];
  storage.generate(NODE, 1);
  storage.read(NODE, 1, 100, () => seen.push(queue.now));
  storage.write(NODE, 2, 100, EMPTY, () => seen.push(queue.now));
  queue.run();
  assert.deepEqual(seen, [10, 30]);
});

test('streams that take turns make a drive switch for every run', () => {
  const queue = new EventQueue();
  const storage = new SimulatedStorage(queue, () => RATES, { runBytes: 25, switchSeconds: 1 });
  const seen: number[] = [];
  storage.generate(NODE, 1);
  storage.read(NODE, 1, 100, () => seen.push(queue.now));
  storage.read(NODE, 1, 100, () => seen.push(queue.now));
  queue.run();
  assert.deepEqual(seen, [11, 25]);
});

test('what a node never had cannot be read', () => {
  const storage = new SimulatedStorage(new EventQueue(), () => RATES);
  assert.throws(() => storage.read(NODE, 1, 100, () => undefined));
});
