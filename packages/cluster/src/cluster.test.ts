import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { FIRST_POLICY } from './create-cluster.ts';
import { MapCluster, parameters } from './model/map-cluster.ts';

test('a new cluster: all nodes in sync everywhere, one controller, no marks', async () => {
  await using cluster = await MapCluster.of(3);
  assert.deepEqual(cluster.holders(), [1, 2, 3]);
  assert.equal(cluster.controllers().length, 1);
  const { view } = cluster.node(1).map;
  assert.deepEqual(view.marked(), []);
  for (const group of cluster.views(1)) {
    assert.equal(group.health, 'whole');
    assert.ok(group.ballot > 0);
    assert.deepEqual(group.inSync, group.goal);
  }
  assert.equal(new Set(cluster.views(1).map(({ primary }) => primary)).size, 3);
});

test('a killed node is marked by one write within its lease, and its groups go on', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const before = cluster.node(1).map.view.revision;
  await cluster.kill(asNodeId(3));
  await cluster.pass(parameters.leaseMs + 1_000);
  const alive = cluster.node(1).map.view;
  assert.deepEqual(alive.marked(), [3]);
  // at most: the lease's keys, the mark, and a new controller
  assert.ok(alive.revision - before <= 3, `${alive.revision - before} revisions`);
  for (const group of cluster.views(1)) {
    assert.equal(group.health, 'degraded');
    assert.deepEqual(group.fence, []);
    assert.ok(group.ballot > 0);
  }
});

test('a killed node that its parent noticed is marked at once', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const controller = cluster.controllers()[0]!;
  const victim = [1, 2, 3].find((id) => id !== controller)!;
  await cluster.kill(asNodeId(victim), true);
  await cluster.pass(100);
  assert.deepEqual(cluster.node(controller).map.view.marked(), [victim]);
});

test('a node that comes back is a learner, is taken back, and in the end no trace is left', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  await cluster.kill(asNodeId(2));
  await cluster.pass(2 * parameters.leaseMs);
  const node = await cluster.start(asNodeId(2));
  assert.equal(node.session.verdict, 'same');
  assert.ok(cluster.views(2).every(({ inSync, eligible }) => !inSync.includes(asNodeId(2)) && eligible.length === 0));
  await cluster.rejoin(1);
  await cluster.pass(3_000);
  const { view } = cluster.node(1).map;
  assert.deepEqual(view.marked(), []);
  assert.deepEqual(view.overridden(FIRST_POLICY), []);
  assert.ok(cluster.views(1).every(({ health, overridden }) => health === 'whole' && !overridden));
});

test('a node killed and back within its lease has new ballots and no mark', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const old = cluster.views(1);
  await cluster.kill(asNodeId(3));
  const node = await cluster.start(asNodeId(3));
  await cluster.pass(4_000);
  assert.deepEqual(node.map.view.marked(), []);
  for (const [i, group] of cluster.views(1).entries()) {
    assert.deepEqual(group.inSync, old[i]!.inSync);
    if (group.primary === 3) assert.ok(group.ballot > old[i]!.ballot);
    else assert.equal(group.ballot, old[i]!.ballot);
  }
});

test('two of three die one after the other: the first back is put back at once', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  await cluster.kill(asNodeId(2));
  await cluster.pass(3 * parameters.leaseMs);
  await cluster.kill(asNodeId(3));
  await cluster.pass(3 * parameters.leaseMs);
  assert.ok(cluster.views(1).every(({ health, eligible }) => health === 'reads-only' && eligible.join() === '3'));
  await cluster.start(asNodeId(2));
  await cluster.pass(1_000);
  // the one that left while two others could still acknowledge has missed something
  assert.ok(cluster.views(1).every(({ health }) => health === 'reads-only'));
  await cluster.start(asNodeId(3));
  await cluster.pass(1_000);
  assert.ok(cluster.views(1).every(({ inSync }) => inSync.join() === '1,3'));
});

test('all nodes lose power: nothing changes in the map until they are back', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  for (const id of [1, 2, 3]) await cluster.kill(asNodeId(id));
  await cluster.pass(60_000);
  await Promise.all([1, 2, 3].map((id) => cluster.start(asNodeId(id))));
  await cluster.pass(2 * parameters.graceMs);
  assert.deepEqual(cluster.node(1).map.view.marked(), []);
  assert.ok(cluster.views(1).every(({ health, ballot }) => health === 'whole' && ballot > 0));
});

