import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import {
  type AlgorithmName,
  changeTopology,
  compilePlacement,
  publishTopology,
  type Topology,
  type TopologyChange,
  UNIT_WEIGHT,
  validateTopology,
} from '@webdfs/placement';
import { changeEvenly } from './change-evenly.ts';
import { parcelsBetween } from './parcels-between.ts';
import { planRescale } from './plan.ts';

const GROUP_BITS = 12;

function nodes(count: number, algorithm: AlgorithmName = 'wrd'): Topology {
  const list = Array.from({ length: count }, (_, i) => ({ id: asNodeId(i + 1), weight: UNIT_WEIGHT, labels: {} }));
  const plain: Topology = { algorithm, version: 1, seed: 9, copies: 3, subclusters: [{ id: 1, nodes: list }] };
  return publishTopology(plain, { groupBits: GROUP_BITS });
}

const leave = (...ids: number[]): TopologyChange => {
  return { type: 'remove', nodes: { by: 'id', ids: ids.map(asNodeId) } };
};

function moves(before: Topology, after: Topology): { bytes: number; seconds: number } {
  const [old, next] = [before, after].map((each) => compilePlacement(each, GROUP_BITS, each.copies));
  const parcels = parcelsBetween(old!, next!, { bytesOf: () => 1, parts: 1 });
  return planRescale(parcels, () => ({ network: 1, read: Infinity, write: Infinity }));
}

test('a node of twenty that leaves is taken over more evenly, and nothing more moves for it', () => {
  const before = nodes(20);
  const plain = moves(before, changeTopology(before, [leave(20)], { groupBits: GROUP_BITS }));
  const even = moves(before, changeEvenly(before, [leave(20)], { groupBits: GROUP_BITS }));
  assert.equal(even.bytes, plain.bytes);
  assert.ok(even.seconds < 0.95 * plain.seconds, `${even.seconds} of ${plain.seconds}`);
});

test('one change after the other, pins move few groups more, and stay few', () => {
  let [plain, even] = [nodes(20), nodes(20)];
  for (const change of [leave(20), leave(7), leave(3), leave(11)]) {
    const [nextPlain, nextEven] = [
      changeTopology(plain, [change], { groupBits: GROUP_BITS }),
      changeEvenly(even, [change], { groupBits: GROUP_BITS }),
    ];
    const [least, most] = [moves(plain, nextPlain).bytes, moves(even, nextEven).bytes];
    assert.ok(most <= 1.05 * least, `${most} of ${least}`);
    assert.ok((nextEven.pins?.length ?? 0) < 200);
    assert.deepEqual(validateTopology(nextEven).errors, []);
    [plain, even] = [nextPlain, nextEven];
  }
});

test('where every node has everything, or there are too few, no pin is made', () => {
  const three = nodes(3);
  assert.equal(changeEvenly(three, [leave(3)], { groupBits: GROUP_BITS }).pins, undefined);
  const added: TopologyChange = { type: 'add-nodes', subcluster: 1, count: 1, labels: {} };
  const grown = changeEvenly(three, [added], { groupBits: GROUP_BITS });
  assert.equal(grown.subclusters[0]!.nodes.length, 4);
});
