import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { etcdMissing, RunningEtcd } from '@webdfs/cluster/testing';
import { JoinedCluster } from '../support/joined-cluster.ts';
import { RecordedLoad } from '../support/recorded-load.ts';

/** Waits until all groups have their copies although a node is down; its share is with the others then. */
async function wholeWithout(cluster: JoinedCluster, node: number): Promise<void> {
  for (;;) {
    const { nodes, groups } = await cluster.status();
    assert.notEqual(nodes.find(({ id }) => id === node)?.state, 'up');
    if (groups.whole === groups.total && groups.withoutPrimary === 0) return;
    await sleep(systemClock, 250);
  }
}

test(
  'a machine that is lost for good is written off: its copies are made anew elsewhere, and go back when it returns',
  { skip: etcdMissing() },
  async (context) => {
    const random = new SeededRandom(seedOf(context));
    await using etcd = await RunningEtcd.start({ members: 1 });
    await using cluster = await JoinedCluster.start(etcd, { nodes: 4, replicas: 3 });
    await cluster.whole();
    await cluster.makeBucket('load');
    const must = async (...words: string[]): Promise<string> => {
      const { code, stdout, stderr } = await cluster.webdfs(0, ...words);
      assert.equal(code, 0, `${words.join(' ')}: ${stdout}${stderr}`);
      return stdout;
    };
    // while it is "never" a dead machine keeps its share, as for a repair of an hour
    await must('cluster', 'out-after', 'never');
    await using load = new RecordedLoad(cluster, 'load', random);
    load.start(4, 50, 50);
    const lost = cluster.nodeOf(1);
    await cluster.killMachine(1);
    await sleep(systemClock, 8_000);
    const { groups } = await cluster.status();
    assert.ok(groups.degraded > groups.total / 2, JSON.stringify(groups));

    await must('cluster', 'out-after', '1s');
    await wholeWithout(cluster, lost);
    await load.stop();
    await must('verify');
    await cluster.startMachine(1);
    await cluster.whole();
    assert.equal(cluster.nodeOf(1), lost);
    await must('cluster', 'rescale', 'watch');
    const verified = await load.verify();
    context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
    assert.deepEqual(load.violations, []);
    assert.equal(verified.copies % 3, 0);
  },
);
