import assert from 'node:assert/strict';
import { test } from 'node:test';
import { algorithmOf } from './algorithms.ts';
import { publishTopology } from './publish.ts';
import { foundingTopology, SeededChance, subclusterOf } from './conformance.ts';
import type { NodeId } from './ids.ts';
import { hashKey } from './key-hash.ts';
import { weightShares } from './moves.ts';
import type { AlgorithmName, Topology } from './topology.ts';

/** Copies that each node holds of the groups given. */
function loadOf(topology: Topology, groups: Iterable<number>): Map<NodeId, number> {
  const place = algorithmOf(topology).prepare(topology);
  const load = new Map<NodeId, number>();
  for (const group of groups) {
    for (const node of place(group, topology.copies)) load.set(node, (load.get(node) ?? 0) + 1);
  }
  return load;
}

function* upTo(count: number): Generator<number> {
  for (let group = 0; group < count; group++) yield group;
}

/** For a node of each weight: each survivor's copies in its groups, relative to the survivor's share of the weight. */
function partners(topology: Topology, groups: number): number[] {
  const place = algorithmOf(topology).prepare(topology);
  const lists = Array.from(upTo(groups), (group) => place(group, 3));
  const shares = weightShares(topology);
  return [1, 7, 15].flatMap((failed) => {
    const beside = lists.filter((list) => list.includes(failed as NodeId)).flat();
    const held = Map.groupBy(beside, (node) => node);
    const total = beside.length - held.get(failed as NodeId)!.length;
    const rest = 1 - shares.get(failed as NodeId)!;
    held.delete(failed as NodeId);
    assert.equal(held.size, 14);
    return Array.from(held, ([node, { length }]) => length / ((total * shares.get(node)!) / rest));
  });
}

test('rendezvous: all survivors serve the groups of a node that failed, in proportion to weight within a tenth', () => {
  for (const part of partners(foundingTopology('rendezvous', 1), 200_000))
    assert.ok(part > 0.9 && part < 1.1, `${part}`);
});

test('ring: no survivor is left out of the groups of a node that failed', () => {
  const topology = publishTopology(foundingTopology('ring', 1), { groupBits: 14 });
  for (const part of partners(topology, 2 ** 14)) assert.ok(part > 0.5 && part < 1.6, `${part}`);
});

test('the fuller a node may be, the fewer groups there are: as the formula for the recommended number says', () => {
  for (const [nodes, groupBits] of [
    [15, 10],
    [15, 14],
    [50, 12],
    [100, 12],
    [100, 14],
    [300, 14],
  ] as const) {
    const topology: Topology = {
      ...foundingTopology('rendezvous', 2),
      subclusters: [subclusterOf(1, { firstId: 1, count: nodes, weight: 1 })],
    };
    const mean = (3 * 2 ** groupBits) / nodes;
    const fullest = Math.max(...loadOf(topology, upTo(2 ** groupBits)).values()) / mean;
    const expected = 1 + Math.sqrt((2 * Math.log(nodes) * (1 - 3 / nodes)) / mean);
    assert.ok(Math.abs(fullest - expected) < 0.1, `${nodes} nodes, 2^${groupBits} groups: ${fullest}, not ${expected}`);
  }
});

// The first published cluster: 5 sub-clusters of three servers, two copies of 129 278 objects, its own key hash (of 15 bits)
// left a chi-square of 90.
for (const algorithm of ['rush-p', 'rush-r', 'rush-r-shuffle', 'rush-t', 'wrd'] satisfies AlgorithmName[]) {
  test(`${algorithm}: fifteen like servers hold 129 278 objects evenly`, () => {
    const chance = new SeededChance(15);
    const text = new TextEncoder();
    const keys = Array.from({ length: 129_278 }, () => {
      const name = `${chance.uint32().toString(16)}-${chance.uint32().toString(16)}`;
      return hashKey(text.encode(name)).high;
    });
    const topology: Topology = {
      ...foundingTopology(algorithm, 3),
      copies: 2,
      subclusters: Array.from({ length: 5 }, (_, i) =>
        subclusterOf(i + 1, { firstId: i * 3 + 1, count: 3, weight: 1 }),
      ),
    };
    const load = [...loadOf(topology, keys).values()];
    const mean = (keys.length * 2) / 15;
    const chiSquare = load.reduce((sum, count) => sum + (count - mean) ** 2 / mean, 0);
    assert.ok(load.length === 15 && chiSquare < 36, `chi-square ${chiSquare}`);
    assert.ok(Math.max(...load) / mean < 1.025);
  });
}
