import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asGroupId, asNodeId, ManualClock, type NodeId, SeededRandom } from '@webdfs/base';
import { createCluster, FIRST_POLICY, formatDocument, liveKey, MapSnapshot, MemoryMapStore } from '@webdfs/cluster';
import type { NodeScrub } from './scrub-codec.ts';
import { combine, type Survey } from './survey.ts';
import { emptyTally } from './tally.ts';

const BITS = 4;
const PASS = { id: 1_000, bytesPerSecond: 5_000_000 };

async function aMap(): Promise<MapSnapshot> {
  const store = new MemoryMapStore(new ManualClock());
  const nodes = [1, 2, 3].map((id) => ({ id: asNodeId(id), address: `node ${id}`, disk: `disk ${id}` }));
  await createCluster(store, { name: 'counted', nodes, random: new SeededRandom(3), groupBits: BITS });
  for (const { id } of nodes) {
    const value = formatDocument({ pid: 1, startedMs: 1 });
    await store.transact({ compare: [], write: [{ type: 'put', key: liveKey(id), value }] });
  }
  return MapSnapshot.of(await store.read());
}

/** Every group counted by its primary: `objects[3]` objects in each. */
function allCounted(view: MapSnapshot): Survey['nodes'] {
  return view.nodes().map((node) => {
    const counted = new Uint8Array(2 ** (BITS - 3));
    const tally = emptyTally();
    tally.objects.push(0, 0, 0, 0);
    let served = 0;
    for (let group = 0; group < 2 ** BITS; group++) {
      if (view.group({ policy: FIRST_POLICY, group: asGroupId(group) }).primary !== node) continue;
      counted[group >>> 3]! |= 1 << (group & 7);
      tally.objects[3]! += 2;
      served++;
    }
    const said: NodeScrub = {
      node,
      revision: view.revision,
      pass: PASS,
      state: 'done',
      policies: [{ policy: FIRST_POLICY, counted, tally }],
      reasons: [],
      served,
      volumes: { read: 1, of: 1, bytes: 1, done: true },
      bytesPerSecond: 0,
      bytesTotal: 0,
      completion: undefined,
    };
    return { node, said };
  });
}

function but(nodes: Survey['nodes'], node: number, change: Partial<NodeScrub> | string): Survey['nodes'] {
  return nodes.map((one) => {
    if (one.node !== node || typeof one.said === 'string') return one;
    return { node: one.node, said: typeof change === 'string' ? change : { ...one.said, ...change } };
  });
}

test('complete and clean is what was counted once, everywhere, and found whole', async () => {
  const view = await aMap();
  const found = combine(view, allCounted(view));
  assert.deepEqual([found.complete, found.clean, found.uncountedGroups], [true, true, 0]);
  assert.equal(found.policies[0]!.tally.objects[3], 2 * 2 ** BITS);
});

test('one group that nobody counted is named, and nothing is complete', async () => {
  const view = await aMap();
  const group = { policy: FIRST_POLICY, group: asGroupId(5) };
  const { primary } = view.group(group);
  const nodes = allCounted(view);
  const said = nodes.find(({ node }) => node === primary)!.said as NodeScrub;
  const counted = said.policies[0]!.counted.slice();
  counted[0]! &= ~(1 << 5);
  const policies = [{ ...said.policies[0]!, counted }];
  const reasons = [{ ...group, why: 'a member changes too fast' }];
  const found = combine(view, but(nodes, primary!, { policies, reasons }));
  assert.equal(found.complete, false);
  assert.deepEqual(found.uncounted, [{ ...group, why: 'a member changes too fast' }]);
});

test('a group that two nodes counted is not counted: one of them is no primary any more', async () => {
  const view = await aMap();
  const nodes = allCounted(view);
  const all = new Uint8Array(2 ** (BITS - 3)).fill(0xff);
  const one = nodes[0]!.said as NodeScrub;
  const found = combine(view, but(nodes, 1, { policies: [{ ...one.policies[0]!, counted: all }] }));
  assert.equal(found.complete, false);
  assert.ok(found.uncountedGroups > 0);
  assert.match(found.uncounted[0]!.why, /counted it/);
});

const EXCUSES: readonly [string, Partial<NodeScrub> | string][] = [
  ['does not answer', 'PEER_LOST'],
  ['is in an earlier pass', { pass: { ...PASS, id: 1 } }],
  ['has begun none', { pass: undefined }],
  ['has not read its volumes', { volumes: { read: 0, of: 1, bytes: 1, done: false } }],
  ['goes by another map', { revision: 1 }],
];

for (const [what, change] of EXCUSES) {
  test(`nothing is complete while a node ${what}`, async () => {
    const view = await aMap();
    const found = combine(view, but(allCounted(view), 2, change));
    assert.deepEqual([found.complete, found.clean], [false, false]);
  });
}

test('complete is not clean where an object has a copy too few, or something was found', async () => {
  const view = await aMap();
  for (const change of [{ objects: [0, 0, 1, 5] }, { left: 1 }, { found: { ...emptyTally().found, damaged: 1 } }]) {
    const tally = { ...emptyTally(), ...change };
    const nodes = allCounted(view);
    const said = nodes[1]!.said as NodeScrub;
    const policies = [{ ...said.policies[0]!, tally }];
    const found = combine(view, but(nodes, 2 satisfies number, { policies }));
    assert.deepEqual([found.complete, found.clean], [true, false]);
  }
});

test('before any pass nothing is complete', async () => {
  const view = await aMap();
  const nodes = view.nodes().map((node: NodeId) => ({ node, said: 'not asked' }));
  const found = combine(view, nodes);
  assert.deepEqual([found.complete, found.pass, found.uncountedGroups], [false, undefined, 2 ** BITS]);
});
