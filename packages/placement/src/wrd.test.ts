import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GroupId } from './ids.ts';
import { calibrate } from './calibrate.ts';
import { foundingTopology, subclusterOf } from './conformance.ts';
import { movesBetween } from './moves.ts';
import { compilePlacement } from './placement-table.ts';
import type { Subcluster, Topology } from './topology.ts';
import { WRD } from './wrd.ts';

const RACK_NODES = 8;
const GROUP_BITS = 13;

function rackOf(number: number, weight: number, count = RACK_NODES): Subcluster {
  return subclusterOf(number, { firstId: number * 10, count, weight, labels: { rack: `r${number}` } });
}

function topologyOf(subclusters: Subcluster[]): Topology {
  return calibrate({ algorithm: 'wrd', version: 1, seed: 11, copies: 3, domain: 'rack', subclusters });
}

/** 12 racks of 8 nodes; weights 1, 2, 4, four racks each, oldest first. */
function twelveRacks(): Subcluster[] {
  return Array.from({ length: 12 }, (_, i) => rackOf(i + 1, [1, 2, 4][Math.floor(i / 4)]!));
}

function lists(topology: Topology): (group: number) => readonly number[] {
  const table = compilePlacement(topology, GROUP_BITS, 3);
  return (group) => table.members(group as GroupId);
}

function moved(before: Topology, after: Topology): number {
  const old = compilePlacement(before, GROUP_BITS, 3);
  const next = compilePlacement(after, GROUP_BITS, 3);
  const moves = movesBetween(
    (g) => old.members(g as GroupId),
    (g) => next.members(g as GroupId),
    2 ** GROUP_BITS,
  );
  return moves.reduce((sum, move) => sum + move.come.length, 0);
}

/** R · G · Σ max(0, share after − share before): what no placement can move less than. */
function optimum(before: Topology, after: Topology): number {
  const shares = (topology: Topology): Map<number, number> => {
    const nodes = topology.subclusters.flatMap((subcluster) => subcluster.nodes);
    const total = nodes.reduce((sum, node) => sum + node.weight, 0);
    return new Map(nodes.map((node) => [node.id, node.weight / total]));
  };
  const old = shares(before);
  let sum = 0;
  for (const [node, share] of shares(after)) sum += Math.max(0, share - (old.get(node) ?? 0));
  return sum * 3 * 2 ** GROUP_BITS;
}

const changes: Record<string, (racks: Subcluster[]) => Subcluster[]> = {
  'a rack added': (racks) => [...racks, rackOf(13, 4)],
  'the oldest rack drained': ([, ...rest]) => [rackOf(1, 0), ...rest],
  'a rack of double weight': ([first, , ...rest]) => [first!, rackOf(2, 2), ...rest],
};

for (const [name, change] of Object.entries(changes)) {
  test(`${name} moves at most 1.08 of the optimum`, () => {
    const before = topologyOf(twelveRacks());
    const after = topologyOf(change(twelveRacks()));
    const best = optimum(before, after);
    const count = moved(before, after);
    assert.ok(count <= 1.08 * best + 4 * Math.sqrt(best), `${count} moved, optimum ${best}`);
  });
}

test('a node removed without recalibration moves its own copies and no others', () => {
  const before = topologyOf(twelveRacks());
  const after = { ...before, subclusters: [rackOf(1, 1, 7), ...before.subclusters.slice(1)] };
  const removed = 17;
  const held = lists(before);
  const moves = movesBetween(
    (g) => held(g) as never,
    (
      (place) => (g: number) =>
        place(g) as never
    )(lists(after)),
    2 ** GROUP_BITS,
  );
  assert.ok(moves.length > 50);
  for (const move of moves) assert.deepEqual(move.gone, [removed]);
});

test('with racks enough no two copies share one', () => {
  const place = lists(topologyOf(twelveRacks()));
  for (let group = 0; group < 2 ** GROUP_BITS; group++) {
    const racks = place(group).map((node) => Math.floor(node / 10));
    assert.equal(new Set(racks).size, 3);
  }
});

test('two racks and three copies: always two and one', () => {
  const topology = topologyOf([rackOf(1, 1), rackOf(2, 3)]);
  const place = lists(topology);
  for (let group = 0; group < 2 ** GROUP_BITS; group++) {
    const inFirst = place(group).filter((node) => node < 20).length;
    assert.ok(inFirst === 1 || inFirst === 2);
  }
});

test('calibrated, the load of fifteen unlike nodes passes a chi-square test', () => {
  for (const seed of [1, 2, 3]) {
    const topology = calibrate(foundingTopology('wrd', seed));
    const place = WRD.prepare(topology);
    const load = new Map<number, number>();
    for (let group = 0; group < 10_000; group++) {
      for (const node of place(group, 3)) load.set(node, (load.get(node) ?? 0) + 1);
    }
    let chiSquare = 0;
    for (let node = 1; node <= 15; node++) {
      const expected = (30_000 * [1, 2, 4][Math.floor((node - 1) / 5)]!) / 35;
      chiSquare += ((load.get(node) ?? 0) - expected) ** 2 / expected;
    }
    assert.ok(chiSquare < 36, `chi-square ${chiSquare} with seed ${seed}`);
  }
});
