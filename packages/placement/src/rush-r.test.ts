import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeId } from './ids.ts';
import { foundingTopology, subclusterOf } from './conformance.ts';
import { movesBetween } from './moves.ts';
import { RUSH_R } from './rush-r.ts';
import type { Subcluster, Topology } from './topology.ts';

// The experiments RUSH_R was published with, on the same set-up: 10 000 groups, three copies; tolerances are four
// standard deviations over seeds.
const GROUPS = 10_000;
const SEEDS = [1, 2, 3];

interface Outcome {
  readonly moved: number;
  /** Copies that left each sub-cluster, oldest first. */
  readonly left: readonly number[];
  readonly arrivedAt: ReadonlySet<NodeId>;
}

function change(seed: number, alter: (subclusters: readonly Subcluster[]) => readonly Subcluster[]): Outcome {
  const before = foundingTopology('rush-r', seed);
  const after: Topology = { ...before, subclusters: alter(before.subclusters) };
  const old = RUSH_R.prepare(before);
  const next = RUSH_R.prepare(after);
  const left = [0, 0, 0];
  const arrivedAt = new Set<NodeId>();
  let moved = 0;
  for (const move of movesBetween(
    (g) => old(g, 3),
    (g) => next(g, 3),
    GROUPS,
  )) {
    moved += move.come.length;
    for (const node of move.gone) left[Math.floor((node - 1) / 5)]! += 1;
    for (const node of move.come) arrivedAt.add(node);
  }
  return { moved, left, arrivedAt };
}

function near(value: number, expected: number, tolerance: number): void {
  assert.ok(Math.abs(value - expected) <= tolerance, `${value} is not ${expected} ± ${tolerance}`);
}

function withNodes(subcluster: Subcluster, keep: (node: NodeId) => boolean): Subcluster {
  return { ...subcluster, nodes: subcluster.nodes.filter((node) => keep(node.id)) };
}

const drained = subclusterOf(1, { firstId: 1, count: 5, weight: 0 });

test('the load of fifteen nodes of weights 1, 2, 4 passes a chi-square test', () => {
  for (const seed of SEEDS) {
    const place = RUSH_R.prepare(foundingTopology('rush-r', seed));
    const load = new Map<NodeId, number>();
    for (let group = 0; group < GROUPS; group++) {
      for (const node of place(group, 3)) load.set(node, (load.get(node) ?? 0) + 1);
    }
    let chiSquare = 0;
    for (const [node, count] of load) {
      const expected = (GROUPS * 3 * [1, 2, 4][Math.floor((node - 1) / 5)]!) / 35;
      chiSquare += (count - expected) ** 2 / expected;
    }
    assert.ok(chiSquare < 36, `chi-square ${chiSquare} with seed ${seed}`);
  }
});

test('adding a sub-cluster of weight 8 moves what it must, and nothing between old nodes', () => {
  for (const seed of SEEDS) {
    const added = subclusterOf(4, { firstId: 16, count: 5, weight: 8 });
    const { moved, arrivedAt } = change(seed, (subclusters) => [...subclusters, added]);
    near(moved, 16_000, 250);
    assert.ok([...arrivedAt].every((node) => node >= 16));
  }
});

test('draining the oldest sub-cluster moves 5 657; the newest gives nothing', () => {
  for (const seed of SEEDS) {
    const { moved, left } = change(seed, ([, ...rest]) => [drained, ...rest]);
    near(moved, 5_657, 230);
    near(left[1]!, 1_335, 165);
    assert.equal(left[2], 0);
  }
});

test('dropping a drained sub-cluster moves nothing', () => {
  const before = foundingTopology('rush-r', 1);
  const old = RUSH_R.prepare({ ...before, subclusters: [drained, ...before.subclusters.slice(1)] });
  const next = RUSH_R.prepare({ ...before, subclusters: before.subclusters.slice(1) });
  for (let group = 0; group < GROUPS; group++) assert.deepEqual(next(group, 3), old(group, 3));
});

test('doubling the weight of the second sub-cluster moves 5 414; nothing leaves it', () => {
  for (const seed of SEEDS) {
    const heavier = subclusterOf(2, { firstId: 6, count: 5, weight: 4 });
    const { moved, left } = change(seed, ([first, , third]) => [first!, heavier, third!]);
    near(moved, 5_414, 220);
    assert.equal(left[1], 0);
  }
});

test('removing node 1 moves 1 755; nothing leaves the newest sub-cluster', () => {
  for (const seed of SEEDS) {
    const { moved, left } = change(seed, ([first, ...rest]) => [withNodes(first!, (node) => node !== 1), ...rest]);
    near(moved, 1_755, 150);
    near(left[1]!, 320, 65);
    assert.equal(left[2], 0);
  }
});

test('removing node 15 moves 4 363', () => {
  for (const seed of SEEDS) {
    const { moved } = change(seed, ([first, second, third]) => [
      first!,
      second!,
      withNodes(third!, (node) => node !== 15),
    ]);
    near(moved, 4_363, 230);
  }
});

test('an old sub-cluster smaller than the number of copies still gives whole lists', () => {
  const topology: Topology = {
    ...foundingTopology('rush-r', 5),
    subclusters: [1, 1, 2].map((count, i) => subclusterOf(i, { firstId: i * 10 + 1, count, weight: i + 1 })),
  };
  const place = RUSH_R.prepare(topology);
  for (let group = 0; group < GROUPS; group++) assert.equal(new Set(place(group, 4)).size, 4);
});
