import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { algorithmOf } from '../algorithms.ts';
import { publishTopology } from '../publish.ts';
import { seedOf } from '../conformance.ts';
import { placeableNodes } from '../domains.ts';
import type { NodeId } from '../ids.ts';
import { leastMoves } from '../moves.ts';
import { anyTopology, foundingTopology, rackTopology, SeededChance, subclusterOf } from '../samples.ts';
import { type AlgorithmName, type Topology, UNIT_WEIGHT } from '../topology.ts';
import type { PlacementPlan } from './placement-plan.ts';
import { planChange } from './plan.ts';
import { changeTopology, type NodeChoice, type TopologyChange } from './topology-change.ts';
import { expectedFullest } from './warnings.ts';

const GROUP_BITS = 12;
const GROUPS = 2 ** GROUP_BITS;

const ids = (...ids: number[]): NodeChoice => ({ by: 'id', ids });
const rack = (value: string): NodeChoice => ({ by: 'label', label: 'rack', value });
const published = (topology: Topology): Topology => publishTopology(topology, { groupBits: GROUP_BITS });

function planOf(before: Topology, ...changes: TopologyChange[]): PlacementPlan {
  return planChange({
    before,
    after: changeTopology(before, changes, { groupBits: GROUP_BITS }),
    groupBits: GROUP_BITS,
  });
}

const codesOf = (plan: PlacementPlan): string[] => [...new Set(plan.warnings.map(({ code }) => code))].toSorted();

function anyChange(random: SeededChance, topology: Topology): TopologyChange {
  const nodes = placeableNodes(topology);
  const one = ids(nodes[random.below(nodes.length)]!.id);
  const changes: TopologyChange[] = [
    { type: 'add-subcluster', count: 1 + random.below(5), weight: UNIT_WEIGHT * (1 + random.below(4)), labels: {} },
    {
      type: 'add-nodes',
      subcluster: topology.subclusters[0]!.id,
      count: 2,
      weight: UNIT_WEIGHT,
      labels: { rack: 'r0' },
    },
    { type: 'drain', nodes: one },
    { type: 'reweight', nodes: one, weight: 3 * UNIT_WEIGHT },
    { type: 'rescale', nodes: one, times: 0.5 },
    { type: 'remove', nodes: one },
    { type: 'relabel', nodes: one, labels: { rack: `r${random.below(7)}` } },
    { type: 'algorithm', algorithm: 'rendezvous' },
    { type: 'domain', domain: random.below(2) === 0 ? undefined : 'rack' },
    { type: 'copies', copies: 1 + random.below(4) },
  ];
  return changes[random.below(changes.length)]!;
}

test('what flows in and out of a node is the difference of what it holds, whatever the change', (t) => {
  const wrd = algorithmOf(foundingTopology('wrd', 1));
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (seed) => {
      const random = new SeededChance(seed);
      const before = published(anyTopology(random, wrd));
      const changes = Array.from({ length: 1 + random.below(2) }, () => anyChange(random, before));
      let after: Topology;
      try {
        after = changeTopology(before, changes, { groupBits: 7, keepFactors: random.below(2) === 0 });
      } catch (error) {
        // the second change may name the node that the first removed
        assert.equal((error as { code: string }).code, 'INVALID');
        return;
      }
      const sizes = Uint32Array.from({ length: 128 }, () => random.below(1_000));
      const { movement, nodes, groups } = planChange({ before, after, groupBits: 7, groupBytes: sizes });
      const balance = new Map<NodeId, { copies: number; bytes: number }>();
      const add = (node: NodeId | undefined, groups: number, bytes: number): void => {
        if (node === undefined) return;
        const { copies = 0, bytes: known = 0 } = balance.get(node) ?? {};
        balance.set(node, { copies: copies + groups, bytes: known + bytes });
      };
      for (const flow of movement.flows) {
        add(flow.from, -flow.groups, -flow.bytes);
        add(flow.to, flow.groups, flow.bytes);
      }
      for (const { node, before: old, after: next } of nodes) {
        const { copies = 0, bytes = 0 } = balance.get(node) ?? {};
        assert.equal((next?.copies ?? 0) - (old?.copies ?? 0), copies);
        assert.equal((next?.bytes ?? 0) - (old?.bytes ?? 0), bytes);
      }
      const made = movement.flows.filter(({ to }) => to !== undefined);
      assert.equal(
        movement.copies,
        made.reduce((sum, flow) => sum + flow.groups, 0),
      );
      assert.equal(
        movement.bytes,
        made.reduce((sum, flow) => sum + flow.bytes, 0),
      );
      assert.ok(movement.groups <= groups && movement.groups <= movement.copies + movement.dropped);
    }),
    { numRuns: 150, seed: seedOf(t) },
  );
});

