import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageError } from './command.ts';
import { durationOf } from './duration.ts';

test('a duration is a number and its unit', () => {
  const known = { '250ms': 250, '90s': 90_000, '10m': 600_000, '1.5h': 5_400_000, '2d': 172_800_000 };
  for (const [word, ms] of Object.entries(known)) assert.equal(durationOf(word), ms);
  for (const word of ['', '10', 'm', '-1s', '1e3s', '10 m', '5 minutes', 'never']) {
    assert.throws(() => durationOf(word), UsageError, word);
  }
});
