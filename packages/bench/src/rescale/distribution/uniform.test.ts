import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeId } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { membershipOf, type Scenario } from '../scenario.ts';
import { RANDOM, UNIFORM } from './uniform.ts';

function scenario(nodes: number, change: number): Scenario {
  return { nodes, change, copies: 3, bytesPerNode: 1 };
}

function counts(lists: readonly (readonly NodeId[])[]): number[] {
  const found = Map.groupBy(lists.flat(), (node) => node);
  return [...found.values()].map(({ length }) => length);
}

const SHAPES = [
  [10, 5],
  [5, 20],
  [20, -1],
  [20, -7],
] as const;

test('every node is equally full before and after, but for one file', (t) => {
  const random = randomOf(t);
  for (const [nodes, change] of SHAPES) {
    const sizes = Array.from({ length: 500 }, () => 1);
    const membership = membershipOf(scenario(nodes, change));
    const files = UNIFORM.distribute(sizes, membership, random);
    for (const [side, expected] of [
      ['before', nodes],
      ['after', nodes + change],
    ] as const) {
      const held = counts(files.map((file) => file[side]));
      assert.equal(held.length, expected);
      // growing evens out what comes and what goes, each but for one
      assert.ok(Math.max(...held) - Math.min(...held) <= 3, `${nodes}${change} ${side}: ${held.join(' ')}`);
    }
  }
});

test('copies of a file lie on distinct nodes, and old nodes only give copies up where new ones join', (t) => {
  const random = randomOf(t);
  for (const [nodes, change] of SHAPES) {
    const membership = membershipOf(scenario(nodes, change));
    for (const { before, after } of UNIFORM.distribute(
      Array.from({ length: 300 }, () => 1),
      membership,
      random,
    )) {
      assert.deepEqual([new Set(before).size, new Set(after).size], [3, 3]);
      assert.ok(after.every((node) => membership.after.includes(node)));
      if (change > 0) assert.ok(after.every((node) => before.includes(node) || node > nodes));
      else assert.ok(before.every((node) => after.includes(node) || node > nodes + change));
    }
  }
});

test('the random distribution is not evened out', (t) => {
  const sizes = Array.from({ length: 2000 }, () => 1);
  const files = RANDOM.distribute(sizes, membershipOf(scenario(10, 5)), randomOf(t));
  const held = counts(files.map(({ before }) => before));
  assert.ok(Math.max(...held) - Math.min(...held) > 3, held.join(' '));
});
