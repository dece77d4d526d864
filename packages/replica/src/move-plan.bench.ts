import { asGroupId, asNodeId, systemClock } from '@webdfs/base';
import { allGroups, FIRST_POLICY } from '@webdfs/cluster';
import type { TopologyChange } from '@webdfs/placement';
import { MovePlan } from './move-plan.ts';
import { TestMap } from './test-map.ts';

/*
 * What it costs a node to plan, with 100 nodes and 16 384 groups: node --expose-gc --conditions=webdfs:source move-plan.bench.ts
 * The views of the groups are there anyway by the time that a plan is made.
 */

const CHANGES: readonly TopologyChange[] = [
  { type: 'drain', nodes: { by: 'id', ids: [96, 97, 98, 99, 100].map(asNodeId) } },
  { type: 'add-nodes', subcluster: 1, count: 100, labels: {} },
];

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

for (const change of CHANGES) {
  await using test = await TestMap.of(100, { clock: systemClock, groupBits: 14 });
  await test.change(change);
  await test.live(test.map.view.nodes().filter((node) => test.map.view.live(node) === undefined));
  const { view } = test.map;
  for (const key of allGroups(view.map)) view.group(key);
  const before = heapBytes();
  const began = systemClock.monotonic();
  const plan = new MovePlan({ clock: systemClock, map: test.map });
  plan.advice({ policy: FIRST_POLICY, group: asGroupId(0) }, asNodeId(1));
  const ms = systemClock.monotonic() - began;
  const mib = (heapBytes() - before) / 1_048_576;
  process.stdout.write(`${change.type}: ${ms.toFixed(0)} ms, ${mib.toFixed(1)} MiB kept; ${plan.copies} copies\n`);
}