test('an added sub-cluster takes its share from the others, and hardly anything moves between those', () => {
  for (const algorithm of ['wrd', 'rush-r'] satisfies AlgorithmName[]) {
    const before = published(foundingTopology(algorithm, 1));
    const plan = planOf(before, { type: 'add-subcluster', count: 5, weight: 8 * UNIT_WEIGHT, labels: {} });
    const best = (GROUPS * 3 * 40) / 75;
    assert.ok(Math.abs(plan.least - best) < 1e-3, `${plan.least}`);
    assert.ok(Math.abs(plan.movement.copies - best) < 5 * Math.sqrt(best), `${plan.movement.copies}, least ${best}`);
    assert.ok(plan.ofLeast! > 0.95 && plan.ofLeast! < 1.05);
    const between = plan.movement.flows.filter(({ to }) => to! < 16).reduce((sum, { groups }) => sum + groups, 0);
    // calibration shifts every domain a little
    assert.ok(algorithm === 'wrd' ? between < 0.01 * best : between === 0, `${between} between old nodes`);
    assert.equal(plan.after.nodes, 20);
  }
});

test('the least is that of the weights wherever these can be honoured', () => {
  const before = published(rackTopology('wrd', 3));
  const after = changeTopology(before, [{ type: 'drain', nodes: rack('r1') }], { groupBits: GROUP_BITS });
  const plan = planChange({ before, after, groupBits: GROUP_BITS });
  assert.ok(Math.abs(plan.least - leastMoves(before, after, GROUPS)) < 0.01);
});

test('racks apart stay apart: no group shares one, before or after', () => {
  const plan = planOf(published(rackTopology('wrd', 3)), { type: 'drain', nodes: rack('r1') });
  for (const side of [plan.before, plan.after]) {
    assert.deepEqual(
      side.spread.map(({ label, shared, most }) => ({ label, shared, most })),
      [{ label: 'rack', shared: 0, most: 1 }],
    );
  }
  assert.equal(plan.before.spread[0]!.domains, 12);
  assert.equal(plan.after.spread[0]!.domains, 11);
  const drained = plan.nodes.filter(({ domain }) => domain === 'r1');
  assert.ok(drained.every(({ after, before }) => after!.copies === 0 && before!.copies > 0));
});

test('of two racks one holds two of three copies: told as spread', () => {
  const labels = (name: string) => ({ rack: name });
  const topology: Topology = {
    ...foundingTopology('wrd', 1),
    domain: 'rack',
    subclusters: [
      subclusterOf(1, { firstId: 1, count: 4, weight: 1, labels: labels('a') }),
      subclusterOf(2, { firstId: 5, count: 4, weight: 1, labels: labels('b') }),
    ],
  };
  const { before } = planOf(topology, { type: 'copies', copies: 3 });
  assert.deepEqual(before.spread, [{ label: 'rack', domains: 2, shared: GROUPS, most: 2 }]);
});

test('a further copy comes from no node in particular, one copy less goes nowhere', () => {
  const before = foundingTopology('rush-r', 1);
  const more = planOf(before, { type: 'copies', copies: 4 });
  assert.equal(more.movement.copies, GROUPS);
  assert.ok(Math.abs(more.least - GROUPS) < 1e-3);
  assert.ok(more.movement.flows.every(({ from }) => from === undefined));
  const fewer = planOf(before, { type: 'copies', copies: 2 });
  assert.equal(fewer.movement.copies, 0);
  assert.equal(fewer.movement.dropped, GROUPS);
  assert.ok(fewer.movement.flows.every(({ to }) => to === undefined));
});

test('a change that changes nothing moves nothing', () => {
  const before = published(rackTopology('wrd', 3));
  const plan = planOf(before, { type: 'reweight', nodes: rack('r1'), weight: UNIT_WEIGHT });
  assert.equal(plan.movement.groups, 0);
  assert.deepEqual(plan.movement.flows, []);
  assert.equal(plan.ofLeast, undefined);
});

