import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asNodeId, type NodeId } from '@webdfs/base';
import {
  changeTopology,
  compilePlacement,
  type DomainLabel,
  type PlacementTable,
  publishTopology,
  type Topology,
  UNIT_WEIGHT,
} from '@webdfs/placement';
import { balanceIntake } from './balance-intake.ts';

const GROUP_BITS = 11;

function tablesOf(domain?: DomainLabel): { before: PlacementTable; after: PlacementTable } {
  const nodes = Array.from({ length: 20 }, (_, i) => {
    return { id: asNodeId(i + 1), weight: UNIT_WEIGHT, labels: { rack: `r${i % 5}` } };
  });
  const plain: Topology = {
    algorithm: 'wrd',
    version: 1,
    seed: 1,
    copies: 3,
    ...(domain === undefined ? {} : { domain }),
    subclusters: [{ id: 1, nodes }],
  };
  const topology = publishTopology(plain, { groupBits: GROUP_BITS });
  const leaving = [{ type: 'remove', nodes: { by: 'id', ids: [20] } }] as const;
  const changed = changeTopology(topology, leaving, { groupBits: GROUP_BITS });
  return { before: compilePlacement(topology, GROUP_BITS, 3), after: compilePlacement(changed, GROUP_BITS, 3) };
}

function pinnedTable(after: PlacementTable, pins: ReturnType<typeof balanceIntake>): PlacementTable {
  return compilePlacement({ ...after.topology, pins }, GROUP_BITS, 3);
}

function intakes(before: PlacementTable, after: PlacementTable): { most: number; total: number } {
  const counts = new Map<NodeId, number>();
  for (let group = 0; group < before.groupCount; group++) {
    const old = before.members(asGroupId(group));
    for (const node of after.members(asGroupId(group))) {
      if (!old.includes(node)) counts.set(node, (counts.get(node) ?? 0) + 1);
    }
  }
  const all = [...counts.values()];
  return { most: Math.max(...all), total: all.reduce((sum, count) => sum + count, 0) };
}

test('pins even out what each node takes in, and nothing more moves for it', () => {
  const { before, after } = tablesOf();
  const pins = balanceIntake(before, after, { tolerance: 0.05 });
  const [plain, pinned] = [intakes(before, after), intakes(before, pinnedTable(after, pins))];
  assert.equal(pinned.total, plain.total);
  assert.ok(plain.most > 1.3 * (plain.total / 19), `${plain.most} of ${plain.total}`);
  assert.ok(pinned.most < plain.most, `${pinned.most} of ${plain.most}`);
  assert.ok(pinned.most < 1.25 * (plain.total / 19), `${pinned.most} of ${plain.total}`);
});

test('no pin brings two copies of a group into one rack', () => {
  const { before, after } = tablesOf('rack');
  const pins = balanceIntake(before, after, { tolerance: 0.05 });
  assert.ok(pins.length > 0);
  const table = pinnedTable(after, pins);
  for (const { group, to } of pins) {
    const members = table.members(group);
    assert.ok(members.includes(to), 'the pin applies');
    assert.equal(new Set(members.map((node) => (node - 1) % 5)).size, 3);
  }
});

test('where all take in their share no pin is needed', () => {
  const { before } = tablesOf();
  assert.deepEqual(balanceIntake(before, before), []);
});
