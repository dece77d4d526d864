import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId, type GroupKey, groupNumber, ManualClock, type NodeId } from '@webdfs/base';
import { allGroups, type MapView, proposeAbort } from '@webdfs/cluster';
import { lacking } from './learner-needs.ts';
import { MovePlan } from './move-plan.ts';
import { TestMap } from './test-map.ts';

/** Every copy that is to be made, in the map's order. */
function copies(view: MapView): { key: GroupKey; to: NodeId }[] {
  return [...allGroups(view.map)].flatMap((key) =>
    lacking(view.group(key))
      .filter((node) => view.live(node) !== undefined)
      .map((to) => ({ key, to })),
  );
}

/** How many copies each node is to read, or to write: its device does one at a time. */
function busy(plan: MovePlan, view: MapView): Map<NodeId, number> {
  const counts = sent(plan, view);
  for (const { to } of copies(view)) counts.set(to, (counts.get(to) ?? 0) + 1);
  return counts;
}

/** How many copies each node is to send. */
function sent(plan: MovePlan, view: MapView): Map<NodeId, number> {
  const counts = new Map<NodeId, number>();
  for (const { key, to } of copies(view)) {
    const [from] = plan.advice(key, to).sources;
    counts.set(from!, (counts.get(from!) ?? 0) + 1);
  }
  return counts;
}

function most(counts: Map<NodeId, number>): number {
  return Math.max(...counts.values());
}

function total(counts: Map<NodeId, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

test('when one of twenty leaves, all others send: none is busy much longer than another', async () => {
  const clock = new ManualClock();
  await using test = await TestMap.of(20, { clock, groupBits: 12 });
  await test.change({ type: 'drain', nodes: { by: 'id', ids: [20] } });
  const { view } = test.map;
  const plan = new MovePlan({ clock, map: test.map });
  const counts = sent(plan, view);
  assert.equal(counts.size, 20);
  // the node that leaves takes nothing in: it gives the most, and yet a small part
  assert.equal(counts.get(asNodeId(20)), most(counts));
  assert.ok(most(counts) < 0.12 * total(counts), `${most(counts)} of ${total(counts)}`);
  const work = busy(plan, view);
  assert.ok(most(work) < 1.2 * (total(work) / 20), `${most(work)} of ${total(work)}`);
});

test('copies are made anew from all that are left, evenly', async () => {
  const clock = new ManualClock();
  await using test = await TestMap.of(10, { clock, groupBits: 12 });
  await test.lost(asNodeId(3));
  await test.live([asNodeId(3)]);
  const counts = sent(new MovePlan({ clock, map: test.map }), test.map.view);
  assert.equal(counts.size, 9);
  assert.ok(most(counts) < 1.1 * (total(counts) / 9), `${most(counts)} of ${total(counts)}`);
});

test('groups that lack a copy come before those that only move', async () => {
  const clock = new ManualClock();
  await using test = await TestMap.of(6, { clock, groupBits: 8 });
  await test.change({ type: 'reweight', nodes: { by: 'id', ids: [1] }, weight: 3 * 65_536 });
  await test.lost(asNodeId(2));
  const plan = new MovePlan({ clock, map: test.map });
  const { view } = test.map;
  const turns = copies(view).map(({ key, to }) => {
    return { turn: plan.advice(key, to).turn, inSync: view.group(key).inSync.length };
  });
  const degraded = turns.filter(({ inSync }) => inSync === 2).map(({ turn }) => turn);
  const moving = turns.filter(({ inSync }) => inSync === 3).map(({ turn }) => turn);
  assert.ok(degraded.length > 0 && moving.length > 0);
  assert.ok(Math.max(...degraded) < Math.min(...moving));
});

test('all nodes make the same plan', async () => {
  const clock = new ManualClock();
  await using test = await TestMap.of(7, { clock, groupBits: 8 });
  await test.change({ type: 'drain', nodes: { by: 'id', ids: [1, 2] } });
  const { view } = test.map;
  const [one, other] = [new MovePlan({ clock, map: test.map }), new MovePlan({ clock, map: { view } })];
  for (const { key, to } of copies(view)) assert.deepEqual(one.advice(key, to), other.advice(key, to));
});

test('another target makes another plan, but not at once; a copy that is in none is read from any in sync', async () => {
  const clock = new ManualClock();
  await using test = await TestMap.of(8, { clock, groupBits: 10 });
  await test.change({ type: 'drain', nodes: { by: 'id', ids: [8] } });
  const plan = new MovePlan({ clock, map: test.map });
  const before = copies(test.map.view);
  assert.notEqual(sent(plan, test.map.view).size, 0);
  await test.transact(proposeAbort(test.map.view));
  await test.change({ type: 'drain', nodes: { by: 'id', ids: [1] } });
  const now = copies(test.map.view);
  const known = new Set(before.map(({ key, to }) => `${groupNumber(key)} ${to}`));
  const unknown = now.find(({ key, to }) => !known.has(`${groupNumber(key)} ${to}`))!;
  const early = plan.advice(unknown.key, unknown.to);
  assert.deepEqual(early.sources.toSorted(), test.map.view.group(unknown.key).inSync.toSorted());
  assert.ok(early.turn > 3.99, 'it comes last');
  clock.advance(2_000);
  const work = busy(plan, test.map.view);
  assert.ok(most(work) < 1.2 * (total(work) / 8), `${most(work)} of ${total(work)}`);
});
