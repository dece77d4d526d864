import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checksOf, type ObjectRow } from './object-bench.ts';

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