test('an empty disk is in sync and eligible nowhere', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  await cluster.kill(asNodeId(2));
  cluster.disks.set(asNodeId(2), { id: 'another disk', memory: undefined, stalled: false });
  const node = await cluster.start(asNodeId(2));
  assert.equal(node.session.verdict, 'lost');
  assert.deepEqual(node.map.view.marked(), [2]);
  assert.ok(cluster.views(2).every(({ inSync, eligible }) => inSync.length === 2 && eligible.length === 0));
});

test('an old copy of a disk is found out by its life', async () => {
  await using cluster = await MapCluster.of(3);
  const old = cluster.disks.get(asNodeId(2))!.memory;
  await cluster.pass(parameters.lifeMs + 1_000);
  await cluster.kill(asNodeId(2));
  cluster.disks.get(asNodeId(2))!.memory = old;
  const node = await cluster.start(asNodeId(2));
  assert.equal(node.session.verdict, 'lost');
});

test('a node that finds its own disk to lack what it had is a learner everywhere from its next start on', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const node = cluster.running.get(asNodeId(2))!;
  await node.session.disown();
  await cluster.kill(asNodeId(2));
  const again = await cluster.start(asNodeId(2));
  assert.equal(again.session.verdict, 'lost');
});

test('a node that has seen more than the map store shows refuses to run', async () => {
  await using cluster = await MapCluster.of(3);
  await using other = await MapCluster.of(3);
  for (let i = 0; i < 20; i++) {
    await cluster.store.transact({ compare: [], write: [{ type: 'put', key: 'other/1', value: String(i) }] });
  }
  await cluster.pass(parameters.leaseMs);
  // the other store is an older copy of this one: same cluster, fewer revisions
  other.disks.set(asNodeId(1), { ...cluster.disks.get(asNodeId(1))! });
  await other.kill(asNodeId(1));
  await assert.rejects(other.start(asNodeId(1)), { code: 'OLD_STORE' });
});

test('a node whose watch is stuck stops serving, though its lease is kept alive', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const node = cluster.node(2);
  node.store.watching = false;
  // something is written that the node does not see
  await cluster.store.transact({ compare: [], write: [{ type: 'put', key: 'other/1', value: '{}' }] });
  await cluster.pass(parameters.leaseMs + 500);
  assert.ok(!node.session.holds());
  assert.notEqual(node.map.view.live(asNodeId(2)), undefined);
  node.store.watching = true;
  await cluster.pass(3_000);
  assert.ok(node.session.holds());
});

test('a node whose disk stands still stops serving', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(1_000);
  const disk = cluster.disks.get(asNodeId(2))!;
  disk.stalled = true;
  await cluster.pass(2 * parameters.leaseMs + 500);
  assert.ok(!cluster.node(2).session.holds());
  assert.ok(cluster.node(1).session.holds());
  disk.stalled = false;
});

test('a paused node knows at once that its lease is gone, and registers a new session', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const node = cluster.node(2);
  const before = node.session.session;
  node.clock.stopped = true;
  await cluster.pass(2 * parameters.leaseMs);
  assert.ok(!node.session.holds());
  assert.deepEqual(cluster.node(1).map.view.marked(), [2]);
  await cluster.kill(asNodeId(2));
  const again = await cluster.start(asNodeId(2));
  assert.ok(again.session.session > before);
  assert.ok(again.session.holds());
});

test('a wall clock that jumps ends the lease early, never late', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(1_000);
  const { clock, session } = cluster.node(2);
  clock.ahead = 3_600_000;
  assert.ok(!session.holds());
  await cluster.pass(1_000);
  assert.ok(session.holds());
  clock.ahead = 0;
  assert.ok(session.holds());
});

test('the store away: no judgement, nodes stop at their lease’s end, and go on when it is back', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const { revision } = cluster.node(1).map.view;
  for (const { store } of cluster.running.values()) store.reachable = false;
  await cluster.pass(parameters.leaseMs - 200);
  assert.deepEqual(cluster.holders(), []);
  for (const { store } of cluster.running.values()) store.reachable = true;
  await cluster.pass(parameters.graceMs - 1_000);
  assert.deepEqual(cluster.holders(), [1, 2, 3]);
  assert.deepEqual(cluster.node(1).map.view.marked(), []);
  assert.ok(cluster.node(1).map.view.revision >= revision);
});

test('a session that was lost is registered again, and none of two runs of a node survives unnoticed', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const node = cluster.node(2);
  const before = node.session.session;
  node.store.reachable = false;
  await cluster.pass(parameters.leaseMs + 1_000);
  node.store.reachable = true;
  await cluster.pass(3_000);
  assert.ok(node.session.session > before);
  assert.ok(node.session.holds());
  // a second process with the same id waits, and gives up because the lease is being renewed
  await assert.rejects(cluster.start(asNodeId(2)), { code: 'LOCKED' });
});

