import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { LOAD_VALIDATOR } from './load-validator.ts';

const NODES = [1, 2, 3].map(asNodeId);

function faultsOf(lists: readonly number[][], fullest = 1.5): readonly string[] {
  const holders = lists.map((list) => new Set(list.map(asNodeId)));
  const sizes = lists.map(() => 1);
  return LOAD_VALIDATOR.validate(sizes, (file) => holders[file]!, { nodes: NODES, copies: 2, fullest }).faults;
}

test('a placement with two copies of everything, evenly, has no faults', () => {
  assert.deepEqual(
    faultsOf(
      [
        [1, 2],
        [2, 3],
        [3, 1],
      ],
      1,
    ),
    [],
  );
});

test('a missing copy, a node that should be empty, and a node too full are told by name', () => {
  assert.match(faultsOf([[1], [2, 3]])[0]!, /file 0 has 1 copies instead of 2/);
  assert.match(
    faultsOf([
      [1, 9],
      [2, 3],
    ])[0]!,
    /file 0 lies on node 9/,
  );
  assert.match(
    faultsOf(
      [
        [1, 2],
        [1, 3],
      ],
      1.2,
    )[0]!,
    /fullest node holds 1.500/,
  );
});

test('of many faults the first are told, the others counted', () => {
  const faults = faultsOf(Array.from({ length: 40 }, () => [1]));
  assert.ok(faults.length <= 11);
  assert.match(faults.at(-1)!, /more faults/);
});
