import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { GroupId, NodeId } from './ids.ts';
import { seedOf } from './conformance.ts';
import { algorithmOf } from './algorithms.ts';
import { amendmentOf } from './amendment.ts';
import { calibrate } from './calibrate.ts';
import { placeableNodes } from './domains.ts';
import { compilePlacement, type PlacementTable } from './placement-table.ts';
import { anyTopology, type Chance, foundingTopology, SeededChance, subclusterOf } from './samples.ts';
import { type AlgorithmName, type Pin, type Topology, type TopologyNode, UNIT_WEIGHT } from './topology.ts';

const GROUP_BITS = 6;
const GROUPS = 2 ** GROUP_BITS;
const NAMES: readonly AlgorithmName[] = ['wrd', 'rendezvous', 'rush-r'];

function withNodes(topology: Topology, change: (node: TopologyNode) => TopologyNode | undefined): Topology {
  const subclusters = topology.subclusters.map((subcluster) => ({
    ...subcluster,
    nodes: subcluster.nodes.flatMap((node) => change(node) ?? []),
  }));
  return { ...topology, subclusters };
}

/** One step of a cluster's life: mostly small, sometimes one that changes everything. */
function changed(topology: Topology, random: Chance): Topology {
  const nodes = placeableNodes(topology);
  const chosen = nodes[random.below(nodes.length)]!.id;
  const at = (change: (node: TopologyNode) => TopologyNode | undefined): Topology =>
    withNodes(topology, (node) => (node.id === chosen ? change(node) : node));
  const pins: Pin[] = Array.from({ length: 3 }, () => ({
    group: random.below(GROUPS) as GroupId,
    from: nodes[random.below(nodes.length)]!.id,
    to: chosen,
  }));
  const highest = Math.max(...topology.subclusters.flatMap((subcluster) => subcluster.nodes.map(({ id }) => id)));
  const added = subclusterOf(topology.subclusters.length + 1_000 + random.below(1_000_000), {
    firstId: highest + 1,
    count: 1 + random.below(3),
    weight: 1 + random.below(4),
    labels: { rack: `r${random.below(8)}` },
  });
  const { domain, ...flat } = topology;
  const changes: (() => Topology)[] = [
    () => at((node) => ({ ...node, weight: Math.ceil(node.weight * (1 + random.below(3))) })),
    () => at((node) => ({ ...node, weight: Math.ceil(node.weight / (1 + random.below(4))) })),
    () => at((node) => ({ ...node, weight: 0 })),
    () => at(() => undefined),
    () => at((node) => ({ ...node, labels: { rack: `r${random.below(8)}` } })),
    () => withNodes(topology, (node) => ({ ...node, weight: node.weight === 0 ? UNIT_WEIGHT : node.weight })),
    () => ({ ...topology, subclusters: [...topology.subclusters, added] }),
    () => ({ ...topology, pins }),
    () => calibrate(topology),
    () => (domain === undefined ? { ...topology, domain: 'rack' } : flat),
    () => ({ ...topology, seed: topology.seed ^ 1 }),
    () => ({ ...topology, algorithm: NAMES[random.below(NAMES.length)]! }),
  ];
  return changes[random.below(changes.length)]!();
}

const allOf = (table: PlacementTable): (readonly NodeId[])[] =>
  Array.from({ length: GROUPS }, (_, group) => table.members(group as GroupId));

test('a table made from the one before it is the table made afresh, whatever changed and whatever was asked for', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (seed) => {
      const random = new SeededChance(seed);
      let topology = anyTopology(random, algorithmOf(foundingTopology(random.below(4) === 0 ? 'rush-r' : 'wrd', 1)));
      const count = 1 + random.below(4);
      let table = compilePlacement(topology, GROUP_BITS, count, { shortfall: 'fewer' });
      for (let step = 0; step < 6; step++) {
        const asked = random.below(3);
        for (let group = 0; group < GROUPS; group++) if (random.below(3) >= asked) table.members(group as GroupId);
        const next = changed(topology, random);
        if (placeableNodes(next).length === 0) return;
        topology = next;
        table = compilePlacement(topology, GROUP_BITS, count, { shortfall: 'fewer', previous: table });
        const fresh = compilePlacement(topology, GROUP_BITS, count, { shortfall: 'fewer' });
        // the amended table is asked from the end, so that no order of asking is taken for granted
        for (let group = GROUPS - 1; group >= 0; group -= 1 + random.below(2)) table.members(group as GroupId);
        if (random.below(2) === 0) assert.deepEqual(allOf(table), allOf(fresh));
        else assert.deepEqual(table.rows(), fresh.rows());
      }
    }),
    { numRuns: 200, seed: seedOf(t) },
  );
});

