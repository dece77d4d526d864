import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import fc from 'fast-check';
import { subclustersOf } from './layout.ts';
import {
  balanceOf,
  biasByWeight,
  loadsOf,
  movesBetween,
  optimumOf,
  partnersOf,
  type Placed,
  sharedRackShare,
  targetsOf,
} from './placed.ts';

const NODES = 6;
const COPIES = 3;

/** Two nodes of weight 1, two of 2, two of 3; the lists as given. */
function aPlacement(lists: readonly (readonly number[])[]): Placed {
  return {
    subclusters: subclustersOf([1, 2, 3], 2),
    copies: COPIES,
    groupCount: lists.length,
    rows: Uint16Array.from(lists.flat()),
  };
}

const list = fc.shuffledSubarray([1, 2, 3, 4, 5, 6], { minLength: COPIES, maxLength: COPIES });

test('every moved copy leaves one node and comes to another, and a change undone moves as many back', (t) => {
  const pairs = fc.array(fc.tuple(list, list), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(pairs, (groups) => {
      const before = aPlacement(groups.map(([old]) => old));
      const after = aPlacement(groups.map(([, now]) => now));
      const moves = movesBetween(before, after);
      const sum = (counts: ReadonlyMap<number, number>): number => [...counts.values()].reduce((a, b) => a + b, 0);
      assert.equal(sum(moves.from), moves.count);
      assert.equal(sum(moves.to), moves.count);
      assert.ok(moves.ranks >= moves.count);
      assert.equal(movesBetween(after, before).count, moves.count);
      const loads = loadsOf(before);
      for (const [node, load] of loadsOf(after)) {
        assert.equal(load, loads.get(node)! + (moves.to.get(node) ?? 0) - (moves.from.get(node) ?? 0));
      }
    }),
    { seed: seedOf(t) },
  );
});

test('another order of the same nodes moves nothing, but changes ranks', () => {
  const moves = movesBetween(aPlacement([[1, 2, 3]]), aPlacement([[3, 2, 1]]));
  assert.deepEqual([moves.count, moves.ranks], [0, 2]);
});

test('a list that was short is completed: the new copy counts as moved, from nowhere', () => {
  const moves = movesBetween(aPlacement([[1, 2, 0]]), aPlacement([[1, 2, 3]]));
  assert.deepEqual([moves.count, [...moves.to], [...moves.from]], [1, [[3, 1]], []]);
});

test('targets are in proportion to weight, and the optimum is what nodes lose of them', () => {
  const before = aPlacement(Array.from({ length: 40 }, () => [1, 2, 3]));
  assert.deepEqual([...targetsOf(before).values()], [10, 10, 20, 20, 30, 30]);
  const after = { ...before, subclusters: subclustersOf([1, 2], 2) };
  assert.equal(optimumOf(before, after), 60);
  assert.equal(optimumOf(after, before), 60);
});

test('partners of a node are those in its groups, in any place; nodes that share none count 0', () => {
  const placed = aPlacement([
    [1, 2, 3],
    [3, 1, 4],
    [2, 3, 4],
  ]);
  assert.deepEqual(Object.fromEntries(partnersOf(placed, asNodeId(1))), { 2: 1, 3: 2, 4: 1, 5: 0, 6: 0 });
});

test('a balance of exact shares has no bias and a chi-square of 0', () => {
  const lists = [
    [1, 3, 5],
    [2, 4, 6],
    [3, 5, 6],
    [4, 5, 6],
  ];
  const placed = aPlacement(lists);
  const { chiSquare, largest, smallest, deviation } = balanceOf(placed);
  assert.deepEqual([chiSquare, largest, smallest, deviation], [0, 1, 1, 0]);
  assert.deepEqual(
    biasByWeight(placed).map(([, bias]) => bias),
    [1, 1, 1],
  );
  assert.equal(NODES, loadsOf(placed).size);
});

test('groups with two copies in one rack are counted once, however crowded', () => {
  const placed = aPlacement([
    [1, 2, 3],
    [1, 3, 5],
    [1, 2, 0],
    [1, 4, 6],
  ]);
  assert.equal(sharedRackShare(placed), 0.5);
});
