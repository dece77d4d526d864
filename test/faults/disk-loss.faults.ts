import assert from 'node:assert/strict';
import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { RecordedLoad } from '../support/recorded-load.ts';
import { RunningCluster } from '../support/running-cluster.ts';

const WRITES = 150;

async function loadSome(load: RecordedLoad): Promise<void> {
  const until = load.counts.acknowledged + WRITES;
  load.start(8, 100);
  while (load.counts.acknowledged < until) await sleep(systemClock, 50);
  await load.stop();
}

test('a node whose disk was replaced by an empty one learns everything again', async (context) => {
  const random = new SeededRandom(seedOf(context));
  await using first = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'load' } });
  let present = first;
  const load = new RecordedLoad({ client: (count) => present.client(count) }, 'load', random);
  await loadSome(load);
  await first.stop();
  await rm(first.ready.nodes[1]!.data, { recursive: true });
  await using second = await RunningCluster.start({ data: first.data, port: first.port });
  present = second;
  await second.whole();
  const verified = await load.verify();
  context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
  assert.deepEqual(load.violations, []);
  assert.equal(verified.copies % 3, 0);
});

test('a node that starts from an old copy of its disk takes no part until it has learned what it missed', async (context) => {
  const random = new SeededRandom(seedOf(context));
  await using first = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'load' } });
  let present = first;
  const load = new RecordedLoad({ client: (count) => present.client(count) }, 'load', random);
  await loadSome(load);
  await first.stop();
  const disk = first.ready.nodes[random.below(3)]!.data;
  const copy = join(first.data, 'old-copy');
  await cp(disk, copy, { recursive: true });

  // the same keys again: what the copy holds is stale
  await using second = await RunningCluster.start({ data: first.data, port: first.port });
  present = second;
  await loadSome(load);
  await second.stop();
  await rm(disk, { recursive: true });
  await rename(copy, disk);

  await using third = await RunningCluster.start({ data: first.data, port: first.port });
  present = third;
  await third.whole();
  const verified = await load.verify();
  context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
  assert.deepEqual(load.violations, []);
  assert.equal(verified.copies % 3, 0);
});
