import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { GroupId, NodeId } from './ids.ts';
import { anyTopology, foundingTopology, SeededChance, seedOf, subclusterOf } from './conformance.ts';
import { domainOf, placeableNodes } from './domains.ts';
import { algorithmOf } from './algorithms.ts';
import { place } from './place.ts';
import { compilePlacement } from './placement-table.ts';
import { ALGORITHMS, type Pin, type Topology } from './topology.ts';

const group = (value: number): GroupId => value as GroupId;

test('too few nodes with weight are refused by name, never answered with a short list', () => {
  const topology: Topology = {
    ...foundingTopology('wrd', 1),
    subclusters: [
      subclusterOf(1, { firstId: 1, count: 2, weight: 1 }),
      subclusterOf(2, { firstId: 5, count: 2, weight: 0 }),
    ],
  };
  for (const algorithm of ALGORITHMS) {
    const other = { ...topology, algorithm };
    assert.throws(() => place(other, group(0), 3), { code: 'INVALID' });
    assert.throws(() => compilePlacement(other, 4, 3), { code: 'INVALID' });
    assert.equal(place(other, group(0), 3, { shortfall: 'fewer' }).length, 2);
    assert.equal(compilePlacement(other, 4, 3, { shortfall: 'fewer' }).count, 2);
  }
});

test('an algorithm of another version is refused', () => {
  const topology = { ...foundingTopology('wrd', 1), version: 2 } as unknown as Topology;
  assert.throws(() => place(topology, group(0), 3), { code: 'BAD_CONFIG' });
  const unknown = { ...foundingTopology('wrd', 1), algorithm: 'constructor' } as unknown as Topology;
  assert.throws(() => place(unknown, group(0), 3), { code: 'BAD_CONFIG' });
});

test('the table answers as place does, each time', () => {
  for (const algorithm of ALGORITHMS) {
    const topology = foundingTopology(algorithm, 3);
    const table = compilePlacement(topology, 8, 3);
    for (let g = 0; g < 256; g++) {
      assert.deepEqual(table.members(group(g)), place(topology, group(g), 3));
      assert.deepEqual(table.members(group(g)), place(topology, group(g), 3));
    }
    assert.deepEqual([...table.rows().subarray(9, 12)], table.members(group(3)));
    assert.throws(() => table.members(group(256)), { code: 'INVALID' });
    assert.throws(() => table.members(group(-1)), { code: 'INVALID' });
  }
});

test('a table of too many groups is refused', () => {
  assert.throws(() => compilePlacement(foundingTopology('wrd', 1), 25, 3), { code: 'INVALID' });
});

test('a pin replaces one node and keeps the rank', () => {
  for (const algorithm of ALGORITHMS) {
    const topology = foundingTopology(algorithm, 1);
    const [first, second, third] = place(topology, group(7), 3);
    const to = placeableNodes(topology).find((node) => ![first, second, third].includes(node.id))!.id;
    const pinned = { ...topology, pins: [{ group: group(7), from: second!, to }] };
    assert.deepEqual(place(pinned, group(7), 3), [first, to, third]);
    assert.deepEqual(place(pinned, group(8), 3), place(topology, group(8), 3));
  }
});

test('a pin to a drained node, to a member, or from a stranger changes nothing', () => {
  const base = foundingTopology('wrd', 1);
  const topology = {
    ...base,
    subclusters: [subclusterOf(1, { firstId: 1, count: 5, weight: 0 }), ...base.subclusters.slice(1)],
  };
  const list = place(topology, group(7), 3);
  const strangers = placeableNodes(topology).filter((node) => !list.includes(node.id));
  const pins: [NodeId, NodeId][] = [
    [list[0]!, 1 as NodeId],
    [list[0]!, list[1]!],
    [strangers[0]!.id, strangers[1]!.id],
  ];
  for (const [from, to] of pins) {
    assert.deepEqual(place({ ...topology, pins: [{ group: group(7), from, to }] }, group(7), 3), list);
  }
});

test('whatever the pins: distinct live nodes, prefixes or nested sets, and no domain more crowded', (t) => {
  const random = fc.integer({ min: 0, max: 0xffff_ffff });
  fc.assert(
    fc.property(random, fc.constantFrom(...ALGORITHMS), (seed, algorithm) => {
      const chance = new SeededChance(seed);
      const topology = anyTopology(chance, algorithmOf(foundingTopology(algorithm, 1)));
      const live = placeableNodes(topology);
      const any = (): NodeId => live[chance.below(live.length)]!.id;
      const pins: Pin[] = Array.from({ length: 4 }, () => ({ group: group(1), from: any(), to: any() }));
      const pinned = { ...topology, pins };
      const domains = new Map(live.map((node) => [node.id, domainOf(topology, node)]));
      const crowd = (list: readonly NodeId[]): number =>
        Math.max(0, ...Array.from(Map.groupBy(list, (node) => domains.get(node)!).values(), (nodes) => nodes.length));
      for (let count = 1; count <= Math.min(live.length, 6); count++) {
        const list = place(pinned, group(1), count);
        const fewer = place(pinned, group(1), count - 1);
        assert.equal(new Set(list).size, count);
        assert.ok(list.every((node) => domains.has(node)));
        if (algorithm === 'wrd') {
          assert.deepEqual(list.slice(0, -1), fewer);
          if (count <= topology.copies) assert.ok(crowd(list) <= crowd(place(topology, group(1), count)));
        } else assert.ok(fewer.every((node) => list.includes(node)));
      }
    }),
    { numRuns: 300, seed: seedOf(t) },
  );
});
