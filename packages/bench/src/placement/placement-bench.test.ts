import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@webdfs/base';
import { subclustersOf } from './layout.ts';
import { benchPlacement, type PlacementBenchOptions } from './placement-bench.ts';
import { exitCodeOfReport, type Report, type ReportTable } from '../report/report.ts';

const OPTIONS: PlacementBenchOptions = {
  algorithms: ['wrd', 'rush-r-shuffle', 'original-rush-r'],
  experiments: ['original', 'founding'],
  seed: 3,
  seeds: 1,
  quick: true,
  clock: systemClock,
  command: 'webdfs bench placement',
  signal: new AbortController().signal,
  onProgress: () => undefined,
};

function tableOf(report: Report, section: string, table: string): ReportTable {
  return report.sections.find(({ id }) => id === section)!.tables.find(({ id }) => id === table)!;
}

const report = await benchPlacement(OPTIONS);

test('the published figures of RUSH_R are reproduced, those of RUSH_P within noise', () => {
  const verdicts = (table: string): unknown[] => tableOf(report, 'original', table).rows.map((row) => row.at(-1));
  assert.deepEqual(new Set(verdicts('rush-r')), new Set(['reproduced']));
  assert.deepEqual(new Set(verdicts('rush-p')), new Set(['within noise']));
});

test('a published figure that differs says why', () => {
  const [row] = tableOf(report, 'original', 'totals').rows.filter(([figure]) => String(figure).endsWith('text'));
  assert.equal(row!.at(-1), 'differs, because of two digits: its own graph adds up to 27 493');
  assert.match(report.summary.join(' '), /comparisons with what WebDFS published/);
});

test('what the original moved stands in the founding set-up beside what today moves', () => {
  const moved = tableOf(report, 'founding-reorganisation', 'moved');
  const column = moved.columns.findIndex(({ title }) => title === 'original-rush-r');
  const drain = moved.rows.find(([change]) => change === 'first sub-cluster to weight 0')!;
  assert.equal(drain[column], 5581);
});

test('the same seed gives the same report but for its start', async () => {
  const cluster = { name: 'mine.json', subclusters: subclustersOf([1, 2], 4), copies: 2, groupCount: 1024 };
  const own: PlacementBenchOptions = {
    ...OPTIONS,
    algorithms: ['wrd', 'ring'],
    experiments: ['groups'],
    topology: cluster,
  };
  assert.deepEqual((await benchPlacement(own)).sections, (await benchPlacement(own)).sections);
});

test('tables and charts have one cell or series for each contestant, and ids are unique', () => {
  for (const section of report.sections) {
    const ids = [...section.tables, ...section.charts.map(({ id }) => ({ id: `chart ${id}` }))].map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, section.id);
    for (const table of section.tables) {
      for (const row of table.rows) assert.equal(row.length, table.columns.length, `${section.id} ${table.id}`);
    }
  }
});

test('a cluster of one’s own goes through the experiments, without the racks that are built in', async () => {
  const cluster = {
    name: 'mine.json',
    subclusters: subclustersOf([1, 2], 4),
    copies: 2,
    groupCount: 1024,
    domain: 'rack',
  } as const;
  const own = await benchPlacement({ ...OPTIONS, experiments: ['lookup', 'groups'], topology: cluster });
  assert.deepEqual(
    own.sections.map(({ id }) => id),
    ['topology-distribution', 'topology-failure', 'topology-reorganisation', 'lookup', 'groups'],
  );
  assert.ok(own.sections.every(({ tables }) => tables.every(({ rows }) => rows.length > 0)));
  assert.equal(exitCodeOfReport(own), 0);
});

test('a built-in set-up that none of the chosen can place is told of, and the rest goes on', async () => {
  const run = await benchPlacement({ ...OPTIONS, algorithms: ['original-rush-r'], experiments: ['racks', 'groups'] });
  assert.deepEqual(
    run.sections.map(({ prose }) => prose),
    [['no placement can place Racks.', 'original-rush-r: does not know racks']],
  );
});

test('a run in which nobody can place the cluster says why', async () => {
  const cluster = { name: 'narrow.json', subclusters: subclustersOf([1, 1], 2), copies: 3, groupCount: 1024 };
  await assert.rejects(benchPlacement({ ...OPTIONS, algorithms: ['rush-t'], topology: cluster }), {
    code: 'INVALID',
    message: /narrow\.json: rush-t: rush-t needs at least 3 nodes/,
  });
});

test('a run ends when it is told to, between two pieces of work', async () => {
  const stop = new AbortController();
  const told: string[] = [];
  const onProgress = (what: string): void => {
    told.push(what);
    if (told.length === 2) stop.abort(new Error('enough'));
  };
  await assert.rejects(benchPlacement({ ...OPTIONS, signal: stop.signal, onProgress }), /enough/);
  assert.deepEqual(told, ['The founding set-up: wrd', 'The founding set-up: rush-r-shuffle']);
});
