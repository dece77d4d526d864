import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '@webdfs/base';
import { environmentOf } from '../report/report.ts';
import { checksOf } from './object-bench.ts';
import { objectReport, type ObjectRow } from './object-report.ts';

function row(target: string, cpuMs: number, connections = 8): ObjectRow {
  return {
    target,
    operation: 'PUT',
    size: 4096,
    connections,
    operationsPerSecond: 1,
    megabytesPerSecond: 1,
    p50: 1,
    p95: 1,
    p99: 1,
    cpuMs,
    errors: 0,
    firstError: undefined,
  };
}

test('a gate compares with radosgw in the same run, at equal connections', () => {
  const [check] = checksOf([row('webdfs', 0.5), row('radosgw', 10), row('radosgw', 1, 32)], 'webdfs', 'radosgw');
  assert.equal(check?.value, 0.05);
  assert.equal(check?.pass, true);
  const [missed] = checksOf([row('webdfs', 2), row('radosgw', 10)], 'webdfs', 'radosgw');
  assert.equal(missed?.pass, false);
});

test('without radosgw there is nothing to pass', () => {
  assert.deepEqual(checksOf([row('webdfs', 0.5), row('swift', 10)], 'webdfs', 'radosgw'), []);
});

test('a report with an error anywhere is not valid', () => {
  const environment = environmentOf({ command: 'webdfs bench object', clock: new ManualClock() });
  assert.equal(objectReport([row('webdfs', 1)], [], environment).invalid, undefined);
  const faulty = { ...row('webdfs', 1), errors: 1, firstError: 'gone' };
  assert.match(objectReport([row('webdfs', 1), faulty], [], environment).invalid!, /1 of 2 measurements/);
});

test('charts compare the stores at the fewest connections; a store without CPU figures has no bar', () => {
  const environment = environmentOf({ command: 'webdfs bench object', clock: new ManualClock() });
  const rows = [row('webdfs', 1), row('webdfs', 5, 32), { ...row('swift', 2), cpuMs: undefined }];
  const [cpu, rate] = objectReport(rows, [], environment).sections[0]!.charts;
  assert.deepEqual(
    cpu!.series.map(({ name, points }) => [name, points.length]),
    [
      ['webdfs', 1],
      ['swift', 0],
    ],
  );
  assert.match(rate!.title, /at 8 connections/);
});
