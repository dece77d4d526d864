import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import type { Parcel } from './parcel.ts';
import { departsFrom, remainingParcels, type Standing } from './replan.ts';

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
