import assert from 'node:assert/strict';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { SeededRandom, sleep, systemClock } from '@webdfs/base';
import { seedOf } from '@webdfs/base/testing';
import { RecordedLoad } from '../support/recorded-load.ts';
import { FLAGS, MAIN, runProgram, RunningCluster } from '../support/running-cluster.ts';
import { isRunning } from '../support/is-running.ts';

/** The map store is lost, alone or with a disk: the nodes' folders give it back, and everything acknowledged is there. */

const LOAD_MS = 3_000;

async function rescue(data: string, ...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return await runProgram(process.execPath, [...FLAGS, MAIN, 'cluster', 'rescue', '--json', '--data', data, ...words]);
}

/** Whatever target a load has now. */
class Present {
  cluster!: RunningCluster;
  client(connections?: number): ReturnType<RunningCluster['client']> {
    return this.cluster.client(connections);
  }
}

test('the map store is lost under a load: it is made again from the nodes, and nothing acknowledged is missing', async (context) => {
  const random = new SeededRandom(seedOf(context));
  const present = new Present();
  await using first = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'load' } });
  present.cluster = first;
  await first.whole();
  const { data, port } = first;
  await using load = new RecordedLoad(present, 'load', random);
  load.start(6, 60);
  await sleep(systemClock, LOAD_MS);
  await first.killSupervisor();
  await load.stop();
  const running = first.ready.nodes.map(({ pid }) => pid);
  while (running.some(isRunning)) await sleep(systemClock, 100);

  await rm(join(data, 'map'), { recursive: true });
  const { code, stdout, stderr } = await rescue(data);
  assert.equal(code, 0, stderr);
  const report = JSON.parse(stdout) as { era: number; nodes: number; overtaken: number; mayLose: boolean };
  assert.deepEqual([report.era, report.nodes, report.mayLose], [1, 3, false]);
  // what is there is not rescued once more
  await using second = await RunningCluster.start({ data, port });
  present.cluster = second;
  await second.whole();
  const again = await rescue(data);
  assert.notEqual(again.code, 0, 'a running cluster needs no rescue');
  load.start(6, 60);
  await sleep(systemClock, LOAD_MS);
  await load.stop();
  const verified = await load.verify();
  context.diagnostic(JSON.stringify({ ...report, ...load.counts, ...verified }));
  assert.ok(verified.present > 10);
  assert.deepEqual(load.violations, []);
});

test('map store and one disk are lost: the loss must be said, and the other two give everything back', async (context) => {
  const random = new SeededRandom(seedOf(context));
  const present = new Present();
  await using first = await RunningCluster.start({ environment: { WEBDFS_BUCKETS: 'load' } });
  present.cluster = first;
  await first.whole();
  const { data, port } = first;
  await using load = new RecordedLoad(present, 'load', random);
  load.start(6, 60);
  await sleep(systemClock, LOAD_MS);
  await load.stop();
  await first.stop();
  await rm(join(data, 'map'), { recursive: true });
  await rename(join(data, 'node-2'), join(data, 'lost'));

  const unsaid = await rescue(data);
  assert.notEqual(unsaid.code, 0);
  assert.match(unsaid.stderr, /--without 2/);
  const { code, stdout, stderr } = await rescue(data, '--without', '2');
  assert.equal(code, 0, stderr);
  assert.deepEqual((JSON.parse(stdout) as { missing: number[] }).missing, [2]);
  await rm(join(data, 'lost'), { recursive: true });
  await using second = await RunningCluster.start({ data, port });
  present.cluster = second;
  await second.whole();
  const verified = await load.verify();
  context.diagnostic(JSON.stringify({ ...load.counts, ...verified }));
  assert.ok(verified.present > 10);
  assert.deepEqual(load.violations, []);
});