test('a rack that must hold more than its share is named, with how much', () => {
  // three racks and three copies: each rack holds one of every group, whatever it weighs; that is 7/3 of a weight of 1 in 7
  const subclusters = [1, 2, 4].map((weight, i) =>
    subclusterOf(i + 1, { firstId: i * 10 + 1, count: 6, weight, labels: { rack: `r${i + 1}` } }),
  );
  const plan = planOf({ ...foundingTopology('wrd', 1), domain: 'rack', subclusters }, { type: 'copies', copies: 3 });
  const over = plan.warnings.filter(({ code }) => code === 'overfull-domain').map(({ message }) => message);
  assert.match(over[0]!, /^rack r1 must hold 2\.33 times its share/);
  const heavy = plan.warnings.filter(({ message }) => message.startsWith('rack r3'));
  assert.deepEqual(heavy, [
    {
      code: 'topology',
      message:
        'rack r3 has 57 % of the weight and can hold at most 33 % of the copies: its nodes will stand emptier than their weight says',
    },
  ]);
  // the figure is no theory: the table says the same
  const held = plan.nodes.filter(({ domain }) => domain === 'r1').reduce((sum, { after }) => sum + after!.copies, 0);
  assert.equal(held, GROUPS);
});

test('of two racks the heavy one can hold two copies of three: what it can hold is told as it is', () => {
  const subclusters = [1, 4].map((weight, i) =>
    subclusterOf(i + 1, { firstId: i * 10 + 1, count: 6, weight, labels: { rack: `r${i + 1}` } }),
  );
  const plan = planOf({ ...foundingTopology('wrd', 1), domain: 'rack', subclusters }, { type: 'copies', copies: 3 });
  assert.ok(
    plan.warnings.some(({ message }) => message.startsWith('rack r2 has 80 % of the weight and can hold at most 67 %')),
  );
  assert.ok(plan.warnings.some(({ message }) => message.startsWith('rack r1 must hold 1.67 times its share')));
});

test('more copies than nodes are a warning with the numbers, and the plan shows what there is', () => {
  const before = foundingTopology('wrd', 1);
  const plan = planOf(before, { type: 'remove', nodes: ids(...Array.from({ length: 13 }, (_, i) => i + 3)) });
  assert.deepEqual(codesOf(plan), ['removed-with-copies', 'shortfall']);
  assert.match(plan.warnings[0]!.message, /^3 copies need as many nodes with weight, there will be 2/);
  assert.equal(plan.nodes[0]!.after!.copies, GROUPS);
  assert.throws(() => planOf(before, { type: 'drain', nodes: ids(...Array.from({ length: 15 }, (_, i) => i + 1)) }), {
    code: 'INVALID',
    message: /after the change no node has weight/,
  });
});

test('too few groups for the size are named, with the number that would do', () => {
  const before = foundingTopology('wrd', 1);
  const plan = planOf(before, { type: 'add-subcluster', count: 200, weight: UNIT_WEIGHT, labels: {} });
  const [warning] = plan.warnings.filter(({ code }) => code === 'few-groups');
  assert.match(warning!.message, /^4096 groups are 57 copies a node over 215 nodes: .*wants 16384 groups/);
  assert.ok(!codesOf(planOf(before, { type: 'drain', nodes: ids(1) })).includes('few-groups'));
});

test('the expected excess is that of the measured tables', () => {
  // nodes, groups, max/mean as measured with equal weights and three copies
  for (const [nodes, groups, measured] of [
    [15, 4_096, 1.055],
    [100, 16_384, 1.107],
    [300, 65_536, 1.111],
    [1_000, 65_536, 1.241],
  ] as const) {
    assert.ok(Math.abs(expectedFullest(nodes, 3, groups) - measured) < 0.1, `${nodes} nodes, ${groups} groups`);
  }
});

test('an algorithm that moves far more than it must is told so; one that does not support the change refuses', () => {
  const plan = planOf(foundingTopology('rush-p', 1), { type: 'remove', nodes: ids(15) });
  assert.ok(plan.ofLeast! > 3);
  assert.ok(codesOf(plan).includes('much-movement'));
  assert.throws(() => planOf(foundingTopology('rush-p', 1), { type: 'drain', nodes: ids(1, 2, 3) }), {
    code: 'INVALID',
    message: /after the change: rush-p needs at least 3 nodes with weight in the oldest sub-cluster/,
  });
});

