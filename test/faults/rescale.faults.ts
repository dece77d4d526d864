import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { RecordedLoad } from '../support/recorded-load.ts';
import type { RescaleSummary } from '@webdfs/webdfs';
import { RunningCluster } from '../support/running-cluster.ts';

/** Clusters that grow and shrink under load; clients that leave the machine time to move groups. */
const PAUSE_MS = 100;

async function must(cluster: RunningCluster, ...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.webdfs(...words);
  assert.equal(code, 0, `${words.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

/** Nodes that hold a share of the groups, by weight. */
async function weights(cluster: RunningCluster): Promise<Record<number, number>> {
  using client = cluster.client(1);
  const { body } = await client.call({ method: 'GET', bucket: '-', key: 'topology' });
  const { settled } = JSON.parse(body) as {
    settled: { subclusters: { nodes: { id: number; weight: number }[] }[] };
  };
  return Object.fromEntries(settled.subclusters.flatMap(({ nodes }) => nodes.map(({ id, weight }) => [id, weight])));
}

test('a cluster grows, is changed midway, drained and shrunk under load; a node dies while groups move', async (context) => {
  const random = new SeededRandom(seedOf(context));
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'load' } });
  const load = new RecordedLoad(cluster, 'load', random);
  await cluster.whole();
  load.start(4, 100, PAUSE_MS);
  await sleep(systemClock, 3_000);

  await must(cluster, 'cluster', 'add', '--nodes', '2', '--yes');
  await sleep(systemClock, 500);
  await must(cluster, 'cluster', 'rescale', 'pause');
  const { nodes } = await cluster.status();
  process.kill(nodes[random.below(3)]!.pid!, 'SIGKILL');
  await must(cluster, 'cluster', 'rescale', 'resume');
  // another target while the first is not reached
  await must(cluster, 'cluster', 'reweight', '5', '2', '--yes', '--watch');
  assert.deepEqual(await weights(cluster), { 1: 65_536, 2: 65_536, 3: 65_536, 4: 65_536, 5: 131_072 });

  const said = await must(cluster, 'cluster', 'drain', '2', '--yes', '--watch');
  assert.match(said, /safe to remove/);
  assert.equal((await weights(cluster))[2], 0);
  await must(cluster, 'cluster', 'remove', '2,4', '--yes', '--watch');
  await cluster.whole();
  assert.deepEqual(Object.keys(await weights(cluster)), ['1', '3', '5']);
  // a node died, which may have been the controller, and every change has an account that says how it ended
  const told = (await must(cluster, 'rescale', 'history', '--json')).trim().split('\n');
  const history = told.map((line) => JSON.parse(line) as RescaleSummary);
  assert.deepEqual(
    history.map(({ command, outcome }) => [command, outcome]),
    [
      ['cluster remove 2,4', 'settled'],
      ['cluster drain 2', 'settled'],
      ['cluster reweight 5 2', 'settled'],
      ['cluster add --nodes 2', 'replaced'],
    ],
  );
  await load.stop();
  const verified = await load.verify();
  context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
  assert.deepEqual(load.violations, []);
  assert.equal(verified.copies % 3, 0);
});

test('a change that is given up leaves every group where it was', async (context) => {
  const random = new SeededRandom(seedOf(context));
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'load' } });
  const load = new RecordedLoad(cluster, 'load', random);
  await cluster.whole();
  load.start(4, 100, PAUSE_MS);
  await must(cluster, 'cluster', 'add', '--nodes', '1', '--yes');
  await must(cluster, 'cluster', 'rescale', 'abort');
  await must(cluster, 'cluster', 'rescale', 'watch');
  await cluster.whole();
  assert.deepEqual(Object.keys(await weights(cluster)), ['1', '2', '3']);
  await load.stop();
  await load.verify();
  assert.deepEqual(load.violations, []);
});
