import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asNodeId } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { FIRST_POLICY } from './create-cluster.ts';
import { MAP_KEY } from './keys.ts';
import { allGroups, MapSnapshot } from './map-view.ts';
import { happen } from './model/events.ts';
import { aMap } from './model/map-builder.ts';
import { World } from './model/world.ts';

test('a snapshot reached change by change equals one that is read at once', (t) => {
  const random = randomOf(t);
  const world = new World({ seed: random.below(2 ** 31), nodes: 5, copies: 3, minCopies: 2 });
  for (let i = 0; i < 400; i++) {
    happen(world);
    if (i % 20 !== 0) continue;
    const read = MapSnapshot.of(world.space.contents());
    assert.equal(world.now.revision, read.revision);
    assert.deepEqual(world.now.marked(), read.marked());
    for (const group of allGroups(read.map)) assert.deepEqual(world.now.group(group), read.group(group));
  }
});

test('its contents are those it was made of', () => {
  const map = aMap({ nodes: 3, groupBits: 8 });
  map.put('other/thing', 'kept');
  map.override({ members: [asNodeId(1)] });
  const sorted = (of: MapSnapshot): unknown => of.contents().entries.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  assert.deepEqual(sorted(map.snapshot), sorted(MapSnapshot.of(map.space.contents())));
  assert.equal(map.snapshot.contents().entries.length, map.space.contents().entries.length);
});

test('a change of one group leaves the views of all others as they are', () => {
  const map = aMap({ nodes: 3, groupBits: 12 });
  const before = [...allGroups(map.snapshot.map)].map((group) => map.snapshot.group(group));
  map.override({ members: [asNodeId(2), asNodeId(1)] });
  const after = [...allGroups(map.snapshot.map)].map((group) => map.snapshot.group(group));
  assert.deepEqual(
    after.flatMap((view, i) => (view === before[i] ? [] : [i])),
    [0],
  );
});

test('a change names the groups whose view may differ', () => {
  const map = aMap({ nodes: 3, groupBits: 8 });
  const affected = (key: string, value: string): unknown => {
    const change = map.space.apply(map.space.revision + 1, [{ type: 'put', key, value }]);
    const next = map.snapshot.next(change);
    map.snapshot = next.snapshot;
    return next.affected;
  };
  const key = { policy: FIRST_POLICY, group: asGroupId(70) };
  assert.deepEqual(affected(`group/${FIRST_POLICY}/70`, '{"members":[1],"eligible":[],"from":[]}'), [key]);
  assert.equal((affected(`slice/${FIRST_POLICY}/1`, '{}') as unknown[]).length, 64);
  assert.deepEqual(affected('node/1', '{"address":"a","labels":{},"life":7}'), []);
  assert.deepEqual(affected('controller', '{"node":1,"session":1}'), []);
  assert.deepEqual(affected(`group/${FIRST_POLICY}/256`, '{"members":[1],"eligible":[],"from":[]}'), []);
  assert.deepEqual(affected('group/9/1', '{"members":[1],"eligible":[],"from":[]}'), []);
  assert.equal(affected('down/1', '{"reason":"","session":0}'), 'all');
  assert.equal(affected('live/1', '{"pid":1,"startedMs":0}'), 'all');
});

test('values that are not what their key promises are named and refused', () => {
  const bad: readonly (readonly [key: string, value: string])[] = [
    ['map', '{'],
    ['map', '[]'],
    ['node/1', '{"address":"a","labels":{},"life":-1}'],
    ['down/1', '{"reason":"","session":0,"earlier":[3,2]}'],
    ['live/1', '{"pid":"one","startedMs":0}'],
    ['group/1/0', '{"members":[],"eligible":[],"from":[]}'],
    ['group/1/0', '{"members":[1,1],"eligible":[],"from":[]}'],
    ['group/1/0', '{"members":[70000],"eligible":[],"from":[]}'],
    ['group/1/0', '{"members":[1],"eligible":[],"from":[1]}'],
    ['controller', '{"node":0,"session":1}'],
  ];
  for (const [key, value] of bad) {
    const entry = { key, value, createRevision: 1, modRevision: 1 };
    assert.throws(
      () => MapSnapshot.of({ revision: 1, entries: [entry] }),
      { code: 'CORRUPT', details: { key } },
      value,
    );
  }
});

test('a map with impossible policies is refused', () => {
  const { map } = aMap({ nodes: 3 }).snapshot;
  const policies = [{ ...map.policies[0], minCopies: 4 }];
  const entry = { key: MAP_KEY, value: JSON.stringify({ ...map, policies }), createRevision: 1, modRevision: 1 };
  assert.throws(() => MapSnapshot.of({ revision: 1, entries: [entry] }), { code: 'CORRUPT' });
});

test('keys of another program are no groups and no nodes', () => {
  const map = aMap({ nodes: 3 });
  const before = map.view();
  for (const key of ['node/0', 'node/65536', 'node/01', 'group/1/-1', 'group/1', 'slice/x/1', 'down/', 'mapx']) {
    map.put(key, 'not even JSON');
  }
  assert.deepEqual(map.view(), before);
});

test('without a cluster there is nothing to ask', () => {
  assert.ok(!MapSnapshot.empty.founded);
  assert.throws(() => MapSnapshot.empty.map, { code: 'NOT_FOUND' });
});
