import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { leastSeconds } from './flow-oracle.ts';
import type { Parcel } from './parcel.ts';
import { planRescale } from './plan.ts';
import type { Rates } from './rates.ts';
import { someParcels, someRates } from './test-parcels.ts';

const EVEN: Rates = { network: 100, read: Infinity, write: Infinity };

function parcel(id: number, holders: number[], receivers: number[], safeCopies = 1): Parcel {
  return { id, bytes: 10, holders: holders.map(asNodeId), receivers: receivers.map(asNodeId), safeCopies };
}

test('every receiver gets every parcel once, from a holder or from one that got it before', (t) => {
  const random = randomOf(t);
  const parcels = someParcels(random, { parcels: 200, nodes: 9 });
  const plan = planRescale(parcels, someRates(random, 9));
  const wanted = parcels.flatMap(({ id, receivers }) => receivers.map((to) => `${id}>${to}`));
  assert.deepEqual(plan.transfers.map(({ parcel: id, to }) => `${id}>${to}`).toSorted(), wanted.toSorted());
  const arrived = new Map<string, number>();
  for (const transfer of plan.transfers) {
    const holds = parcels[transfer.parcel]!.holders.includes(transfer.from);
    const supplier = arrived.get(`${transfer.parcel}>${transfer.from}`);
    if (holds) assert.equal(transfer.depth, 0);
    else assert.equal(transfer.depth, supplier! + 1);
    assert.ok(transfer.key >= 0 && transfer.key <= 1, `key ${transfer.key}`);
    arrived.set(`${transfer.parcel}>${transfer.to}`, transfer.depth);
  }
});

test('the plan comes within a few per cent of what a flow finds', (t) => {
  const random = randomOf(t);
  for (let round = 0; round < 6; round++) {
    const parcels = someParcels(random, { parcels: 200, nodes: 5, bytes: 10 });
    const ratesOf = someRates(random, 5);
    const [plan, least] = [planRescale(parcels, ratesOf), leastSeconds(parcels, ratesOf)];
    const slowestRate = Math.min(...parcels.flatMap(({ holders }) => holders.map((node) => ratesOf(node).read)));
    // parcels are not divisible: one more or less on the slowest device
    const limit = 1.05 * least + 10 / slowestRate;
    assert.ok(plan.seconds >= least * (1 - 1e-3), `${plan.seconds} s beat the flow's ${least} s`);
    assert.ok(plan.seconds <= limit, `${plan.seconds} s, the flow needs ${least} s`);
  }
});

test('a node that is twice as fast serves twice as much', () => {
  const parcels = Array.from({ length: 90 }, (_, id) => parcel(id, [1, 2], [3]));
  const { usage } = planRescale(parcels, (node) => ({ ...EVEN, network: node === 1 ? 200 : 100 }));
  assert.equal(usage.get(asNodeId(1))!.send, 600);
  assert.equal(usage.get(asNodeId(2))!.send, 300);
});

test('while sending does not set the pace the reader sends all copies; then receivers pass them on', () => {
  const few = planRescale(
    [0, 1].map((id) => parcel(id, [id + 1], [3, 4])),
    () => EVEN,
  );
  assert.deepEqual(new Set(few.transfers.map(({ depth }) => depth)), new Set([0]));
  const many = planRescale(
    Array.from({ length: 12 }, (_, id) => parcel(id, [1], [2, 3, 4])),
    () => EVEN,
  );
  assert.equal(many.usage.get(asNodeId(1))!.send, 120);
  assert.equal(many.seconds, 1.2);
});

test('parcels with the fewest safe copies have the first turns', () => {
  const parcels = Array.from({ length: 30 }, (_, id) => parcel(id, [1, 2], [3], id % 3));
  const { transfers } = planRescale(parcels, () => EVEN);
  const urgencies = transfers.map((transfer) => transfer.parcel % 3);
  assert.deepEqual(urgencies, urgencies.toSorted());
});

test('all copies of a parcel have one turn, so that it is read once', () => {
  const { transfers, usage } = planRescale(
    Array.from({ length: 20 }, (_, id) => parcel(id, [1, 2], [3, 4, 5])),
    () => ({ network: Infinity, read: 10, write: 10 }),
  );
  const keys = Map.groupBy(transfers, (transfer) => transfer.parcel);
  for (const copies of keys.values()) assert.equal(new Set(copies.map(({ key }) => key)).size, 1);
  assert.equal(usage.get(asNodeId(1))!.read, 100);
});

test('nothing to do takes no time', () => {
  const plan = planRescale([parcel(1, [1, 2], [])], () => EVEN);
  assert.deepEqual([plan.seconds, plan.pace, plan.transfers.length, plan.bytes], [0, undefined, 0, 0]);
});

test('a parcel that nobody has, or that names a node twice, is refused by name', () => {
  assert.throws(() => planRescale([parcel(7, [], [1])], () => EVEN), { code: 'LOST', message: /parcel 7/ });
  assert.throws(() => planRescale([parcel(8, [1], [1])], () => EVEN), { code: 'INVALID', message: /parcel 8/ });
  assert.throws(() => planRescale([parcel(9, [1], [2]), parcel(9, [1], [2])], () => EVEN), { code: 'INVALID' });
  const endless = { ...parcel(10, [1], [2]), bytes: Infinity };
  assert.throws(() => planRescale([endless], () => EVEN), { code: 'INVALID', message: /parcel 10/ });
});
