import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { changeTopology, compilePlacement, type Topology, UNIT_WEIGHT } from '@webdfs/placement';
import { parcelsBetween } from './parcels-between.ts';
import { planRescale } from './plan.ts';

const GROUP_BITS = 8;
const BEFORE: Topology = {
  algorithm: 'wrd',
  version: 1,
  seed: 3,
  copies: 3,
  subclusters: [
    { id: 1, nodes: [1, 2, 3, 4, 5, 6].map((id) => ({ id: asNodeId(id), weight: UNIT_WEIGHT, labels: {} })) },
  ],
};

test('replacing a node is one plan: what the old one held goes to the new one', () => {
  const changes = [
    { type: 'remove', nodes: { by: 'id', ids: [6] } },
    { type: 'add-nodes', subcluster: 1, count: 1, weight: UNIT_WEIGHT, labels: {} },
  ] as const;
  const after = changeTopology(BEFORE, changes, { groupBits: GROUP_BITS });
  const [old, next] = [BEFORE, after].map((topology) => compilePlacement(topology, GROUP_BITS, 3)) as [
    ReturnType<typeof compilePlacement>,
    ReturnType<typeof compilePlacement>,
  ];
  const parcels = parcelsBetween(old, next, { bytesOf: () => 12, parts: 4 });
  const copies = parcels.reduce((sum, { receivers }) => sum + receivers.length, 0);
  let made = 0;
  for (let group = 0; group < old.groupCount; group++) {
    made += next.members(group as never).filter((node) => !old.members(group as never).includes(node)).length;
  }
  assert.equal(copies, made * 4);
  assert.ok(parcels.every(({ bytes }) => bytes === 3));
  assert.equal(new Set(parcels.map(({ id }) => id)).size, parcels.length);
  const plan = planRescale(parcels, () => ({ network: 1, read: Infinity, write: Infinity }));
  assert.equal(plan.bytes, copies * 3);
});
