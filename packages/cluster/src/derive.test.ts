import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { revisionOf } from './derive.ts';
import { aMap, members } from './model/map-builder.ts';

test('a group that nothing happened to is what placement says, and its slice dates it', () => {
  const map = aMap({ nodes: 3 });
  const view = map.view();
  assert.deepEqual(view.inSync, view.goal);
  assert.deepEqual([view.health, view.overridden, view.eligible, view.fence], ['whole', false, [], []]);
  assert.equal(view.configRevision, map.snapshot.sliceRevision(view.policy, 0));
});

test('without a session of the first member there is no primary and no ballot', () => {
  const map = aMap({ nodes: 3, live: false });
  assert.deepEqual([map.view().primary, map.view().ballot], [undefined, 0]);
  map.live(map.view().inSync[1]!);
  assert.deepEqual([map.view().primary, map.view().ballot], [undefined, 0]);
  const session = map.live(map.view().inSync[0]!);
  assert.equal(map.view().primary, map.view().inSync[0]);
  assert.equal(revisionOf(map.view().ballot), session);
});

test('the era is the high part of a ballot', () => {
  const old = aMap({ nodes: 3, era: 0 }).view().ballot;
  assert.ok(aMap({ nodes: 3, era: 1 }).view().ballot > old + 2 ** 39);
});

test('one mark takes a node out of all its groups, and the ballot is the mark', () => {
  const map = aMap({ nodes: 3 });
  const [first, second, third] = map.view().inSync;
  const mark = map.mark(second!);
  assert.deepEqual(map.view().inSync, [first, third]);
  assert.equal(revisionOf(map.view().ballot), mark);
  assert.equal(map.view().health, 'degraded');
});

test('a configuration newer than the mark has the node in sync again', () => {
  const map = aMap({ nodes: 3 });
  const { inSync } = map.view();
  map.mark(inSync[2]!);
  const revision = map.override({ members: inSync });
  assert.deepEqual(map.view().inSync, inSync);
  assert.equal(map.view().configRevision, revision);
  assert.equal(map.view().health, 'whole');
});

test('a new disk takes a node out of the configurations that are older', () => {
  const map = aMap({ nodes: 3 });
  const { inSync } = map.view();
  map.newDisk(inSync[1]!);
  assert.deepEqual(map.view().inSync, [inSync[0], inSync[2]]);
});

test('a founding disk takes a node out of nothing', () => {
  const map = aMap({ nodes: 3 });
  map.newDisk(map.view().inSync[1]!, { founding: true });
  assert.equal(map.view().health, 'whole');
});

test('who leaves when fewer than minCopies remain is eligible, who left before is not', () => {
  const map = aMap({ nodes: 3 });
  const [first, second, third] = map.view().inSync;
  map.mark(third!);
  assert.deepEqual(map.view().eligible, []);
  map.mark(second!);
  assert.deepEqual(map.view().eligible, [second]);
  assert.equal(map.view().health, 'reads-only');
  map.mark(first!);
  assert.deepEqual(map.view().eligible, [first, second]);
  assert.equal(map.view().health, 'waiting');
});

test('with minCopies of one only the last that left is eligible', () => {
  const map = aMap({ nodes: 2, copies: 2, minCopies: 1 });
  const [first, second] = map.view().inSync;
  map.mark(second!);
  map.mark(first!);
  assert.deepEqual(map.view().eligible, [first]);
});

test('nodes that left in one revision left together', () => {
  const map = aMap({ nodes: 3 });
  const [first, second, third] = map.view().inSync;
  map.mark([second!, third!]);
  assert.deepEqual(map.view().inSync, [first]);
  assert.deepEqual(map.view().eligible, [second, third]);
});

test('a disk that was exchanged makes a node eligible no more', () => {
  const map = aMap({ nodes: 3 });
  const [, second, third] = map.view().inSync;
  map.mark(third!);
  map.mark(second!);
  map.newDisk(second!);
  assert.deepEqual(map.view().eligible, []);
});

test('eligible nodes listed by a configuration count only while fewer than minCopies are in sync', () => {
  const map = aMap({ nodes: 4 });
  const [first, second, third] = map.view().inSync;
  map.override({ members: [first!], eligible: [second!] });
  assert.deepEqual(map.view().eligible, [second]);
  map.override({ members: [first!, third!], eligible: [second!] });
  assert.deepEqual(map.view().eligible, []);
});

test('eligibility is dated by the last change of minCopies', () => {
  const map = aMap({ nodes: 3 });
  const [, second, third] = map.view().inSync;
  map.mark(third!);
  const mark = map.mark(second!);
  map.policy({ minCopiesSince: mark });
  assert.deepEqual(map.view().eligible, []);
  map.policy({ minCopiesSince: mark - 1 });
  assert.deepEqual(map.view().eligible, [second]);
});

test('a node marked again left when it was marked first, where it was not taken back in between', () => {
  const map = aMap({ nodes: 3 });
  const [first, second, third] = map.view().inSync;
  const early = map.mark(third!);
  map.mark(second!);
  map.mark(third!, { earlier: [early] });
  // the first and the second went on without it
  assert.deepEqual(map.view().eligible, [second]);
  assert.deepEqual(map.view().inSync, [first]);
});

test('a node that forgets its earlier marks is not eligible in what is older', () => {
  const map = aMap({ nodes: 3 });
  const [, second, third] = map.view().inSync;
  const early = map.mark(third!);
  map.mark(second!);
  map.mark(third!, { forgets: early });
  assert.deepEqual(map.view().eligible, []);
});

test('who was marked alive is fenced as long as the session lives', () => {
  const map = aMap({ nodes: 3 });
  const [first] = map.view().inSync;
  const { session } = map.view();
  map.mark(first!, { session });
  assert.deepEqual(map.view().fence, [{ node: first, session }]);
  map.live(first!);
  assert.deepEqual(map.view().fence, []);
});

test('who an override names as still serving is fenced as long as the session lives', () => {
  const map = aMap({ nodes: 3 });
  const [first, second, third] = map.view().inSync;
  const { session } = map.view();
  map.override({ members: [second!, third!], from: [{ node: first!, session }] });
  assert.deepEqual(map.view().fence, [{ node: first, session }]);
  map.dead(first!);
  assert.deepEqual(map.view().fence, []);
});

test('without anyone in sync or eligible a group is lost', () => {
  const map = aMap({ nodes: 3 });
  const [first, second, third] = map.view().inSync;
  for (const node of [first!, second!, third!]) map.mark(node);
  for (const node of [second!, third!]) map.newDisk(node);
  assert.equal(map.view().health, 'lost');
});

test('the goal leaves out who is written off, the configuration does not', () => {
  const map = aMap({ nodes: 4 });
  const { inSync } = map.view();
  map.writeOff(inSync[0]!);
  assert.deepEqual(map.view().inSync, inSync);
  assert.ok(!map.view().goal.includes(inSync[0]!));
  assert.equal(map.view().goal.length, 3);
});

test('with fewer nodes than copies a group is degraded, not an error', () => {
  const map = aMap({ nodes: 3 });
  map.writeOff(asNodeId(3));
  assert.deepEqual(members(map.view().goal), [1, 2]);
});
