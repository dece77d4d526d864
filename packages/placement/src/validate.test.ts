import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GroupId, NodeId } from './ids.ts';
import { calibrate } from './calibrate.ts';
import { foundingTopology, subclusterOf } from './conformance.ts';
import { place } from './place.ts';
import type { Topology } from './topology.ts';
import { validateTopology } from './validate.ts';

const good = foundingTopology('wrd', 1);
const clean: Topology = {
  ...good,
  subclusters: [1, 2, 3, 4].map((id) =>
    subclusterOf(id, { firstId: id * 10, count: 4, weight: 2, labels: { rack: `r${id}` } }),
  ),
};
const pin = (groupId: number, from: number, to: number): NonNullable<Topology['pins']>[number] => ({
  group: groupId as GroupId,
  from: from as NodeId,
  to: to as NodeId,
});

function altered(change: (topology: Record<string, unknown>) => void): Topology {
  const copy = structuredClone(clean) as unknown as Record<string, unknown>;
  change(copy);
  return copy as unknown as Topology;
}

test('a sound topology has no findings', () => {
  assert.deepEqual(validateTopology({ ...clean, domain: 'rack' }), { errors: [], warnings: [] });
  assert.deepEqual(validateTopology(calibrate(good)), { errors: [], warnings: [] });
});

const node = (weight: unknown, labels = {}, id: unknown = 1): object => ({ id, weight, labels });
const refused: [string, Topology, RegExp][] = [
  ['an unknown algorithm', altered((t) => (t['algorithm'] = 'carousel')), /algorithm carousel/],
  ['another version', altered((t) => (t['version'] = 2)), /version 2/],
  ['a seed that is no u32', altered((t) => (t['seed'] = -1)), /seed/],
  ['no copies', altered((t) => (t['copies'] = 0)), /copies are 0/],
  ['an unknown domain', altered((t) => (t['domain'] = 'planet')), /planet/],
  ['a fractional weight', altered((t) => (t['subclusters'] = [{ id: 1, nodes: [node(1.5)] }])), /weight 1.5/],
  ['a negative weight', altered((t) => (t['subclusters'] = [{ id: 1, nodes: [node(-1)] }])), /weight -1/],
  ['a node id beyond 65 535', altered((t) => (t['subclusters'] = [{ id: 1, nodes: [node(1, {}, 65_536)] }])), /65536/],
  [
    'a node listed twice',
    altered((t) => (t['subclusters'] = [{ id: 1, nodes: [node(1), node(1)] }])),
    /node 1 is listed twice/,
  ],
  ['a label like a node', altered((t) => (t['subclusters'] = [{ id: 1, nodes: [node(1, { rack: '#2' })] }])), /labels/],
  [
    'a sub-cluster listed twice',
    altered(
      (t) =>
        (t['subclusters'] = [
          { id: 1, nodes: [] },
          { id: 1, nodes: [] },
        ]),
    ),
    /sub-cluster 1 is listed twice/,
  ],
  ['a factor of 0', { ...clean, factors: { '#10': 0 } }, /factor 0/],
  ['a pin to an unknown node', { ...clean, pins: [pin(1, 10, 999)] }, /unknown node/],
  ['a pin that goes nowhere', { ...clean, pins: [pin(1, 10, 10)] }, /nowhere/],
  ['two pins of one place', { ...clean, pins: [pin(1, 10, 20), pin(1, 10, 30)] }, /already/],
  [
    'fewer nodes than copies',
    { ...clean, subclusters: [subclusterOf(1, { firstId: 1, count: 2, weight: 1 })] },
    /there are 2/,
  ],
];

for (const [name, topology, message] of refused) {
  test(`${name} is refused`, () => {
    const { errors } = validateTopology(topology);
    assert.match(errors.join('\n'), message);
  });
}

test('fewer domains than copies are warned of', () => {
  const two = { ...clean, domain: 'rack' as const, subclusters: clean.subclusters.slice(0, 2) };
  assert.match(validateTopology(two).warnings.join('\n'), /3 copies over 2 domains/);
});

test('a domain that cannot hold its share is warned of', () => {
  const heavy = [...clean.subclusters, subclusterOf(9, { firstId: 90, count: 4, weight: 20, labels: { rack: 'r9' } })];
  assert.match(
    validateTopology({ ...clean, domain: 'rack', subclusters: heavy }).warnings.join('\n'),
    /rack r9 has 71 %/,
  );
});

test('RUSH_R warns that it knows no domains and of unlike nodes in a sub-cluster', () => {
  const mixed = {
    id: 7,
    nodes: [...clean.subclusters[0]!.nodes, ...subclusterOf(8, { firstId: 80, count: 1, weight: 9 }).nodes],
  };
  const { warnings } = validateTopology({ ...clean, algorithm: 'rush-r', domain: 'rack', subclusters: [mixed] });
  assert.match(warnings.join('\n'), /does not keep copies apart/);
  assert.match(warnings.join('\n'), /sub-cluster 7/);
});

test('a pin without effect and a factor without a domain are warned of', () => {
  const [first, second] = place(clean, 5 as GroupId, 3);
  const { warnings } = validateTopology({ ...clean, pins: [pin(5, first!, second!)], factors: { r99: 65_536 } });
  assert.match(warnings.join('\n'), /does not apply/);
  assert.match(warnings.join('\n'), /r99/);
});
