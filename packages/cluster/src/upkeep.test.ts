import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { CONTROLLER_KEY, MAP_KEY, sliceKey } from './keys.ts';
import { allGroups } from './map-view.ts';
import { aMap, type MapBuilder } from './model/map-builder.ts';
import { propose } from './propose.ts';
import { canSettle, canWriteOff, proposeSettle, proposeSweep, proposeWriteOff, sweepable } from './upkeep.ts';

function withController(map: MapBuilder): number {
  return map.put(CONTROLLER_KEY, '{"node":1,"session":1}');
}

function setTarget(map: MapBuilder, nodes: number): void {
  const { settled, target: _, ...rest } = map.snapshot.map;
  const target = {
    ...settled,
    subclusters: [
      { id: 1, nodes: Array.from({ length: nodes }, (_, i) => ({ id: i + 1, weight: 65_536, labels: {} })) },
    ],
  };
  map.put(MAP_KEY, JSON.stringify({ ...rest, settled, target }));
}

/** Everything moves to its goal, one learner at a time. */
function moveAll(map: MapBuilder): void {
  for (const group of allGroups(map.snapshot.map)) {
    for (;;) {
      const view = map.snapshot.group(group);
      const node = view.goal.find((id) => !view.inSync.includes(id));
      const isThere = view.goal.every((id, i) => id === view.inSync[i]) && view.goal.length === view.inSync.length;
      if (isThere) break;
      const learners = node === undefined ? [] : [{ node, session: map.snapshot.live(node)!.session }];
      assert.ok(map.transact(propose(map.snapshot, group, { type: 'join', learners }).transaction));
    }
  }
}

test('a target that is reached settles without changing any group', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  const controller = withController(map);
  map.live(asNodeId(4));
  setTarget(map, 4);
  assert.ok(!canSettle(map.snapshot));
  moveAll(map);
  assert.ok(canSettle(map.snapshot));
  const before = [...allGroups(map.snapshot.map)].map((group) => map.snapshot.group(group));
  assert.ok(map.transact(proposeSettle(map.snapshot, controller)));
  assert.equal(map.snapshot.map.target, undefined);
  for (const [i, group] of [...allGroups(map.snapshot.map)].entries()) {
    assert.deepEqual(map.snapshot.group(group), before[i]);
  }
});

test('an override written meanwhile keeps a target from settling', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  const controller = withController(map);
  map.live(asNodeId(4));
  setTarget(map, 4);
  moveAll(map);
  const transaction = proposeSettle(map.snapshot, controller);
  map.override({ members: [asNodeId(1)] });
  assert.ok(!map.transact(transaction));
});

test('a target whose new node was written off before anything moved does not settle: it would list the node', () => {
  const map = aMap({ nodes: 3, groupBits: 6 });
  setTarget(map, 4);
  map.mark(asNodeId(4));
  map.writeOff(asNodeId(4));
  assert.ok([...allGroups(map.snapshot.map)].every((group) => map.snapshot.group(group).goal.length === 3));
  assert.ok(!canSettle(map.snapshot));
});

test('a sweep takes the overrides that say nothing, and ballots go on', () => {
  const map = aMap({ nodes: 4, groupBits: 6 });
  const controller = withController(map);
  map.override({ members: map.view().inSync });
  const { ballot } = map.view();
  assert.deepEqual(sweepable(map.snapshot, map.group.policy, 0), [map.group]);
  assert.ok(map.transact(proposeSweep(map.snapshot, map.group.policy, 0, controller)));
  assert.ok(!map.view().overridden);
  assert.ok(map.view().ballot > ballot);
  assert.equal(map.view().health, 'whole');
});

test('what says something, keeps someone eligible, or fences someone is not swept', () => {
  const map = aMap({ nodes: 4 });
  const { inSync } = map.view();
  map.override({ members: inSync.toReversed() });
  assert.deepEqual(sweepable(map.snapshot, map.group.policy, 0), []);
  map.override({ members: inSync, eligible: [asNodeId(4)] });
  assert.deepEqual(sweepable(map.snapshot, map.group.policy, 0), []);
  const from = [{ node: inSync[0]!, session: map.snapshot.live(inSync[0]!)!.session }];
  map.override({ members: inSync, from });
  assert.deepEqual(sweepable(map.snapshot, map.group.policy, 0), []);
  map.live(inSync[0]!);
  assert.equal(sweepable(map.snapshot, map.group.policy, 0).length, 1);
});

test('a mark, another override or another sweep since the map was read refuses a sweep', () => {
  const swept = (meanwhile: (map: MapBuilder) => void): boolean => {
    const map = aMap({ nodes: 4, groupBits: 6 });
    const controller = withController(map);
    map.override({ members: map.view().inSync });
    const transaction = proposeSweep(map.snapshot, map.group.policy, 0, controller);
    meanwhile(map);
    return map.transact(transaction);
  };
  assert.ok(swept(() => undefined));
  assert.ok(!swept((map) => map.mark(asNodeId(4))));
  assert.ok(!swept((map) => map.override({ members: map.view().inSync.toReversed() })));
  assert.ok(!swept((map) => map.put(sliceKey(map.group.policy, 0), '{}')));
  assert.ok(!swept((map) => map.policy({ minCopies: 1 })));
  assert.ok(!swept((map) => map.write([{ type: 'delete', key: CONTROLLER_KEY }])));
});

test('a node is written off only where enough others could take its groups, and only while it is away', () => {
  const few = aMap({ nodes: 3 });
  assert.ok(!canWriteOff(few.snapshot, asNodeId(3)));
  const map = aMap({ nodes: 4 });
  const controller = withController(map);
  assert.ok(canWriteOff(map.snapshot, asNodeId(4)));
  map.dead(asNodeId(4));
  map.mark(asNodeId(4));
  const transaction = proposeWriteOff(map.snapshot, asNodeId(4), controller);
  map.live(asNodeId(4));
  assert.ok(!map.transact(transaction));
  map.dead(asNodeId(4));
  assert.ok(map.transact(transaction));
  assert.deepEqual(map.snapshot.map.out, [4]);
  assert.ok(!canWriteOff(map.snapshot, asNodeId(4)));
});