test('a controller that dies is followed by another, which can write', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const first = cluster.controllers()[0]!;
  await cluster.kill(asNodeId(first));
  await cluster.pass(2 * parameters.leaseMs + parameters.graceMs);
  const second = cluster.controllers()[0]!;
  assert.notEqual(second, first);
  assert.deepEqual(cluster.node(second).map.view.marked(), [first]);
});

test('a new controller marks the one before it as soon as it is elected: it saw that session end', async () => {
  await using cluster = await MapCluster.of(3);
  await cluster.pass(parameters.graceMs + 500);
  const first = cluster.controllers()[0]!;
  await cluster.kill(asNodeId(first));
  // until the dead node's leases have ended, and the next one has stood for election
  while (cluster.controllers().length === 0) await cluster.pass(10);
  await cluster.pass(parameters.graceMs / 5);
  const second = cluster.controllers()[0]!;
  assert.deepEqual(cluster.node(second).map.view.marked(), [first]);
});

test('a live node that two others accuse is marked, and is fenced until its session ends', async () => {
  await using cluster = await MapCluster.of(4);
  await cluster.pass(parameters.graceMs + 500);
  const controller = cluster.node(cluster.controllers()[0]!);
  const [a, b, accused] = [1, 2, 3, 4].filter((id) => id !== controller.id).map(asNodeId);
  controller.controller.complain({ from: a!, about: accused!, below: false });
  await cluster.pass(100);
  assert.deepEqual(controller.map.view.marked(), []);
  controller.controller.complain({ from: b!, about: accused!, below: false });
  await cluster.pass(100);
  assert.deepEqual(controller.map.view.marked(), [accused]);
  const fenced = cluster.views(controller.id).filter(({ members }) => members.includes(accused!));
  assert.ok(fenced.length > 0);
  assert.ok(fenced.every(({ fence }) => fence.length === 1 && fence[0]!.node === accused));
  await cluster.kill(accused!, true);
  await cluster.pass(100);
  assert.ok(cluster.views(controller.id).every(({ fence }) => fence.length === 0));
});

test('a node that stays away is written off where others can take its groups, and reinstated when it is back', async () => {
  await using cluster = await MapCluster.of(4);
  await cluster.pass(parameters.graceMs + 500);
  await cluster.kill(asNodeId(4));
  await cluster.pass(2 * parameters.leaseMs + parameters.graceMs + parameters.outAfterMs);
  assert.deepEqual(cluster.node(1).map.view.map.out, [4]);
  assert.ok(cluster.views(1).every(({ goal }) => goal.length === 3 && !goal.includes(asNodeId(4))));
  await cluster.rejoin(1);
  assert.ok(cluster.views(1).every(({ health }) => health === 'whole'));
  await cluster.start(asNodeId(4));
  await cluster.pass(1_000);
  assert.deepEqual(cluster.node(1).map.view.map.out, []);
});

test('after the store was away from everybody nobody is lost, though every session has run out', async () => {
  await using cluster = await MapCluster.of(5);
  await cluster.pass(parameters.graceMs + 500);
  for (const awayMs of [2_500, 3_200, 60_000]) {
    const nodes = [...cluster.running.values()];
    for (const { store } of nodes) store.reachable = false;
    await cluster.pass(awayMs);
    for (const { store } of nodes) store.reachable = true;
    await cluster.pass(3 * parameters.graceMs);
    assert.deepEqual(cluster.holders(), [1, 2, 3, 4, 5]);
    const { view } = cluster.node(1).map;
    assert.deepEqual([view.marked(), view.overridden(FIRST_POLICY)], [[], []], `after ${awayMs} ms`);
  }
});

test('a node whose store grants long leases still stops within the time that others wait for', async () => {
  await using cluster = await MapCluster.of(3);
  const { store, session } = cluster.node(2);
  store.generosity = 10;
  // the lease that it has is lost, and the next one is long
  store.reachable = false;
  await cluster.pass(2 * parameters.leaseMs);
  store.reachable = true;
  await cluster.pass(2 * parameters.leaseMs);
  assert.ok(session.holds());
  store.reachable = false;
  await cluster.pass(parameters.leaseMs);
  assert.ok(!session.holds());
  assert.ok(cluster.node(1).map.view.live(asNodeId(2)) !== undefined, 'its lease in the store goes on');
});
