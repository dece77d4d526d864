import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClusterParameters, DEFAULT_PARAMETERS, parametersWith } from './parameters.ts';

test('the defaults keep their own bounds', () => {
  assert.deepEqual(parametersWith(), DEFAULT_PARAMETERS);
});

test('each bound refuses what breaks it', () => {
  const broken: readonly Partial<ClusterParameters>[] = [
    { marginMs: 60 },
    { leaseMs: 1_500 },
    { graceMs: 3_500 },
    { memberMs: 3_000 },
    { retryForMs: 60_000 },
    { complaintMs: 1_000 },
    { windowEntries: 100_000 },
    { inlineBytes: 2 ** 24 },
    { fenceKeepMs: 1_000 },
    { backoffMs: 400_000 },
    { renewMs: 0 },
    { listMs: Number.NaN },
  ];
  for (const replaced of broken) {
    assert.throws(() => parametersWith(replaced), { code: 'BAD_CONFIG' }, JSON.stringify(replaced));
  }
});
