import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mixedSizes } from './object-mix.ts';
import { clusterReport } from './cluster-report.ts';
import { errorOfTimeLeft } from './time-left.ts';
import type { ClusterFigures, Sample } from './cluster-run.ts';
import type { ForegroundFigures } from './foreground.ts';

const MIB = 1_048_576;

test('mixed objects have so many bytes in all, of every size, large and small ones in turn', () => {
  const sizes = mixedSizes(256 * MIB);
  const sum = sizes.reduce((a, b) => a + b, 0);
  assert.ok(Math.abs(sum / (256 * MIB) - 1) < 0.05, `${sum}`);
  assert.deepEqual(
    [...new Set(sizes)].toSorted((a, b) => a - b),
    [4_096, 65_536, MIB, 4 * MIB, 24 * MIB],
  );
  const half = sizes.slice(0, sizes.length / 2).reduce((a, b) => a + b, 0);
  assert.ok(half > 0.3 * sum && half < 0.7 * sum, `the first half has ${half} of ${sum}`);
  assert.deepEqual(mixedSizes(100), [100]);
});

function sampleAt(seconds: number, bytesLeft: number, secondsLeft?: number): Sample {
  return { seconds, bytesLeft, groupsLeft: 1, bytesPerSecond: 1, secondsLeft, pace: '' };
}

test('the time left is judged when a fifth has moved, and not where nothing was told', () => {
  const samples = [sampleAt(1, 100), sampleAt(2, 81, 7), sampleAt(3, 79, 9), sampleAt(4, 50, 50)];
  assert.equal(errorOfTimeLeft(samples, 15), 9 / 12 - 1);
  assert.equal(errorOfTimeLeft([sampleAt(1, 100), sampleAt(2, 50)], 10), undefined);
  assert.equal(errorOfTimeLeft([], 10), undefined);
});

const NO_CLIENTS: ForegroundFigures = {
  seconds: 8,
  reads: 100,
  writes: 30,
  readBytes: 100 * 65_536,
  writtenBytes: 30 * 65_536,
  readP50: 4,
  readP99: 20,
  writeP50: 9,
  writeP99: 40,
  errors: 0,
  firstError: undefined,
};

function figures(over: Partial<ClusterFigures['summary']> = {}): ClusterFigures {
  const topology = { copies: 2 } as ClusterFigures['before'];
  return {
    before: topology,
    after: topology,
    load: { objects: 10, bytes: 100 * MIB, seconds: 3 },
    summary: {
      number: 1,
      command: 'bench rescale --add 4',
      began: '2026-11-30T10:00:00.000Z',
      ended: '2026-11-30T10:00:21.000Z',
      outcome: 'settled',
      seconds: 21,
      pausedSeconds: 0,
      planned: { groups: 9, copies: 9, bytes: 100 * MIB, leastBytes: 98 * MIB },
      moved: { groups: 9, bytes: 101 * MIB },
      bound: { seconds: 20, by: 'receive' },
      plan: { seconds: 20.5, node: 5, by: 'receive' },
      ratios: { move: 101 / 98, place: 20.5 / 20, exec: 21 / 20.5, total: 1.05 },
      ...over,
    },
    samples: [sampleAt(1, 100 * MIB, 20), sampleAt(5, 78 * MIB, 16)],
    quiet: NO_CLIENTS,
    busy: NO_CLIENTS,
    idleShare: 0.5,
    found: {
      before: { nodes: 4, bytes: 200 * MIB, leftovers: 0.02, wastedBytes: 5, fullest: 1.01, faults: [] },
      after: { nodes: 8, bytes: 200 * MIB, leftovers: 0.5, wastedBytes: MIB, fullest: 1.02, faults: [] },
    },
    proof: { objects: 10, copies: 40, bad: 0, problem: undefined },
  };
}

const RUN = { command: 'webdfs bench rescale --cluster x', seed: 1, clock: { now: () => 0 } } as unknown as Parameters<
  typeof clusterReport
>[1];

test('a run that is as it should be passes, and has the figures of the other targets', () => {
  const report = clusterReport(figures(), RUN);
  assert.deepEqual(
    report.checks.filter(({ pass }) => !pass),
    [],
  );
  assert.equal(report.invalid, undefined);
  assert.ok(report.checks.some(({ name, value }) => name.includes('time by the bound') && value === 1.05));
});

test('a slow one, one that sends twice and one that loses an object fail', () => {
  const failing = (report: ReturnType<typeof clusterReport>): string[] =>
    report.checks.filter(({ pass }) => !pass).map(({ name }) => name);
  const slow = clusterReport(figures({ ratios: { move: 1, place: 1, exec: 1.3, total: 1.3 } }), RUN);
  assert.match(failing(slow).join(), /time by the bound/);
  const twice = clusterReport(figures({ moved: { groups: 9, bytes: 120 * MIB } }), RUN);
  assert.match(failing(twice).join(), /sent twice/);
  const { found } = figures();
  const vain = { ...found, after: { ...found.after, wastedBytes: 10 * MIB } };
  assert.match(failing(clusterReport({ ...figures(), found: vain }, RUN)).join(), /sent twice/);
  const lost = clusterReport(
    { ...figures(), proof: { objects: 9, copies: 30, bad: 1, problem: 'load/3: it is listed, but gone' } },
    RUN,
  );
  assert.match(failing(lost).join(), /not good/);
});

test('without a measured rate, and on a machine that did nothing else, the run proves nothing', () => {
  const { bound: _, plan: __, ratios: ___, ...unmeasured } = figures().summary;
  assert.match(clusterReport({ ...figures(), summary: unmeasured }, RUN).invalid ?? '', /no rate/);
  assert.match(clusterReport({ ...figures(), idleShare: 0.1 }, RUN).invalid ?? '', /idled 10 %/);
  const { found } = figures();
  const full = { ...found, before: { ...found.before, leftovers: 0.4 } };
  assert.match(clusterReport({ ...figures(), found: full }, RUN).invalid ?? '', /40 % more than is theirs/);
});
