import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedOf } from '@webdfs/base/testing';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { etcdMissing, RunningEtcd } from '@webdfs/cluster/testing';
import { JoinedCluster } from '../support/joined-cluster.ts';
import { RecordedLoad } from '../support/recorded-load.ts';

/** A cluster on several machines, as far as processes can be machines; the longer proofs are in `test/machines`. */
const skip = etcdMissing();

/** Waits until a node that is gone counts as down and all groups go on without it. */
async function degraded(cluster: JoinedCluster, node: number): Promise<void> {
  for (;;) {
    const { nodes, groups } = await cluster.status();
    const isDown = nodes.find(({ id }) => id === node)?.state === 'down';
    if (isDown && groups.degraded === groups.total && groups.withoutPrimary === 0) return;
    await sleep(systemClock, 250);
  }
}

test(
  'a cluster through etcd: nodes join, one dies with its machine, comes back, and one comes back empty',
  { skip },
  async (context) => {
    const random = new SeededRandom(seedOf(context));
    await using etcd = await RunningEtcd.start({ members: 3 });
    await using cluster = await JoinedCluster.start(etcd);
    await cluster.whole();
    await cluster.makeBucket('load');
    await using load = new RecordedLoad(cluster, 'load', random);
    load.start(6, 20);
    await sleep(systemClock, 3_000);
    await cluster.killMachine(1);
    await degraded(cluster, cluster.nodeOf(1));
    await cluster.startMachine(1);
    await cluster.whole();

    const node = cluster.nodeOf(2);
    await cluster.killMachine(2);
    await cluster.wipeMachine(2);
    await cluster.startMachine(2, '--id', String(node));
    assert.equal(cluster.nodeOf(2), node);
    await cluster.whole();
    await load.stop();
    const verified = await load.verify();
    context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
    assert.deepEqual(load.violations, []);
    assert.ok(load.counts.acknowledged > 100, `only ${load.counts.acknowledged} writes were acknowledged`);
  },
);
