import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  changeTopology,
  planChange,
  publishTopology,
  type Topology,
  type TopologyChange,
  UNIT_WEIGHT,
} from '@webdfs/placement';
import { parseChange } from '@webdfs/webdfs';
import { planText, type ShownPlan } from './plan-text.ts';

const GROUP_BITS = 10;

/** Racks of nodes of weight 1. */
function topologyOf(racks: number, nodes: number): Topology {
  const subclusters = Array.from({ length: racks }, (_, r) => ({
    id: r + 1,
    nodes: Array.from({ length: nodes }, (_, i) => ({
      id: r * nodes + i + 1,
      weight: UNIT_WEIGHT,
      labels: { rack: `r${r + 1}` },
    })),
  }));
  const topology = { algorithm: 'wrd', version: 1, seed: 3, copies: 3, domain: 'rack', subclusters };
  return publishTopology(topology as unknown as Topology, { groupBits: GROUP_BITS });
}

function shown(before: Topology, words: readonly string[], storedBytes?: number): ShownPlan {
  const changes: TopologyChange[] = words.map(parseChange);
  const after = changeTopology(before, changes, { groupBits: GROUP_BITS });
  const groupBytes = storedBytes === undefined ? 1 : storedBytes / 2 ** GROUP_BITS;
  return {
    of: 'here',
    domain: after.domain,
    storedBytes,
    ...planChange({ before, after, groupBits: GROUP_BITS, groupBytes }),
  };
}

test('a small plan shows every pair of nodes, and its sums are those of the plan', () => {
  const plan = shown(topologyOf(4, 2), ['add=2,weight=2,rack=r5']);
  const text = planText(plan);
  const [, ...lines] = text.slice(text.indexOf('from node')).split('\n');
  const rows = lines.slice(0, lines.indexOf('')).map((line) => line.trim().split(/\s+/));
  assert.deepEqual(
    rows.map(([name]) => name),
    ['1', '2', '3', '4', '5', '6', '7', '8', 'all'],
  );
  const numbers = rows
    .at(-1)!
    .slice(1)
    .map((cell) => Number(cell.replaceAll(',', '')));
  assert.equal(numbers.at(-1), plan.movement.copies);
  assert.equal(
    numbers.slice(0, -1).reduce((sum, number) => sum + number, 0),
    plan.movement.copies,
  );
  assert.doesNotMatch(text, /The largest flows|\bB\b|KiB/);
  assert.match(text, new RegExp(`^${plan.movement.copies.toLocaleString('en-US')} of 3,072 copies move`, 'm'));
});

test('bytes are shown where they are known', () => {
  const text = planText(shown(topologyOf(4, 2), ['drain=1'], 2 ** 30));
  assert.match(text, /^here: 1,024 groups, apart by rack, 1\.0 GiB stored$/m);
  assert.match(text, / in \d+ of 1,024 groups, \d+\.\d MiB\.$/m);
});

test('a plan for many nodes stays short: by rack, then the largest flows, then the nodes that change most', () => {
  const text = planText(shown(topologyOf(9, 30), ['drain=rack:r1']));
  assert.match(text, /^from rack \\ to /m);
  assert.match(text, /^The largest flows:$/m);
  assert.match(text, /^… and \d+ pairs more; --json has all$/m);
  assert.match(text, /^… and 246 nodes more that change less; --json has all$/m);
  assert.ok(text.split('\n').length < 90);
  assert.ok(text.split('\n').every((line) => line.length < 200));
  const wide = planText(shown(topologyOf(70, 2), ['add=30,rack=r71']));
  assert.doesNotMatch(wide, / \\ to /);
  assert.match(wide, /^The largest flows:$/m);
});

test('a copy more has no giver, a copy less has no taker and moves nothing', () => {
  const more = planText(shown(topologyOf(5, 1), ['copies=4']));
  assert.match(more, /^\(further copy\) /m);
  const fewer = planText(shown(topologyOf(5, 1), ['copies=2']));
  assert.match(fewer, /^from node \\ to .*\(given up\)/m);
});

test('what stays as it is says so, and warnings stand where they are seen', () => {
  const still = planText(shown(topologyOf(4, 2), []));
  assert.match(still, /^Nothing has to be copied\.$/m);
  assert.doesNotMatch(still, /Warnings/);
  const short = planText(shown(topologyOf(4, 1), ['drain=1,2']));
  assert.match(short, /^Warnings:\n {2}! 3 copies need as many nodes with weight, there will be 2/m);
  assert.ok(short.indexOf('Warnings:') < short.indexOf('from node'));
});
