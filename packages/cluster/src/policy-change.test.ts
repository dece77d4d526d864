import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, codeOf, type NodeId } from '@webdfs/base';
import { FIRST_POLICY } from './create-cluster.ts';
import { CONTROLLER_KEY, groupKey } from './keys.ts';
import { allGroups } from './map-view.ts';
import { aMap, type MapBuilder } from './model/map-builder.ts';
import type { PolicyNumbers } from './policy-change.ts';
import { proposeAbort, proposeTarget } from './retarget.ts';
import { canSettle, proposeSettle } from './upkeep.ts';

function aim(map: MapBuilder, numbers: PolicyNumbers): boolean {
  const policies = new Map([[FIRST_POLICY, numbers]]);
  return map.transact(proposeTarget(map.snapshot, map.snapshot.map.settled, { policies }));
}

/** Every group as its goal has it. */
function move(map: MapBuilder): void {
  for (const group of allGroups(map.snapshot.map)) {
    const members: readonly NodeId[] = map.snapshot.goal(group);
    map.put(groupKey(group), JSON.stringify({ members, eligible: [], from: [] }));
  }
}

function settle(map: MapBuilder): boolean {
  map.put(CONTROLLER_KEY, JSON.stringify({ node: 1, session: 1 }));
  return map.transact(proposeSettle(map.snapshot, map.snapshot.controller()!.createRevision));
}

test('more copies: members stay as they are until each group has got one more, then the policy says so', () => {
  const map = aMap({ nodes: 4, copies: 2, minCopies: 1 });
  const before = [...allGroups(map.snapshot.map)].map((group) => map.snapshot.group(group).inSync);
  assert.ok(aim(map, { copies: 3, minCopies: 2 }));
  const views = [...allGroups(map.snapshot.map)].map((group) => map.snapshot.group(group));
  assert.deepEqual(
    views.map(({ inSync }) => inSync),
    before,
  );
  assert.ok(views.every(({ goal, health, copies }) => goal.length === 3 && health === 'whole' && copies === 2));
  assert.equal(map.snapshot.policy(FIRST_POLICY).minCopies, 1, 'more must not be asked for than there is');
  assert.ok(!canSettle(map.snapshot));
  move(map);
  assert.ok(canSettle(map.snapshot));
  const ballots = [...allGroups(map.snapshot.map)].map((group) => map.snapshot.group(group).ballot);
  const { revision } = map.snapshot;
  assert.ok(settle(map));
  const { copies, minCopies, minCopiesSince, name, next } = map.snapshot.policy(FIRST_POLICY);
  assert.deepEqual({ copies, minCopies, name, next }, { copies: 3, minCopies: 2, name: 'replicas=3', next: undefined });
  assert.ok(minCopiesSince > revision);
  assert.deepEqual(
    [...allGroups(map.snapshot.map)].map((group) => map.snapshot.group(group).ballot),
    ballots,
    'settling changes no ballot',
  );
});

test('fewer copies: what must have them is lowered at once, and raised again when it is given up', () => {
  const map = aMap({ nodes: 4, copies: 3, minCopies: 2 });
  assert.ok(aim(map, { copies: 2, minCopies: 1 }));
  assert.equal(map.snapshot.policy(FIRST_POLICY).minCopies, 1);
  assert.equal(map.snapshot.group(map.group).copies, 2, 'two are the promise from now on');
  assert.ok(map.transact(proposeAbort(map.snapshot)));
  assert.deepEqual(map.snapshot.policy(FIRST_POLICY).next, { copies: 3, minCopies: 2, before: 2 });
  assert.equal(map.snapshot.group(map.group).goal.length, 3);
  assert.ok(settle(map));
  assert.equal(map.snapshot.policy(FIRST_POLICY).minCopies, 2);
  assert.equal(map.snapshot.map.target, undefined);
});

test('numbers are not dated wrongly: a node that leaves meanwhile refuses the change', () => {
  const map = aMap({ nodes: 4, copies: 3, minCopies: 2 });
  const policies = new Map([[FIRST_POLICY, { copies: 3, minCopies: 1 }]]);
  const transaction = proposeTarget(map.snapshot, map.snapshot.map.settled, { policies });
  map.mark(asNodeId(2));
  assert.ok(!map.transact(transaction));
});

test('what cannot be is refused by name', () => {
  const map = aMap({ nodes: 3, copies: 2, minCopies: 1 });
  const refused = (numbers: PolicyNumbers, what: RegExp): void => {
    assert.throws(
      () => aim(map, numbers),
      (error: Error) => codeOf(error) === 'INVALID' && what.test(error.message),
    );
  };
  refused({ copies: 4, minCopies: 2 }, /no such cluster: .*4/);
  refused({ copies: 3, minCopies: 4 }, /minCopies 4: 1 to 3/);
  refused({ copies: 0, minCopies: 1 }, /0 copies/);
  assert.equal(map.snapshot.map.target, undefined);
});
