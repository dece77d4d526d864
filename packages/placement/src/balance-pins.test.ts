import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { algorithmOf } from './algorithms.ts';
import { publishTopology } from './publish.ts';
import { balancePins } from './balance-pins.ts';
import {
  anyTopology,
  type Chance,
  foundingTopology,
  keepNodes,
  mapNodes,
  rackTopology,
  SeededChance,
  seedOf,
  subclusterOf,
} from './conformance.ts';
import { domainOf, placeableNodes } from './domains.ts';
import { fairShares } from './fair-shares.ts';
import type { GroupId, NodeId } from './ids.ts';
import { compilePlacement } from './placement-table.ts';
import { ALGORITHMS, type Pin, type Topology } from './topology.ts';
import { validateTopology } from './validate.ts';

const any32 = fc.integer({ min: 0, max: 0xffff_ffff });

function alike(count: number, seed = 5): Topology {
  return { ...foundingTopology('wrd', seed), subclusters: [subclusterOf(1, { firstId: 1, count, weight: 1 })] };
}

/** What each node holds of all groups, by the same path as a cluster: the compiled table. */
function loads(topology: Topology, groupBits: number, sizes?: ArrayLike<number>): Map<NodeId, number> {
  const table = compilePlacement(topology, groupBits, topology.copies);
  const held = new Map(placeableNodes(topology).map((node) => [node.id, 0]));
  for (let group = 0; group < table.groupCount; group++) {
    for (const node of table.members(group as GroupId)) held.set(node, held.get(node)! + (sizes?.[group] ?? 1));
  }
  return held;
}

function fullest(topology: Topology, groupBits: number, sizes?: ArrayLike<number>): number {
  const held = loads(topology, groupBits, sizes);
  const total = [...held.values()].reduce((sum, load) => sum + load, 0) / topology.copies;
  return Math.max(...Array.from(fairShares(topology), ([node, share]) => held.get(node)! / (share * total)));
}

/** Long-tailed: most groups are small, a few are many times as large. */
function unlikeSizes(chance: Chance, groups: number): number[] {
  return Array.from({ length: groups }, () => Math.floor(1e9 * (chance.uint32() / 4_294_967_296) ** 2));
}

for (const [nodes, groupBits] of [
  [15, 12],
  [100, 14],
  [300, 14],
  [1000, 13],
] as const) {
  test(`${nodes} nodes: pins bring the fullest within 2 % of the mean, one for each copy too many`, () => {
    const topology = alike(nodes);
    const { pins, before, after } = balancePins(topology, { groupBits });
    assert.ok(after <= 1.02 && before > 1.02, `${before} became ${after}`);
    const pinned = { ...topology, pins };
    assert.equal(fullest(pinned, groupBits), after);
    const mean = (3 * 2 ** groupBits) / nodes;
    const surplus = [...loads(topology, groupBits).values()].map((load) =>
      Math.max(0, load - Math.floor(Math.max(mean * 1.02, Math.ceil(mean)))),
    );
    assert.equal(
      pins.length,
      surplus.reduce((sum, count) => sum + count, 0),
    );
  });
}

test('racks of unlike weight: pins bring the fullest within 2 % of its share, and no rack gets a second copy', () => {
  const topology = publishTopology(rackTopology('wrd', 3), { groupBits: 14 });
  const { pins, after } = balancePins(topology, { groupBits: 14 });
  assert.ok(after <= 1.02, `${after}`);
  const pinned = { ...topology, pins };
  assert.equal(fullest(pinned, 14), after);
  assert.deepEqual(validateTopology(pinned), { errors: [], warnings: [] });
  const table = compilePlacement(pinned, 14, 3);
  const racks = new Map(placeableNodes(topology).map((node) => [node.id, domainOf(topology, node)]));
  for (let group = 0; group < table.groupCount; group++) {
    assert.equal(new Set(table.members(group as GroupId).map((node) => racks.get(node))).size, 3);
  }
});

test('by bytes: the fullest is within 2 % though a few groups are many times as large as most', (t) => {
  const sizes = unlikeSizes(new SeededChance(seedOf(t)), 2 ** 14);
  for (const topology of [alike(50), publishTopology(rackTopology('wrd', 3), { groupBits: 14 })]) {
    const byBytes = balancePins(topology, { groupBits: 14, sizes });
    assert.ok(byBytes.after <= 1.02, `${byBytes.after}`);
    assert.ok(Math.abs(fullest({ ...topology, pins: byBytes.pins }, 14, sizes) - byBytes.after) < 1e-9);
    const byGroups = balancePins(topology, { groupBits: 14 });
    assert.ok(fullest({ ...topology, pins: byGroups.pins }, 14, sizes) > 1.02, 'groups alone do not balance bytes');
  }
});

test('what is balanced stays as it is', () => {
  const topology = alike(100);
  const { pins } = balancePins(topology, { groupBits: 12 });
  const again = balancePins({ ...topology, pins }, { groupBits: 12 });
  assert.deepEqual([again.added, again.stale, again.needless], [[], [], []]);
  assert.deepEqual(again.pins, pins);
});

