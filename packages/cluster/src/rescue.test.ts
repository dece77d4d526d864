import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { asGroupId, asNodeId, ManualClock, type SeededRandom } from '@webdfs/base';
import { randomOf } from '@webdfs/base/testing';
import { FIRST_POLICY } from './create-cluster.ts';
import { packMapCopy, unpackMapCopy } from './map-copy.ts';
import { exportFrom } from './map-export.ts';
import { putIn } from './map-import.ts';
import { MapSnapshot } from './map-view.ts';
import { MemoryMapStore } from './memory-map-store.ts';
import { happen } from './model/events.ts';
import { GROUPS, isPrefix, keyOf, World, type WorldNode } from './model/world.ts';
import { type NodeSurvey, planRescue, type SurveyedGroup } from './rescue.ts';

const CLUSTER = '0123456789abcdef0123456789abcdef';

function groupOf(world: World, node: WorldNode, group: number, random: SeededRandom): SurveyedGroup {
  const log = node.logs[group]!;
  const history = world.history[group]!;
  let common = 0;
  while (common < Math.min(log.length, history.length) && log[common]!.id === history[common]!.id) common++;
  const view = world.view(group);
  const holds = view.inSync.includes(node.id) || view.eligible.includes(node.id);
  return {
    ...keyOf(group),
    last: log.length,
    lastBallot: log.at(-1)?.ballot ?? 0,
    // a node may not have heard yet how far all have come
    commit: random.below(common + 1),
    // one that left long ago may still call itself a member
    role: holds || random.fraction() < 0.5 ? 'member' : 'learner',
  };
}

/** What a node's folder would tell, its copy of the map as it was `lag` revisions before the newest, or older. */
function surveyOf(world: World, node: WorldNode, random: SeededRandom, lag: number): NodeSurvey {
  const seen = world.snapshots.indexOf(node.view);
  const newest = Math.min(seen, world.snapshots.length - 1 - lag);
  const snapshot = world.snapshots[Math.max(0, newest - random.below(3))]!;
  return {
    node: node.id,
    cluster: CLUSTER,
    disk: node.diskId,
    memory: node.memory,
    copy: random.fraction() < 0.1 ? undefined : unpackMapCopy(packMapCopy(snapshot.contents())),
    groups: Array.from({ length: GROUPS }, (_, group) => groupOf(world, node, group, random)),
  };
}

async function rescued(surveys: readonly NodeSurvey[], without: readonly number[]): Promise<MapSnapshot> {
  const { exported } = planRescue(surveys, { without: without.map(asNodeId) });
  const store = new MemoryMapStore(new ManualClock());
  await putIn(store, exported, 'rescued');
  return MapSnapshot.of(await store.read());
}

test('whatever has happened, from copies that lag a map follows whose members hold all that was acknowledged', async (t) => {
  const random = randomOf(t);
  let overtaken = 0;
  let served = 0;
  for (let run = 0; run < 150; run++) {
    const seed = random.below(2 ** 31);
    const world = new World({ seed, nodes: 5, copies: 3, minCopies: 2 });
    for (let i = 50 + random.below(250); i > 0; i--) happen(world);
    const lost = random.fraction() < 0.5 ? [] : [world.nodes[random.below(5)]!];
    const nodes = world.nodes.filter((node) => !lost.includes(node));
    // most lag little, and some so far that a group may have left all whom they name
    const lag = random.fraction() < 0.5 ? random.below(10) : random.below(world.snapshots.length);
    const surveys = nodes.map((node) => surveyOf(world, node, random, lag));
    if (surveys.every(({ copy }) => copy === undefined)) continue;
    const without = lost.map(({ id }) => id);
    const plan = planRescue(surveys, { without });
    if (plan.mayLose) continue;
    overtaken += plan.overtaken.length;
    const after = await rescued(surveys, without);
    for (let group = 0; group < GROUPS; group++) {
      const view = after.group(keyOf(group));
      served += view.inSync.length > 0 ? 1 : 0;
      for (const id of [...view.inSync, ...view.eligible]) {
        const node = world.node(id);
        if (lost.includes(node) || after.disk(id)?.id !== node.diskId) continue;
        assert.ok(
          isPrefix(world.history[group]!, node.logs[group]!),
          `seed ${seed}: node ${id} is in sync in group ${group}, and lacks what was acknowledged`,
        );
      }
    }
    for (const node of nodes) {
      const life = after.node(node.id)?.life ?? 0;
      assert.ok(life >= (node.memory?.life ?? 0), 'a node may register again');
    }
  }
  assert.ok(overtaken > 20 && served > 150, `${overtaken} overtaken, ${served} served: the runs are about nothing`);
});