/** 50 racks of 10 nodes. */
function fiftyRacks(change: (node: TopologyNode) => TopologyNode = (node) => node): Topology {
  const subclusters = Array.from({ length: 50 }, (_, i) =>
    subclusterOf(i + 1, { firstId: i * 10 + 1, count: 10, weight: 1 + (i % 3), labels: { rack: `r${i}` } }),
  );
  return withNodes({ algorithm: 'wrd', version: 1, seed: 5, copies: 3, domain: 'rack', subclusters }, change);
}

test('after one weight change few groups are placed afresh', () => {
  const [before, after] = [1, 0.5].map((times) =>
    fiftyRacks((node) => (node.id === 77 ? { ...node, weight: node.weight * times } : node)),
  ) as [Topology, Topology];
  const amend = amendmentOf(before, after, 3)!;
  const table = compilePlacement(before, 12, 3);
  let afresh = 0;
  for (let group = 0; group < 4096; group++) {
    if (amend(group, Uint16Array.from(table.members(group as GroupId))) === undefined) afresh++;
  }
  assert.ok(afresh > 0 && afresh < 0.02 * 4096, `${afresh} afresh`);
});

test('there is nothing to amend when seed, algorithm or most nodes change', () => {
  const before = fiftyRacks();
  const half = fiftyRacks((node) => (node.id % 2 === 0 ? { ...node, weight: node.weight * 2 } : node));
  for (const after of [{ ...before, seed: 6 }, { ...before, algorithm: 'rush-r' as const }, half]) {
    assert.equal(amendmentOf(before, after, 3), undefined);
  }
  assert.notEqual(amendmentOf(before, before, 3), undefined);
});

test('a table of other groups or another number of copies gives nothing to the next', () => {
  const topology = foundingTopology('wrd', 1);
  for (const previous of [compilePlacement(topology, 5, 3), compilePlacement(topology, GROUP_BITS, 2)]) {
    previous.rows();
    const table = compilePlacement(topology, GROUP_BITS, 3, { previous });
    assert.deepEqual(table.rows(), compilePlacement(topology, GROUP_BITS, 3).rows());
  }
});

test('a table takes over what the one before it had computed by then, and keeps it to itself', () => {
  const topology = foundingTopology('wrd', 1);
  const before = compilePlacement(topology, GROUP_BITS, 3);
  before.members(3 as GroupId);
  const after = compilePlacement(topology, GROUP_BITS, 3, { previous: before });
  before.placedRows().fill(9);
  assert.deepEqual(after.members(3 as GroupId), compilePlacement(topology, GROUP_BITS, 3).members(3 as GroupId));
  assert.equal(after.placedRows().filter((id) => id > 0).length, 3);
});

test('one rank is looked up without the others; no list and no rank is made up', () => {
  const table = compilePlacement(foundingTopology('wrd', 1), GROUP_BITS, 3);
  for (const group of [0, 9, GROUPS - 1] as GroupId[]) {
    for (let rank = 0; rank < 3; rank++) assert.equal(table.memberAt(group, rank), table.members(group)[rank]);
    for (const rank of [-1, 0.5, 3]) assert.throws(() => table.memberAt(group, rank), { code: 'INVALID' });
  }
  for (const group of [-1, 0.5, GROUPS, Number.NaN] as GroupId[]) {
    assert.throws(() => table.memberAt(group, 0), { code: 'INVALID' });
    assert.throws(() => table.members(group), { code: 'INVALID' });
  }
  const empty = compilePlacement(foundingTopology('wrd', 1), GROUP_BITS, 0);
  assert.deepEqual(empty.members(3 as GroupId), []);
  assert.deepEqual(empty.rows(), new Uint16Array());
  assert.deepEqual(
    compilePlacement(foundingTopology('wrd', 1), GROUP_BITS, 0, { previous: empty }).rows(),
    empty.rows(),
  );
});
