import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@webdfs/base';
import { HDFS_LIKE, leavingOnly, randomHolder, webdfs } from './contestants.ts';
import { faultsOf, measure } from './measurement.ts';
import { benchRescale, type RescaleBenchOptions } from './rescale-bench.ts';
import { DRIVE, DRIVE_INTERLEAVING, MEMORY } from './resources.ts';
import { platformScenario } from './scenario.ts';

const PIECES = 400;
const ONE_LEAVES = platformScenario(20, -1);
const MANY_JOIN = platformScenario(10, 30);

const OPTIONS: RescaleBenchOptions = {
  experiments: ['planning'],
  seed: 1,
  seeds: 1,
  quick: true,
  clock: systemClock,
  command: 'webdfs bench rescale',
  signal: new AbortController().signal,
  onProgress: () => undefined,
};

test('growing to four times as many nodes comes close to the bound, which random sources miss', () => {
  const ours = measure(webdfs(PIECES), MANY_JOIN, { rates: MEMORY.rates, seed: 1 });
  assert.deepEqual(faultsOf(ours), []);
  assert.ok(ours.ratios.total < 1.1, `${ours.ratios.total}`);
  assert.equal(ours.bound.resource, 'send');
  const control = measure(randomHolder(PIECES), MANY_JOIN, { rates: MEMORY.rates, seed: 1 });
  assert.deepEqual(faultsOf(control), []);
  assert.ok(control.ratios.total > 1.5, `${control.ratios.total}`);
});

test('draining only the node that leaves takes nineteen times the bound', () => {
  const { ratios } = measure(leavingOnly(PIECES), ONE_LEAVES, { rates: MEMORY.rates, seed: 1 });
  assert.ok(ratios.total > 18.9 && ratios.total < 19.5, `${ratios.total}`);
});

test('no run beats its bound or its plan', () => {
  for (const contestant of [webdfs(PIECES), randomHolder(PIECES), HDFS_LIKE]) {
    const { ratios } = measure(contestant, ONE_LEAVES, { rates: DRIVE.rates, seed: 2 });
    assert.ok(ratios.exec >= 0.999, `${contestant.name}: ${ratios.exec}`);
    assert.ok(ratios.total >= 0.995, `${contestant.name}: ${ratios.total}`);
  }
});

test('in HDFS’s manner a drive loses most of its time between streams', () => {
  const setup = { rates: DRIVE.rates, seed: 1, interleaving: DRIVE_INTERLEAVING };
  const [hdfs, ours] = [measure(HDFS_LIKE, ONE_LEAVES, setup), measure(webdfs(PIECES), ONE_LEAVES, setup)];
  assert.deepEqual(faultsOf(hdfs), []);
  assert.ok(hdfs.figures.seconds > 2 * ours.figures.seconds);
});

test('the balancer of HDFS moves everything in the end, in rounds', () => {
  const run = measure(HDFS_LIKE, platformScenario(10, 10), { rates: MEMORY.rates, seed: 1 });
  assert.deepEqual(faultsOf(run), []);
  // 25 GB for each new node, 10 GB a round: two pauses of nine seconds at least
  assert.ok(run.figures.seconds > run.bound.seconds + 18);
});

test('the same seed gives the same figures', () => {
  const run = (): unknown => measure(webdfs(PIECES), ONE_LEAVES, { rates: MEMORY.rates, seed: 7 });
  assert.deepEqual(run(), run());
});

test('the report has one cell per column, names the parts, and stops when told to', async () => {
  const report = await benchRescale(OPTIONS);
  assert.deepEqual(
    report.sections.map(({ id }) => id),
    ['planning', 'parts'],
  );
  for (const table of report.sections.flatMap(({ tables }) => tables)) {
    for (const row of table.rows) assert.equal(row.length, table.columns.length, table.id);
  }
  assert.equal(report.sections[1]!.tables[0]!.rows.length, 7);
  const signal = AbortSignal.abort(new Error('enough'));
  await assert.rejects(benchRescale({ ...OPTIONS, signal }), /enough/);
});
