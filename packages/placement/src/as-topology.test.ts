import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { publishTopology } from './publish.ts';
import { asTopology } from './as-topology.ts';
import { foundingTopology, rackTopology, seedOf } from './conformance.ts';
import { place } from './place.ts';
import { PlacementError } from './placement-error.ts';
import type { GroupId } from './ids.ts';

const good = publishTopology({ ...rackTopology('ring', 1), pins: [] }, { groupBits: 4 });
const parsed = (): Record<string, unknown> => JSON.parse(JSON.stringify(good)) as Record<string, unknown>;

test('a topology comes back from JSON as it was', () => {
  assert.deepEqual(asTopology(parsed()), good);
  assert.deepEqual(place(asTopology(parsed()), 3 as GroupId, 3), place(good, 3 as GroupId, 3));
});

test('a topology that is yet to be published may lack its table', () => {
  const { table: _, ...plain } = good;
  assert.throws(() => asTopology(plain), /ring has no table/);
  assert.deepEqual(publishTopology(asTopology(plain, { published: false }), { groupBits: 4 }), good);
});

const wrong: [string, unknown, RegExp][] = [
  ['no object', [], /as a whole is not an object/],
  ['no algorithm', { ...parsed(), algorithm: 7 }, /algorithm is not a name/],
  ['an unknown algorithm', { ...parsed(), algorithm: 'crush' }, /unknown placement algorithm crush/],
  ['a seed in letters', { ...parsed(), seed: '7' }, /seed is "7", not a number/],
  ['no sub-clusters', { ...parsed(), subclusters: undefined }, /subclusters is not a list/],
  ['a sub-cluster that is none', { ...parsed(), subclusters: [null] }, /subclusters\[0\] is not an object/],
  ['no nodes', { ...parsed(), subclusters: [{ id: 1 }] }, /subclusters\[0\].nodes is not a list/],
  [
    'a weight in letters',
    { ...parsed(), subclusters: [{ id: 1, nodes: [{ id: 1, weight: 'x', labels: {} }] }] },
    /subclusters\[0\].nodes\[0\].weight is "x"/,
  ],
  [
    'no labels',
    { ...parsed(), subclusters: [{ id: 1, nodes: [{ id: 1, weight: 1 }] }] },
    /subclusters\[0\].nodes\[0\].labels is not an object/,
  ],
  ['a pin without a group', { ...parsed(), pins: [{ from: 1, to: 2 }] }, /pins\[0\].group is undefined/],
  ['a table without rows', { ...parsed(), table: { groupBits: 4, copies: 3 } }, /table is not 2\^4 groups/],
  [
    'more copies than nodes',
    { ...parsed(), copies: 32, subclusters: foundingTopology('ring', 1).subclusters },
    /32 copies/,
  ],
];

for (const [name, value, message] of wrong) {
  test(`${name}: refused, and the entry named`, () => {
    assert.throws(
      () => asTopology(value),
      (error) => {
        assert.ok(error instanceof PlacementError && error.code === 'INVALID');
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test('many errors are named, but not all of them', () => {
  const nodes = Array.from({ length: 50 }, (_, i) => ({ id: i + 1, weight: -1, labels: {} }));
  assert.throws(
    () => asTopology({ ...parsed(), subclusters: [{ id: 1, nodes }] }),
    /node 8 has weight -1.*and 42 more/,
  );
});

test('whatever is put for a part, the answer is a topology or a typed error', (t) => {
  const paths = ['algorithm', 'version', 'seed', 'copies', 'domain', 'subclusters', 'factors', 'pins', 'table'];
  const part = fc.oneof(
    fc.jsonValue(),
    fc.integer(),
    fc.constantFrom(Number.NaN, Infinity, -1, null, undefined, 2 ** 53),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...paths),
      fc.constantFrom('', 'id', 'nodes', 'groupBits', 'copies', 'rows'),
      part,
      (path, inner, value) => {
        const topology = parsed();
        const old = topology[path];
        if (inner === '' || typeof old !== 'object' || old === null) topology[path] = value;
        else if (Array.isArray(old)) topology[path] = [{ ...(old[0] as object), [inner]: value }];
        else topology[path] = { ...old, [inner]: value };
        try {
          place(asTopology(topology), 1 as GroupId, 1);
        } catch (error) {
          assert.ok(error instanceof PlacementError, String(error));
        }
      },
    ),
    { numRuns: 500, seed: seedOf(t) },
  );
});