/** Two nodes and one lost disk hold group 0; their copies are of the map as it was made. */
function surveysOf(ends: readonly (readonly [last: number, revision: number])[]): NodeSurvey[] {
  const world = new World({ seed: 1, nodes: 4, copies: 3, minCopies: 2 });
  const copy = exportFrom(world.now.contents());
  return ends.map(([last, lastBallot], i) => ({
    node: asNodeId(i + 1),
    cluster: CLUSTER,
    disk: `disk ${i + 1}`,
    memory: undefined,
    copy,
    groups: [{ ...keyOf(0), last, lastBallot, commit: 0, role: 'member' as const }],
  }));
}

test('a ballot that no copy knows makes those whose logs have it the members', async () => {
  const view = (
    await rescued(
      surveysOf([
        [5, 1],
        [7, 90],
        [7, 90],
        [6, 1],
      ]),
      [],
    )
  ).group(keyOf(0));
  assert.deepEqual(view.inSync.toSorted(), [2, 3]);
});

test('a member that ends before the others is left out, though no ballot is new', async () => {
  const surveys = surveysOf([
    [7, 1],
    [7, 1],
    [7, 1],
    [0, 0],
  ]);
  const members = (await rescued(surveys, [])).group(keyOf(0)).inSync;
  assert.equal(members.length, 3);
  const behind = surveys.map((survey) =>
    survey.node === members[0] ? { ...survey, groups: [{ ...survey.groups[0]!, last: 6 }] } : survey,
  );
  assert.deepEqual((await rescued(behind, [])).group(keyOf(0)).inSync, members.slice(1));
});

test('a node whose folder was not named must be said to be lost; as many as hold an acknowledged write may lose some', () => {
  const all = surveysOf([
    [1, 1],
    [1, 1],
    [1, 1],
    [1, 1],
  ]);
  assert.throws(() => planRescue(all.slice(1)), { code: 'NOT_FOUND', message: /--without 1/ });
  assert.equal(planRescue(all.slice(1), { without: [asNodeId(1)] }).mayLose, false);
  assert.equal(planRescue(all.slice(2), { without: [asNodeId(1), asNodeId(2)] }).mayLose, true);
  assert.throws(() => planRescue([...all, all[0]!]), { code: 'CONFLICT' });
  const stranger = { ...all[0]!, cluster: 'f'.repeat(32) };
  assert.throws(() => planRescue([stranger, ...all.slice(1)]), { code: 'WRONG_PEER' });
  assert.throws(() => planRescue(all.map((survey) => ({ ...survey, copy: undefined }))), { code: 'NOT_FOUND' });
});

test('a damaged copy of the map is not believed, wherever a bit has flipped', () => {
  const world = new World({ seed: 1, nodes: 4, copies: 3, minCopies: 2 });
  const bytes = packMapCopy(world.now.contents());
  assert.equal(unpackMapCopy(bytes).map.cluster, CLUSTER);
  for (let at = 0; at < bytes.length; at += 5) {
    const damaged = Uint8Array.from(bytes);
    damaged[at]! ^= 1;
    assert.throws(() => unpackMapCopy(damaged), { code: 'CORRUPT' });
  }
  assert.equal(world.now.group({ policy: FIRST_POLICY, group: asGroupId(0) }).inSync.length, 3);
});

test('the example of the format page is a copy of a map', () => {
  const page = readFileSync(new URL('../../../docs/formats/map-copy.md', import.meta.url), 'utf8');
  const [, example] = /```\n([^`]*)```/.exec(page)!;
  const { map, revision, entries } = unpackMapCopy(Buffer.from(example!));
  assert.deepEqual([map.name, revision, entries.length], ['home', 9, 2]);
});
