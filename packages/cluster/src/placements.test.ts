import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { asGroupId, asNodeId, type NodeId, SeededRandom } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { place, type Topology } from '@webdfs/placement';
import type { ClusterMap } from './map.ts';
import { type Placements, placementsOf, without } from './placements.ts';

const GROUP_BITS = 5;
const UNIT = 65_536;

function topologyOf(weights: readonly number[]): Topology {
  const nodes = weights.map((weight, i) => ({ id: asNodeId(i + 1), weight: weight * UNIT, labels: {} }));
  return { algorithm: 'wrd', version: 1, seed: 9, copies: 3, subclusters: [{ id: 1, nodes }] };
}

function mapOf(changes: Partial<ClusterMap> = {}): ClusterMap {
  const settled = topologyOf([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
  return {
    cluster: '0'.repeat(32),
    name: 'c',
    era: 0,
    groupBits: GROUP_BITS,
    policies: [],
    out: [],
    settled,
    ...changes,
  };
}

/** What a map says of all groups without any memory. */
function assertPlaced(placements: Placements, map: ClusterMap): void {
  const goal = without(map.target ?? map.settled, map.out);
  for (let group = 0; group < 2 ** GROUP_BITS; group++) {
    const id = asGroupId(group);
    assert.deepEqual(placements.placed(id, 3), place(map.settled, id, 3, { shortfall: 'fewer' }));
    assert.deepEqual(placements.goal(id, 3), place(goal, id, 3, { shortfall: 'fewer' }));
  }
}

test('placements made from those of the map before are what the map says, whatever changed', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (seed) => {
      const random = new SeededRandom(seed);
      const anyWeights = (): number[] => Array.from({ length: 12 }, () => random.below(3));
      let map = mapOf();
      let placements = placementsOf(map);
      for (let step = 0; step < 6; step++) {
        const { target, ...rest } = map;
        const out: NodeId[] = random.below(2) === 0 ? [] : [asNodeId(1 + random.below(12))];
        const next: ClusterMap[] = [
          { ...rest, target: topologyOf(anyWeights().with(random.below(12), 1)) },
          { ...rest, settled: target ?? rest.settled },
          { ...map, out },
        ];
        map = next[random.below(next.length)]!;
        placements = placementsOf(JSON.parse(JSON.stringify(map)) as ClusterMap, placements);
        if (random.below(3) > 0) assertPlaced(placements, map);
      }
      assertPlaced(placements, map);
    }),
    { numRuns: 60, seed: seedOf(t) },
  );
});

test('a topology that stays, and a target that is settled at, keep their tables', () => {
  const before = placementsOf(mapOf());
  const target = topologyOf([2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
  const moving = placementsOf(mapOf({ target }), before);
  const after = placementsOf(mapOf({ settled: target }), moving);
  assert.equal(moving.tables.settled, before.tables.settled);
  assert.equal(after.tables.settled, moving.tables.goal);
  assert.notEqual(moving.tables.goal, before.tables.goal);
});
