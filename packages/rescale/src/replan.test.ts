import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import type { Parcel } from './parcel.ts';
import { planRescale } from './plan.ts';
import { departsFrom, remainingParcels, type Standing } from './replan.ts';
import { someParcels } from './test-parcels.ts';
import { NODES, TestRun } from './test-run.ts';

const PARCEL: Parcel = {
  id: 5,
  bytes: 10,
  holders: [1, 2].map(asNodeId),
  receivers: [3, 4].map(asNodeId),
  safeCopies: 1,
};
const FRESH: Standing = { hasArrived: () => false, isLost: () => false, stays: (node) => node !== 1 };

test('what has arrived is not sent again, and serves', () => {
  const [left] = remainingParcels([PARCEL], { ...FRESH, hasArrived: (_, node) => node === 3 });
  assert.deepEqual(left, { ...PARCEL, holders: [1, 2, 3], receivers: [4], safeCopies: 2 });
});

test('a node that is lost neither serves nor receives; what has no copy left to read is told by the plan', () => {
  const [left] = remainingParcels([PARCEL], { ...FRESH, isLost: (node) => node === 2 || node === 4 });
  assert.deepEqual(left, { ...PARCEL, holders: [1], receivers: [3], safeCopies: 0 });
  const [gone] = remainingParcels([PARCEL], { ...FRESH, isLost: (node) => node <= 2 });
  assert.deepEqual(gone!.holders, []);
});

test('a parcel that everybody has is done', () => {
  assert.deepEqual(remainingParcels([PARCEL], { ...FRESH, hasArrived: () => true }), []);
});

test('a plan fits until a rate is off by more than a tenth', () => {
  const planned = { network: 100, read: Infinity, write: 50 };
  assert.equal(departsFrom(planned, { ...planned, network: 91 }), false);
  assert.equal(departsFrom(planned, { ...planned, network: 89 }), true);
  assert.equal(departsFrom(planned, { ...planned, write: 56 }), true);
});

test('a plan that breaks off because a node died is finished by another, and nothing that arrived is sent again', (t) => {
  const random = randomOf(t);
  const rates = { network: 100, read: 100, write: 100 };
  const limits = { windowBytes: 40, keepBytes: 40, depth: 2 };
  for (let round = 0; round < 10; round++) {
    const parcels = someParcels(random, { parcels: 60, nodes: NODES, bytes: 10 });
    const first = new TestRun(planRescale(parcels, () => rates).transfers, limits);
    first.run(random, 1 + random.below(60));
    const arrived = new Set(first.written);
    const dead = asNodeId(1 + random.below(NODES));
    const left = remainingParcels(parcels, {
      hasArrived: (parcel, node) => arrived.has(`${parcel}>${node}`),
      isLost: (node) => node === dead,
      stays: (node) => node !== dead,
    }).filter(({ holders }) => holders.length > 0);
    const plan = planRescale(left, () => rates);
    const second = new TestRun(plan.transfers, limits);
    second.run(random);
    assert.ok(second.done);
    assert.ok(second.written.every((copy) => !arrived.has(copy)));
    assert.ok(plan.transfers.every(({ from, to }) => from !== dead && to !== dead));
    const both = new Set([...arrived, ...second.written]);
    const lost = new Set(parcels.filter(({ id }) => !left.some((parcel) => parcel.id === id)).map(({ id }) => id));
    for (const { id, receivers } of parcels) {
      if (lost.has(id)) continue;
      for (const node of receivers) assert.ok(node === dead || both.has(`${id}>${node}`), `${id}>${node}`);
    }
  }
});
