import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asNodeId } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { type PolicyNumbers, proposeAbort, proposeTarget } from '@webdfs/cluster';
import { assertMembersHoldAll, Client } from './cluster-contents.ts';
import { InProcessCluster, POLICY } from './cluster-in-process.ts';
import { SimulatedStores } from './simulated-stores.ts';

/** Clusters whose number of copies changes while clients write. */

async function aim(cluster: InProcessCluster, numbers: PolicyNumbers): Promise<void> {
  await cluster.transact((view) =>
    proposeTarget(view, view.map.target ?? view.map.settled, { policies: new Map([[POLICY, numbers]]) }),
  );
}

/** Members of all groups, the fewest and the most. */
function members(cluster: InProcessCluster): { least: number; most: number } {
  const { view } = cluster.node(1).map;
  const counts = [...cluster.groups()].map((key) => view.group(key).inSync.length);
  return { least: Math.min(...counts), most: Math.max(...counts) };
}

test('copies become fewer and more again while clients write, and nothing acknowledged is lost', async (t) => {
  const seed = seedOf(t);
  await using cluster = await InProcessCluster.start({ stores: new SimulatedStores(seed), groupBits: 5 });
  const client = new Client(cluster, 1, seed);
  await client.begin();
  let least = 3;
  cluster.node(1).map.onChange((view) => {
    for (const key of cluster.groups()) least = Math.min(least, view.group(key).inSync.length);
  });
  let isOver = false;
  const writing = (async () => {
    for (let i = 0; !isOver; i++) {
      if (i % 9 === 4) await client.remove(`key ${i % 30}`);
      else await client.put(`key ${(i * 13) % 40}`, i % 5 === 0 ? 3_000 : 100);
    }
  })();
  await aim(cluster, { copies: 2, minCopies: 1 });
  await cluster.whenAtGoal();
  assert.deepEqual(members(cluster), { least: 2, most: 2 });
  await aim(cluster, { copies: 3, minCopies: 2 });
  await cluster.whenAtGoal();
  assert.deepEqual(members(cluster), { least: 3, most: 3 });
  await aim(cluster, { copies: 2, minCopies: 1 });
  await cluster.transact(proposeAbort);
  await cluster.whenAtGoal();
  isOver = true;
  await writing;
  assert.ok(least >= 2, `a group had ${least} members`);
  assert.deepEqual(members(cluster), { least: 3, most: 3 });
  for (const id of [1, 2, 3]) await assertMembersHoldAll(cluster, asNodeId(id));
  await client.check();
});
