import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep, systemClock } from '@webdfs/base';
import { etcdMissing, RunningEtcd } from '@webdfs/cluster/testing';
import type { GroupsReport } from '@webdfs/webdfs';
import { JoinedCluster } from '../support/joined-cluster.ts';

/** The last copy that held everything is gone: nothing is served from an older one until an operator says so. */

const SOURCE = new URL(import.meta.url).pathname;

test(
  'a group whose last whole copy is lost waits, names the older ones, and goes on from one when it is forced',
  {
    skip: etcdMissing(),
  },
  async (context) => {
    await using etcd = await RunningEtcd.start();
    await using cluster = await JoinedCluster.start(etcd, { nodes: 2, replicas: 2 });
    await cluster.whole();
    await cluster.makeBucket('bucket');
    const put = async (machine: number, key: string): Promise<void> => {
      const { code, stderr } = await cluster.webdfs(machine, 'put', SOURCE, `s3://bucket/${key}`);
      assert.equal(code, 0, stderr);
    };
    await put(0, 'before');
    await cluster.stopMachine(0);
    // with two copies one may go on alone, and is then the only one that holds everything
    await putWhenAlone(cluster, 'after');
    await cluster.stopMachine(1);
    const node = cluster.nodeOf(1);
    await cluster.wipeMachine(1);
    await cluster.startMachine(0);
    await cluster.startMachine(1, '--id', String(node));

    const groups = async (...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
      await cluster.webdfs(0, 'group', ...words, '--json');
    const seen = JSON.parse((await groups('candidates')).stdout) as GroupsReport;
    assert.ok(seen.stuck > 0);
    assert.ok(seen.groups.every(({ health }) => health === 'lost'));
    assert.notEqual((await cluster.webdfs(0, 'get', 's3://bucket/before', '-')).code, 0, 'nothing is served meanwhile');

    const old = String(cluster.nodeOf(0));
    const withoutWord = await groups('force', '--group', 'all', '--from', old);
    assert.notEqual(withoutWord.code, 0, 'the loss must be accepted');
    const forced = await groups('force', '--group', 'all', '--from', old, '--accept-loss', '--reason', 'a test');
    assert.equal(forced.code, 0, forced.stderr);
    const report = JSON.parse(forced.stdout) as GroupsReport;
    // groups of which there is nothing anywhere were never written: any node may go on with them
    const empty = report.groups.filter(({ candidates }) => candidates.length === 0);
    context.diagnostic(
      JSON.stringify({ stuck: seen.stuck, forced: report.forced, left: report.stuck, empty: empty.length }),
    );
    assert.equal(report.stuck, 0);
    await cluster.whole();
    assert.equal((await cluster.webdfs(1, 'stat', 's3://bucket/before')).code, 0);
    assert.notEqual((await cluster.webdfs(1, 'stat', 's3://bucket/after')).code, 0);
    await put(1, 'again');
  },
);

async function putWhenAlone(cluster: JoinedCluster, key: string): Promise<void> {
  const until = performance.now() + 60_000;
  while ((await cluster.webdfs(1, 'put', SOURCE, `s3://bucket/${key}`)).code !== 0) {
    assert.ok(performance.now() < until, 'one of two goes on alone');
    await sleep(systemClock, 200);
  }
}
