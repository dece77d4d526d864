import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, type NodeId } from '@webdfs/base';
import { CONTROLLER_KEY, groupKey, sliceKey } from './keys.ts';
import { aMap, type MapBuilder } from './model/map-builder.ts';
import { atGoal, joinChanges, MAX_TOGETHER, propose, together } from './propose.ts';

/** A group of three that lost its third member, which is back as a learner that has caught up. */
function aGroupWithLearner(): { map: MapBuilder; learner: { node: NodeId; session: number } } {
  const map = aMap({ nodes: 4 });
  const node = map.view().inSync[2]!;
  map.mark(node);
  return { map, learner: { node, session: map.snapshot.live(node)!.session } };
}

test('a caught-up learner is added: in sync, whole, and nothing is left to change', () => {
  const { map, learner } = aGroupWithLearner();
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  assert.ok(map.transact(proposal.transaction));
  assert.deepEqual(map.view().inSync, map.view().goal);
  assert.ok(atGoal(map.view()));
  assert.ok(!joinChanges(map.view(), []));
  assert.ok(!proposal.yields);
});

test('a node that was marked after the map was read is not listed', () => {
  const { map, learner } = aGroupWithLearner();
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  map.mark(learner.node, { earlier: [map.snapshot.down(learner.node)!.mark] });
  assert.ok(!map.transact(proposal.transaction));
});

test('any mark since the map was read refuses the change, of whatever node', () => {
  const { map, learner } = aGroupWithLearner();
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  map.mark(map.view().inSync[1]!);
  assert.ok(!map.transact(proposal.transaction));
});

test('of two changes of one configuration, the second is refused: with an override', () => {
  const { map, learner } = aGroupWithLearner();
  map.override({ members: map.view().inSync });
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  assert.ok(map.transact(proposal.transaction));
  assert.ok(!map.transact(proposal.transaction));
});

test('of two changes of one configuration, the second is refused: without an override yet', () => {
  const { map, learner } = aGroupWithLearner();
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  map.override({ members: map.view().inSync });
  assert.ok(!map.transact(proposal.transaction));
});

test('a slice rewritten since the map was read refuses the change', () => {
  const { map, learner } = aGroupWithLearner();
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  map.put(sliceKey(map.group.policy, 0), '{}');
  assert.ok(!map.transact(proposal.transaction));
});

test('another policy or goal since the map was read refuses the change', () => {
  const { map, learner } = aGroupWithLearner();
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  map.policy({ minCopies: 3 });
  assert.ok(!map.transact(proposal.transaction));
});

test('a learner that restarted is not added', () => {
  const { map, learner } = aGroupWithLearner();
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  map.live(learner.node);
  assert.ok(!map.transact(proposal.transaction));
});

test('a change that was sent before its primary restarted is refused after', () => {
  const { map, learner } = aGroupWithLearner();
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [learner] });
  map.live(map.view().primary!);
  assert.ok(!map.transact(proposal.transaction));
});

test('a deposed controller can write nothing', () => {
  const map = aMap({ nodes: 3 });
  const controller = map.put(CONTROLLER_KEY, '{"node":1,"session":1}');
  const [, second, third] = map.view().inSync;
  map.mark(third!);
  map.mark(second!);
  const proposal = propose(map.snapshot, map.group, { type: 'restore', controller, nodes: [second!] });
  map.write([{ type: 'delete', key: CONTROLLER_KEY }]);
  map.put(CONTROLLER_KEY, '{"node":2,"session":2}');
  assert.ok(!map.transact(proposal.transaction));
});

test('eligible nodes that are put back are members, the rest stays eligible while too few are in sync', () => {
  const map = aMap({ nodes: 5, copies: 5, minCopies: 3 });
  const controller = map.put(CONTROLLER_KEY, '{"node":1,"session":1}');
  const [a, b, c, d, e] = map.view().inSync;
  map.mark([c!, d!, e!]);
  const one = propose(map.snapshot, map.group, { type: 'restore', controller, nodes: [c!] });
  assert.deepEqual(one.override.members, [a, b, c]);
  assert.deepEqual(one.override.eligible, []);
  map.mark(b!);
  const another = propose(map.snapshot, map.group, { type: 'restore', controller, nodes: [d!] });
  assert.deepEqual(another.override.members, [a, d]);
  assert.deepEqual(another.override.eligible.toSorted(), [b, c, e].toSorted());
});

test('with nobody in sync, putting back elects', () => {
  const map = aMap({ nodes: 3 });
  const controller = map.put(CONTROLLER_KEY, '{"node":1,"session":1}');
  const nodes = map.view().inSync;
  map.mark(nodes);
  assert.equal(map.view().primary, undefined);
  const proposal = propose(map.snapshot, map.group, { type: 'restore', controller, nodes: [nodes[1]!] });
  assert.ok(map.transact(proposal.transaction));
  assert.equal(map.view().primary, nodes[1]);
});

test('a primary drops a silent member, but never below minCopies', () => {
  const map = aMap({ nodes: 3 });
  const [first, second, third] = map.view().inSync;
  const proposal = propose(map.snapshot, map.group, { type: 'drop', node: third!, serving: true });
  assert.deepEqual(proposal.override, { members: [first, second], eligible: [], from: [] });
  assert.ok(map.transact(proposal.transaction));
  assert.throws(() => propose(map.snapshot, map.group, { type: 'drop', node: second!, serving: true }), {
    code: 'NO_QUORUM',
  });
});

