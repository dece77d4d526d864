import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CopyReport } from './reports.ts';
import { isLate } from './where-report.ts';

const GOOD: CopyReport = { node: 1, role: 'primary', present: true, checksum: 'good', version: 7 };
/** Copies that differ from the first in some point. */
const placeOf = (...copies: Partial<CopyReport>[]): Parameters<typeof isLate>[0] => ({
  what: 'record',
  group: 1,
  members: [],
  primary: 1,
  copies: copies.map((copy) => ({ ...GOOD, ...copy })),
});

test('a member that has not heard of a commit yet is looked at again; what is damaged, unreachable or learning is not', () => {
  const absent = { present: false, checksum: 'unknown' } as const;
  assert.equal(isLate(placeOf({}, { role: 'member', ...absent })), true);
  assert.equal(isLate(placeOf({}, { role: 'member', version: 6 })), true);
  assert.equal(isLate(placeOf({}, { role: 'member' })), false);
  assert.equal(isLate(placeOf({}, { role: 'learner', ...absent })), false);
  assert.equal(isLate(placeOf({}, { role: 'member', ...absent, problem: 'no answer' })), false);
  assert.equal(isLate(placeOf({ checksum: 'bad' }, { role: 'member', version: 6 })), false);
});