test('nodes without the label that keeps copies apart are counted', () => {
  const before = published(rackTopology('wrd', 3));
  const none = planOf(before, { type: 'domain', domain: 'zone' }).warnings.find(({ code }) => code === 'unlabelled');
  assert.equal(none!.message, 'no node has a zone: each of them counts as a zone of its own');
  const some = planOf(before, { type: 'add-subcluster', count: 2, weight: UNIT_WEIGHT, labels: { zone: 'r13' } });
  assert.match(some.warnings.find(({ code }) => code === 'unlabelled')!.message, /^2 of 98 nodes have no rack: /);
  assert.ok(!codesOf(planOf(before, { type: 'drain', nodes: rack('r1') })).includes('unlabelled'));
});

test('movement that the weights do not ask for has its reason told', () => {
  const before = published(rackTopology('wrd', 3));
  const reasons: [TopologyChange, RegExp][] = [
    [{ type: 'algorithm', algorithm: 'straw2' }, /nothing need move: straw2 places groups otherwise than wrd$/],
    [{ type: 'domain', domain: undefined }, /other domains are kept apart$/],
  ];
  for (const [change, reason] of reasons) {
    assert.match(planOf(before, change).warnings.find(({ code }) => code === 'much-movement')!.message, reason);
  }
  const after = changeTopology(before, [], { groupBits: GROUP_BITS, balance: true });
  const leveled = planChange({ before, after, groupBits: GROUP_BITS }).warnings;
  assert.ok(leveled.some(({ message }) => message.endsWith('pins level what chance left uneven')));
});

test('a node without room for what it would get is named', () => {
  const before = foundingTopology('wrd', 1);
  const after = changeTopology(before, [{ type: 'drain', nodes: ids(1) }], { groupBits: GROUP_BITS });
  const capacities = new Map([
    [7 as NodeId, 1e9],
    [8 as NodeId, 1e12],
  ]);
  const plan = planChange({ before, after, groupBits: GROUP_BITS, groupBytes: 1e7, capacities });
  const rooms = plan.warnings.filter(({ code }) => code === 'no-room');
  assert.equal(rooms.length, 1);
  assert.match(rooms[0]!.message, /^node 7 would hold \d+\.\d\d GB and has room for 1\.00 GB$/);
});

test('factors that are kept move less; made anew they fit what is there', () => {
  const subclusters = Array.from({ length: 6 }, (_, i) =>
    subclusterOf(i + 1, { firstId: i * 8 + 1, count: 8, weight: [1, 2, 4][i % 3]!, labels: { rack: `r${i + 1}` } }),
  );
  const before = published({ ...foundingTopology('wrd', 1), domain: 'rack', subclusters });
  const [kept, anew] = [true, false].map((keepFactors) => {
    const changes: TopologyChange[] = [
      { type: 'remove', nodes: { by: 'subcluster', id: 1 } },
      { type: 'drain', nodes: ids(24) },
    ];
    const after = changeTopology(before, changes, { groupBits: GROUP_BITS, keepFactors });
    return { after, plan: planChange({ before, after, groupBits: GROUP_BITS }) };
  }) as [{ after: Topology; plan: PlacementPlan }, { after: Topology; plan: PlacementPlan }];
  assert.deepEqual(Object.keys(kept.after.factors!), ['r2', 'r3', 'r4', 'r5', 'r6']);
  assert.equal(kept.after.factors!['r2'], before.factors!['r2']);
  assert.notEqual(anew.after.factors!['r2'], before.factors!['r2']);
  assert.ok(kept.plan.movement.copies < anew.plan.movement.copies);
  // what moves without new factors comes from the nodes that leave
  assert.ok(kept.plan.movement.flows.every(({ from }) => from! <= 8 || from === 24));
});

