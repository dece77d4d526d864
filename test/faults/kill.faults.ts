import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedOf } from '@webdfs/base/testing';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { RecordedLoad } from '../support/recorded-load.ts';
import { RunningCluster } from '../support/running-cluster.ts';

/** `WEBDFS_LONG=1` runs it as long as the promise says: 20 single kills, then all nodes at once, twice. */
const LONG = process.env['WEBDFS_LONG'] === '1';
const KILLS = LONG ? 20 : 4;
const KILLS_OF_ALL = LONG ? 2 : 1;
const DETECTED_MS = 5_000;

function kill(pid: number | undefined): void {
  assert.ok(pid !== undefined, 'the node has a process');
  process.kill(pid, 'SIGKILL');
}

for (const placement of LONG ? ['wrd', 'rush-r'] : ['wrd']) {
  test(`nodes killed under load by ${placement}: nothing acknowledged is lost, nothing wrong is read`, async (context) => {
    const random = new SeededRandom(seedOf(context));
    await using cluster = await RunningCluster.start({
      arguments: ['--placement', placement],
      environment: { WEBDFS_BUCKETS: 'load' },
    });
    const load = new RecordedLoad(cluster, 'load', random);
    load.start(8, 320);
    for (let round = 0; round < KILLS; round++) {
      const before = await cluster.whole();
      await sleep(systemClock, 1_000 + random.below(3_000));
      kill(before.nodes[random.below(before.nodes.length)]!.pid);
    }
    for (let round = 0; round < KILLS_OF_ALL; round++) {
      const { nodes } = await cluster.whole();
      await sleep(systemClock, 2_000);
      for (const node of nodes) kill(node.pid);
    }
    await cluster.whole();
    await load.stop();
    await cluster.whole();
    const verified = await load.verify();
    context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
    assert.deepEqual(load.violations, []);
    assert.ok(load.counts.acknowledged > 200, `only ${load.counts.acknowledged} writes were acknowledged`);
    assert.equal(verified.copies % 3, 0);
  });
}

test('a killed node is seen as down, or back, within five seconds, and writes go on without it', async () => {
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'bucket' } });
  const before = await cluster.whole();
  const victim = before.nodes[2]!;
  kill(victim.pid);
  const until = performance.now() + DETECTED_MS;
  let seen = false;
  while (!seen && performance.now() < until) {
    const status = await cluster.status().catch(() => undefined);
    const node = status?.nodes.find(({ id }) => id === victim.id);
    seen = node !== undefined && (node.state === 'down' || node.pid !== victim.pid);
  }
  assert.ok(seen, 'the death was not noticed');
  const { code, stderr } = await cluster.webdfs('put', new URL(import.meta.url).pathname, 's3://bucket/while-down');
  assert.equal(code, 0, stderr);
  await cluster.whole();
  const where = await cluster.webdfs('where', 's3://bucket/while-down', '--json');
  assert.equal(where.code, 0, where.stdout);
});

test('after the supervisor was killed too, the next start goes on with everything that was acknowledged', async () => {
  const first = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'bucket' } });
  const put = await first.webdfs('put', new URL(import.meta.url).pathname, 's3://bucket/kept');
  assert.equal(put.code, 0, put.stderr);
  await first.killSupervisor();
  await using second = await RunningCluster.start({ data: first.data, port: first.port });
  await second.whole();
  assert.equal(second.ready.accessKeyId, first.ready.accessKeyId);
  const where = await second.webdfs('where', 's3://bucket/kept', '--json');
  assert.equal(where.code, 0, where.stdout + where.stderr);
});
