import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { RecordedLoad } from '../support/recorded-load.ts';
import { RunningCluster } from '../support/running-cluster.ts';

/** `WEBDFS_LONG=1` runs more rounds. */
const LONG = process.env['WEBDFS_LONG'] === '1';
const HANGS = LONG ? 10 : 2;
/** Long enough to be marked, and shorter than the supervisor waits until it kills. */
const HANG_MS = 6_000;
const FLAPS = LONG ? 20 : 5;

async function stopped(pid: number, forMs: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  try {
    await sleep(systemClock, forMs);
  } finally {
    try {
      process.kill(pid, 'SIGCONT');
    } catch {
      // its supervisor has killed it
    }
  }
}

test('a node that hangs and wakes up again serves nothing stale, and loses nothing', async (context) => {
  const random = new SeededRandom(seedOf(context));
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'load' } });
  const load = new RecordedLoad(cluster, 'load', random);
  await cluster.whole();
  load.start(8, 100);
  for (let round = 0; round < HANGS; round++) {
    const { nodes } = await cluster.whole();
    await stopped(nodes[random.below(nodes.length)]!.pid!, HANG_MS);
  }
  await cluster.whole();
  await load.stop();
  const verified = await load.verify();
  context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
  assert.deepEqual(load.violations, []);
  assert.ok(load.counts.acknowledged > 100, `only ${load.counts.acknowledged} writes were acknowledged`);
});

test('a node that comes and goes every other second does no harm', async (context) => {
  const random = new SeededRandom(seedOf(context));
  await using cluster = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'load' } });
  const load = new RecordedLoad(cluster, 'load', random);
  const { nodes } = await cluster.whole();
  const victim = nodes[random.below(nodes.length)]!;
  load.start(8, 100);
  for (let round = 0; round < FLAPS; round++) {
    await stopped(victim.pid!, 1_000 + random.below(2_000));
    await sleep(systemClock, 500 + random.below(1_500));
  }
  await load.stop();
  await cluster.whole();
  const verified = await load.verify();
  context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
  assert.deepEqual(load.violations, []);
});