test('of earlier pins those that still help stay, the others go and are counted', () => {
  const unpinned = published(foundingTopology('wrd', 1));
  const before = changeTopology(unpinned, [], { groupBits: GROUP_BITS, balance: true });
  assert.ok(before.pins!.length > 20);
  assert.deepEqual(changeTopology(before, [], { groupBits: GROUP_BITS }).pins, before.pins);
  const after = changeTopology(before, [{ type: 'remove', nodes: ids(1) }], {
    groupBits: GROUP_BITS,
    keepFactors: true,
  });
  assert.ok(after.pins!.length > 0);
  assert.ok(after.pins!.length < before.pins!.length);
  const named = new Set(before.pins!.map((pin) => JSON.stringify(pin)));
  assert.ok(after.pins!.every((pin) => named.has(JSON.stringify(pin)) && pin.from !== 1 && pin.to !== 1));
  const [lost] = planChange({ before, after, groupBits: GROUP_BITS }).warnings.filter(
    ({ code }) => code === 'lost-pins',
  );
  assert.ok(lost!.message.startsWith(`${before.pins!.length - after.pins!.length} of ${before.pins!.length} pins go`));
});

test('a plan with balance leaves no node more than 2 % above its share', () => {
  const before = published(foundingTopology('wrd', 1));
  const changes: TopologyChange[] = [{ type: 'add-subcluster', count: 5, weight: 8 * UNIT_WEIGHT, labels: {} }];
  const after = changeTopology(before, changes, { groupBits: GROUP_BITS, balance: true });
  const plan = planChange({ before, after, groupBits: GROUP_BITS });
  assert.ok(plan.before.balance!.fullest.ofShare > 1.02);
  assert.ok(plan.after.balance!.fullest.ofShare <= 1.0201, `${plan.after.balance!.fullest.ofShare}`);
  assert.equal(plan.before.pins, 0);
  assert.ok(plan.after.pins > 0 && plan.ofLeast! < 1.05);
});

test('changes are made one after the other, and what they name must be there', () => {
  const before = foundingTopology('wrd', 1);
  const after = changeTopology(
    before,
    [
      { type: 'add-subcluster', count: 2, weight: UNIT_WEIGHT, labels: { rack: 'new' } },
      { type: 'add-nodes', subcluster: 4, count: 1, labels: {} },
      { type: 'rescale', nodes: { by: 'subcluster', id: 4 }, times: 3 },
      { type: 'drain', nodes: rack('new') },
      { type: 'relabel', nodes: ids(18), labels: { zone: 'z' } },
    ],
    { groupBits: GROUP_BITS },
  );
  assert.deepEqual(after.subclusters.at(-1), {
    id: 4,
    nodes: [
      { id: 16, weight: 0, labels: { rack: 'new' } },
      { id: 17, weight: 0, labels: { rack: 'new' } },
      { id: 18, weight: 3 * UNIT_WEIGHT, labels: { zone: 'z' } },
    ],
  });
  const wrong: [TopologyChange, RegExp][] = [
    [{ type: 'drain', nodes: ids(3, 99) }, /drain: there is no node 99/],
    [{ type: 'remove', nodes: rack('r9') }, /remove: there is no node in rack r9/],
    [{ type: 'add-nodes', subcluster: 9, count: 1, labels: {} }, /add-nodes: there is no sub-cluster 9/],
    [{ type: 'add-subcluster', count: 0, weight: 1, labels: {} }, /add-subcluster: cannot add 0 nodes/],
    [{ type: 'add-subcluster', count: 70_000, weight: 1, labels: {} }, /ids go up to 65535/],
    [{ type: 'add-subcluster', id: 2, count: 1, weight: 1, labels: {} }, /there is a sub-cluster 2/],
    [{ type: 'reweight', nodes: ids(1), weight: -1 }, /reweight: node 1 would have weight/],
    [{ type: 'rescale', nodes: ids(1), times: Number.NaN }, /rescale: node 1 would have weight/],
  ];
  for (const [change, message] of wrong) {
    assert.throws(() => changeTopology(before, [change], { groupBits: GROUP_BITS }), { code: 'INVALID', message });
  }
});

test('the planner runs in a browser: it needs nothing but this room', () => {
  const folder = new URL('.', import.meta.url);
  for (const name of readdirSync(folder).filter((name) => /^[a-z-]+\.ts$/.test(name))) {
    const text = readFileSync(new URL(name, folder), 'utf8');
    for (const [, source] of text.matchAll(/^(?:import|export)\b[^;]*? from '([^']+)';/gm)) {
      assert.match(source!, /^\.\.?\/[a-z-]+\.ts$/, `${name} imports ${source}`);
    }
    assert.doesNotMatch(text, /\b(?:Buffer|process)\b/);
  }
});
