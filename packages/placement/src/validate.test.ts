import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GroupId, NodeId } from './ids.ts';
import { publishTopology } from './publish.ts';
import { calibrate } from './calibrate.ts';
import { foundingTopology, mapNodes, subclusterOf } from './conformance.ts';
import { place } from './place.ts';
import { ALGORITHMS, type Topology } from './topology.ts';
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
  ['an empty sub-cluster', altered((t) => (t['subclusters'] = [{ id: 7, nodes: [] }])), /sub-cluster 7 has no nodes/],
  [
    'a weight beyond all bounds',
    altered((t) => (t['subclusters'] = [{ id: 1, nodes: [node(1e300)] }])),
    /node 1 has weight 1e\+300/,
  ],
  [
    'a weight that is no number',
    altered((t) => (t['subclusters'] = [{ id: 1, nodes: [node(Number.NaN)] }])),
    /node 1 has weight NaN/,
  ],
  [
    'a rack in two zones',
    altered(
      (t) =>
        (t['subclusters'] = [
          { id: 1, nodes: [node(1, { zone: 'a', rack: 'r' }, 4), node(1, { zone: 'b', rack: 'r' }, 9)] },
        ]),
    ),
    /rack r is in zone a \(node 4\) and in zone b \(node 9\)/,
  ],
  [
    'a machine in two racks',
    altered(
      (t) =>
        (t['subclusters'] = [
          { id: 1, nodes: [node(1, { machine: 'm', rack: 'r' }, 4), node(1, { machine: 'm', rack: 's' }, 9)] },
        ]),
    ),
    /machine m is in rack r \(node 4\) and in rack s/,
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

const whole = (algorithm: Topology['algorithm'], counts: number[], weight = 2): Topology => ({
  ...foundingTopology(algorithm, 1),
  subclusters: counts.map((count, i) => subclusterOf(i + 1, { firstId: i * 10 + 1, count, weight })),
});
const ring = publishTopology(whole('ring', [4, 4]), { groupBits: 4 });
const otherTable = (change: object): Topology => ({ ...ring, table: { ...ring.table!, ...change } });

const unsupported: [string, Topology, RegExp][] = [
  [
    'RUSH_P over too small a first sub-cluster',
    whole('rush-p', [2, 5]),
    /rush-p needs at least 3 nodes with weight in the oldest sub-cluster: sub-cluster 1 has 2/,
  ],
  ['RUSH_P with a fractional weight', whole('rush-p', [5, 5], 1.5), /rush-p needs whole weights: node \d+ has 1.5/],
  [
    'RUSH_T with any small sub-cluster',
    whole('rush-t', [5, 2, 5]),
    /rush-t needs at least 3 nodes with weight in every sub-cluster: sub-cluster 2 has 2/,
  ],
  ['jump with unlike weights', foundingTopology('jump', 1), /jump knows no weights: those of nodes \d+ and \d+ differ/],
  [
    'random placement in a cluster',
    publishTopology(whole('hdfs-random', [5]), { groupBits: 4 }),
    /hdfs-random needs a directory/,
  ],
  ['a ring that was not published', whole('ring', [5]), /ring has no table/],
  ['a ring with a torn table', otherTable({ rows: ring.table!.rows.slice(4) }), /is not 2\^4 groups × 3 copies/],
  ['a ring with a table of letters that are none', otherTable({ rows: ring.table!.rows.replace(/^./, '!') }), /base64/],
  ['a ring of other copies', otherTable({ copies: 2 }), /table has 2 copies, the topology 3/],
  ['a ring of absurd size', otherTable({ groupBits: 60 }), /2\^60 groups/],
  [
    'a ring whose node has no weight any more',
    mapNodes(ring, (node) => (node.id === 3 ? { ...node, weight: 0 } : node)),
    /to node 3, which has no weight/,
  ],
];

for (const [name, topology, message] of unsupported) {
  test(`${name} is refused`, () => {
    assert.match(validateTopology(topology).errors.join('\n'), message);
  });
}

test('every algorithm has a topology that the validator lets through', () => {
  for (const algorithm of ALGORITHMS.filter((name) => name !== 'hdfs-random')) {
    const topology = publishTopology(whole(algorithm, [5, 5]), { groupBits: 4 });
    assert.deepEqual(validateTopology(topology).errors, [], algorithm);
  }
});

test('a store that needs the order kept is refused an algorithm that only keeps the members', () => {
  assert.match(validateTopology(whole('rush-r', [5, 5]), { order: 'prefix' }).errors.join(), /rush-r keeps the nodes/);
  assert.deepEqual(validateTopology(whole('rush-p', [5, 5]), { order: 'prefix' }).errors, []);
});
