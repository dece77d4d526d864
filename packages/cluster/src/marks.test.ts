import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONTROLLER_KEY } from './keys.ts';
import { inSyncSomewhere, isSpent, proposeAccused, proposeLost, proposeUnmark } from './marks.ts';
import { aMap, type MapBuilder } from './model/map-builder.ts';

function withController(map: MapBuilder): number {
  return map.put(CONTROLLER_KEY, '{"node":1,"session":1}');
}

test('a node whose session came back meanwhile is not marked lost', () => {
  const map = aMap({ nodes: 3 });
  const controller = withController(map);
  const node = map.view().inSync[1]!;
  map.dead(node);
  const transaction = proposeLost(map.snapshot, node, controller);
  map.live(node);
  assert.ok(!map.transact(transaction));
  map.dead(node);
  assert.ok(map.transact(proposeLost(map.snapshot, node, controller)));
});

test('a node that restarted is not marked for what its last session did', () => {
  const map = aMap({ nodes: 3 });
  const controller = withController(map);
  const node = map.view().inSync[1]!;
  const transaction = proposeAccused(map.snapshot, node, 'hung', controller);
  map.live(node);
  assert.ok(!map.transact(transaction));
});

test('only the controller marks', () => {
  const map = aMap({ nodes: 3 });
  const node = map.view().inSync[1]!;
  map.dead(node);
  assert.ok(!map.transact(proposeLost(map.snapshot, node, withController(map) - 1)));
});

test('a mark that follows another lists it, so that nobody seems to have left later than it did', () => {
  const map = aMap({ nodes: 3 });
  const controller = withController(map);
  const [, second, third] = map.view().inSync;
  map.dead(third!);
  assert.ok(map.transact(proposeLost(map.snapshot, third!, controller)));
  const first = map.snapshot.down(third!)!.mark;
  map.mark(second!);
  assert.ok(map.transact(proposeLost(map.snapshot, third!, controller)));
  assert.deepEqual(map.snapshot.down(third!)?.info.earlier, [first]);
  assert.deepEqual(map.view().eligible, [second]);
});

test('a mark lists so many before it; what it forgets makes the node eligible nowhere', () => {
  const map = aMap({ nodes: 3 });
  const controller = withController(map);
  const [, second, third] = map.view().inSync;
  map.dead(third!);
  for (let i = 0; i < 40; i++) assert.ok(map.transact(proposeLost(map.snapshot, third!, controller)));
  map.mark(second!);
  const { info } = map.snapshot.down(third!)!;
  assert.equal(info.earlier?.length, 16);
  assert.ok((info.forgets ?? 0) < info.earlier![0]!);
  assert.deepEqual(map.view().eligible, [second]);
  map.mark(map.view().inSync[0]!);
  assert.ok(!map.view().eligible.includes(third!));
});

test('a mark is spent when every configuration that lists its node is newer', () => {
  const map = aMap({ nodes: 3, groupBits: 0 });
  const controller = withController(map);
  const { inSync } = map.view();
  map.mark(inSync[2]!);
  assert.ok(!isSpent(map.snapshot, inSync[2]!));
  assert.ok(!inSyncSomewhere(map.snapshot, inSync[2]!));
  map.override({ members: inSync });
  assert.ok(isSpent(map.snapshot, inSync[2]!));
  const before = map.view();
  assert.ok(map.transact(proposeUnmark(map.snapshot, inSync[2]!, controller)));
  assert.deepEqual(map.view(), before);
});

test('a mark that was renewed meanwhile is not removed', () => {
  const map = aMap({ nodes: 3, groupBits: 0 });
  const controller = withController(map);
  const { inSync } = map.view();
  map.mark(inSync[2]!);
  map.override({ members: inSync });
  const transaction = proposeUnmark(map.snapshot, inSync[2]!, controller);
  map.mark(inSync[2]!);
  assert.ok(!map.transact(transaction));
});
