import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RescaleSummary, TopologyReport } from '@webdfs/webdfs';
import { historyText, progressText, statusText, summaryText } from './rescale-text.ts';

const MIB = 1_048_576;

const change: RescaleSummary = {
  number: 3,
  command: 'cluster add --nodes 2',
  began: '2026-11-30T10:00:00.000Z',
  outcome: 'under way',
  seconds: 20,
  pausedSeconds: 0,
  planned: { groups: 100, copies: 120, bytes: 1_000 * MIB, leastBytes: 950 * MIB },
  moved: { groups: 40, bytes: 400 * MIB },
};

const report: TopologyReport = {
  name: 'home',
  epoch: 9,
  groupBits: 12,
  copies: 3,
  minCopies: 2,
  settled: { algorithm: 'wrd', version: 1, seed: 1, copies: 3, subclusters: [] },
  target: { algorithm: 'wrd', version: 1, seed: 1, copies: 3, subclusters: [] },
  out: [],
  revision: 7,
  paused: false,
  outAfterMs: 600_000,
  groups: 4_096,
  atGoal: 4_036,
  isSupervised: true,
  waiting: [],
  moving: {
    groupsLeft: 60,
    bytesLeft: 600 * MIB,
    bytesPerSecond: 30 * MIB,
    nodes: [
      { node: 4, receiveLeft: 600 * MIB, sendLeft: 0, receivePerSecond: 30 * MIB, sendPerSecond: 0, secondsLeft: 20 },
    ],
    change,
  },
};

test('while nothing is measured that is said, and no bound is made up', () => {
  assert.equal(
    progressText(report),
    '40 %, 400.0 MiB of 1000.0 MiB, 60 of 4096 groups left, 30.0 MiB/s, time left: measuring; bound: measuring',
  );
});

test('the node and the resource that set the pace are named, and the bound beside the plan', () => {
  const measured = {
    ...change,
    bound: { seconds: 31.5, by: 'receive' },
    plan: { seconds: 33, node: 4, by: 'receive' },
  };
  const moving = {
    ...report.moving!,
    secondsLeft: 20.4,
    pace: { node: 4, resource: 'receive' },
    change: measured,
  };
  const text = statusText({ ...report, moving });
  assert.match(text, /20 s left \(receive of node 4\); bound 31\.5 s \(receive\), plan 33\.0 s \(receive of node 4\)/);
  assert.match(text, /^cluster add --nodes 2, since 2026-11-30T10:00:00\.000Z/);
  assert.match(text, /600\.0 MiB +30\.0 MiB\/s +0 B +0 B\/s +20\.0 s/);
});

test('a change that stands still says so, and one that is done too', () => {
  assert.match(
    progressText({ ...report, paused: true }),
    /60 of 4096 groups left; paused: "webdfs cluster rescale resume"/,
  );
  assert.match(progressText({ ...report, atGoal: 4_096 }), /about to settle/);
  const { target: _, moving: __, ...settled } = report;
  assert.equal(progressText({ ...settled, atGoal: 4_096 }), 'every group is where it should be');
});

test('the history has a line for each change, and says - for what nobody measured', () => {
  const done: RescaleSummary = {
    ...change,
    ended: '2026-11-30T10:00:40.000Z',
    outcome: 'settled',
    seconds: 40,
    moved: { groups: 100, bytes: 990 * MIB },
    bound: { seconds: 31.5, by: 'receive' },
    plan: { seconds: 33, node: 4, by: 'receive' },
    ratios: { move: 990 / 950, place: 33 / 31.5, exec: 40 / 33, total: 40 / 31.5 },
  };
  const aborted: RescaleSummary = { ...change, number: 2, outcome: 'aborted', planned: { groups: 100, copies: 120 } };
  const lines = historyText({ rescales: [done, aborted] }).split('\n');
  assert.match(
    lines[1]!,
    /3 +2026-11-30 10:00:00 +cluster add --nodes 2 +settled +100\/100 .* 1\.04 +1\.05 +1\.21 +1\.27$/,
  );
  assert.match(lines[2]!, /2 .* aborted +40\/100 +400\.0 MiB +- .* - +- +- +-$/);
  assert.match(summaryText(done), /990\.0 MiB of 1000\.0 MiB planned moved in 100 groups, 40\.0 s; bound 31\.5 s/);
  assert.match(summaryText(done), /time by bound 1\.27/);
  assert.match(historyText({ rescales: [] }), /one shape since it was made/);
});