test('who has not settled with the fence passes it on', () => {
  const map = aMap({ nodes: 3, minCopies: 1 });
  const [first, second, third] = map.view().inSync;
  const { session } = map.view();
  map.mark(first!, { session });
  const fence = [{ node: first, session }];
  const unsettled = propose(map.snapshot, map.group, { type: 'drop', node: third!, serving: false });
  assert.deepEqual(unsettled.override.from, fence);
  assert.ok(map.transact(unsettled.transaction));
  // the first is not even a member any more, and still fenced
  assert.deepEqual(map.view().members, [second]);
  assert.deepEqual(map.view().fence, fence);
  const controller = map.put(CONTROLLER_KEY, '{"node":1,"session":1}');
  map.override({ members: [second!, third!], from: [{ node: first!, session }] });
  const deposed = propose(map.snapshot, map.group, { type: 'depose', controller });
  assert.deepEqual(deposed.override.members, [third, second]);
  assert.deepEqual(deposed.override.from, [...fence, { node: second, session: map.view().session }]);
  assert.ok(deposed.yields);
});

test('a forced group has one member, nobody eligible, and keeps its fence', () => {
  const map = aMap({ nodes: 3 });
  const nodes = map.view().inSync;
  const { session } = map.view();
  map.mark(nodes, { session });
  const proposal = propose(map.snapshot, map.group, { type: 'force', node: nodes[2]! });
  assert.deepEqual(proposal.override.members, [nodes[2]]);
  assert.deepEqual(proposal.override.eligible, []);
  assert.deepEqual(proposal.override.from, [{ node: nodes[0], session }]);
  assert.ok(map.transact(proposal.transaction));
  assert.equal(map.view().primary, nodes[2]);
});

test('on the way to another goal the number in sync never falls, and nobody more than copies is kept', () => {
  const map = aMap({ nodes: 6 });
  const { goal } = map.view();
  const others = map.snapshot.nodes().filter((node) => !goal.includes(node));
  map.override({ members: others });
  let counts = 0;
  for (const node of goal) {
    const learners = [{ node, session: map.snapshot.live(node)!.session }];
    const before = map.view();
    const proposal = propose(map.snapshot, map.group, { type: 'join', learners });
    assert.equal(proposal.override.members.length, before.inSync.length);
    assert.equal(proposal.yields, proposal.override.members[0] !== before.primary);
    assert.ok(map.transact(proposal.transaction));
    counts++;
  }
  assert.equal(counts, 3);
  assert.ok(atGoal(map.view()));
});

test('the primary is the last to make room, since it must yield', () => {
  const map = aMap({ nodes: 6 });
  const { goal } = map.view();
  const others = map.snapshot.nodes().filter((node) => !goal.includes(node));
  map.override({ members: others });
  const node = goal[1]!;
  const learners = [{ node, session: map.snapshot.live(node)!.session }];
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners });
  assert.deepEqual(proposal.override.members, [others[0], others[1], node]);
});

test('below minCopies who joins leaves the eligible as they are', () => {
  const map = aMap({ nodes: 6, copies: 5, minCopies: 3 });
  const [a, b, c, d, e] = map.view().inSync;
  map.mark([c!, d!, e!]);
  map.mark(b!);
  const node = map.snapshot.nodes().find((id) => !map.view().members.includes(id))!;
  map.policy({});
  map.override({ members: [a!], eligible: [b!, c!, d!, e!] });
  const learners = [{ node, session: map.snapshot.live(node)!.session }];
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners });
  assert.deepEqual(proposal.override.members, [a, node]);
  assert.deepEqual(proposal.override.eligible, [b, c, d, e]);
});

test('what changes nothing is refused', () => {
  const map = aMap({ nodes: 3 });
  assert.throws(() => propose(map.snapshot, map.group, { type: 'join', learners: [] }), { code: 'CONFLICT' });
  assert.throws(() => propose(map.snapshot, map.group, { type: 'drop', node: 9 as NodeId, serving: true }), {
    code: 'CONFLICT',
  });
});

test('a member that left is taken off the list only when that is the goal', () => {
  const map = aMap({ nodes: 3 });
  const [, , third] = map.view().inSync;
  map.mark(third!);
  assert.ok(!joinChanges(map.view(), []));
  map.writeOff(third!);
  assert.ok(joinChanges(map.view(), []));
  const proposal = propose(map.snapshot, map.group, { type: 'join', learners: [] });
  assert.ok(map.transact(proposal.transaction));
  assert.ok(atGoal(map.view()));
});

test('many changes go together as far as a store takes them, and fail as a whole', () => {
  const map = aMap({ nodes: 4, groupBits: 8 });
  const node = map.view().inSync[2]!;
  map.mark(node);
  const session = map.snapshot.live(node)!.session;
  const proposals = [];
  for (let group = 0; group < 256; group++) {
    const key = { ...map.group, group: asGroupId(group) };
    if (!map.snapshot.group(key).members.includes(node)) continue;
    proposals.push(propose(map.snapshot, key, { type: 'join', learners: [{ node, session }] }));
  }
  const batches = together(proposals);
  assert.equal(batches.flatMap((batch) => batch.proposals).length, proposals.length);
  for (const { proposals, transaction } of batches) {
    assert.ok(proposals.length <= MAX_TOGETHER);
    assert.ok(transaction.compare.length <= 120);
    assert.equal(transaction.write.length, proposals.length);
  }
  const [first] = batches;
  map.put(groupKey(first!.proposals[5]!.group), '{"members":[1],"eligible":[],"from":[]}');
  assert.ok(!map.transact(first!.transaction));
});