test('after a node is drained: its pins are stale, others stay where they help, and the balance is found again', () => {
  const topology = alike(100);
  const { pins } = balancePins(topology, { groupBits: 14 });
  const gone = pins[0]!.to;
  const drained = mapNodes({ ...topology, pins }, (node) => (node.id === gone ? { ...node, weight: 0 } : node));
  assert.ok(!loads(drained, 14).has(gone), 'weight 0 overrides a pin');
  const next = balancePins(drained, { groupBits: 14 });
  assert.ok(next.after <= 1.02, `${next.after}`);
  const stale = new Set(next.stale);
  assert.ok(stale.size > 0);
  for (const pin of pins) if (pin.to === gone) assert.ok(stale.has(pin));
  const kept = pins.filter((pin) => next.pins.includes(pin));
  assert.equal(kept.length + next.stale.length + next.needless.length, pins.length);
  assert.ok(kept.length > pins.length / 2, `${kept.length} of ${pins.length} were kept`);
  assert.equal(next.pins.length, kept.length + next.added.length);
});

test('pins that nothing asks for any more are taken back', () => {
  const topology = alike(20);
  const { pins } = balancePins(topology, { groupBits: 12 });
  const relaxed = balancePins({ ...topology, pins }, { groupBits: 12, tolerance: 1 });
  assert.deepEqual(relaxed.pins, []);
  assert.equal(relaxed.needless.length, pins.length);
});

test('whatever the topology and its pins: the fullest never gets fuller, and all pins apply', (t) => {
  fc.assert(
    fc.property(any32, fc.constantFrom(...ALGORITHMS), fc.boolean(), (seed, name, byBytes) => {
      const chance = new SeededChance(seed);
      const algorithm = algorithmOf(foundingTopology(name, 1));
      const plain = publishTopology(anyTopology(chance, algorithm), { groupBits: 6 });
      const live = placeableNodes(plain).map((node) => node.id);
      const member = (): NodeId => live[chance.below(live.length)]!;
      const pins = Array.from({ length: 20 }, (): Pin => {
        return { group: chance.below(70) as GroupId, from: member(), to: member() };
      });
      const sizes = byBytes ? unlikeSizes(chance, 64) : undefined;
      const topology: Topology = { ...plain, pins };
      const options = { groupBits: 6, ...(sizes === undefined ? {} : { sizes }) };
      const balanced = balancePins(topology, options);
      const pinned = { ...plain, pins: balanced.pins };
      // by groups a node may hold the next whole number
      const whole = Array.from(fairShares(plain).values(), (share) => Math.ceil(share * 64) / (share * 64));
      const allowed = Math.max(1.02, ...(byBytes ? [] : whole));
      assert.ok(balanced.after <= Math.max(balanced.before, allowed) + 1e-9);
      assert.ok(Math.abs(fullest(topology, 6, sizes) - balanced.before) < 1e-9);
      assert.ok(Math.abs(fullest(pinned, 6, sizes) - balanced.after) < 1e-9);
      assert.deepEqual(
        validateTopology(pinned).warnings.filter((warning) => warning.startsWith('pin')),
        [],
      );
      for (const pin of balanced.stale) assert.ok(pins.includes(pin));
    }),
    { numRuns: 150, seed: seedOf(t) },
  );
});

test('fair shares: proportional to weight, but no domain more than it can hold', () => {
  const heavy = {
    ...rackTopology('wrd', 1),
    subclusters: [1, 1, 1, 9].map((weight, i) =>
      subclusterOf(i, { firstId: i * 10 + 1, count: 2, weight, labels: { rack: `r${i}` } }),
    ),
  };
  const shares = fairShares(heavy);
  assert.ok(Math.abs(shares.get(31 as NodeId)! - 0.5) < 1e-9, 'a rack holds one copy of a group at most');
  assert.ok(Math.abs(shares.get(1 as NodeId)! - 1 / 3) < 1e-9);
  const two = fairShares(keepNodes(heavy, (node) => node.id < 20));
  assert.ok(Math.abs(two.get(1 as NodeId)! - 0.75) < 1e-9, 'two racks hold one and a half each');
  const founding = fairShares(foundingTopology('rush-r', 1));
  for (const [node, share] of founding) {
    assert.ok(Math.abs(share - (3 * [1, 2, 4][Math.floor((node - 1) / 5)]!) / 35) < 1e-9);
  }
});

test('options that are no numbers of their kind are refused by name', () => {
  const topology = alike(5);
  assert.throws(() => balancePins(topology, { groupBits: 25 }), /group bits are 25/);
  assert.throws(() => balancePins(topology, { groupBits: 2, tolerance: Number.NaN }), /tolerance is NaN/);
  assert.throws(() => balancePins(topology, { groupBits: 2, sizes: [1, 2] }), /2 sizes for 4 groups/);
  assert.throws(() => balancePins(topology, { groupBits: 1, sizes: [1, -2] }), /size of group 1 is -2/);
});
