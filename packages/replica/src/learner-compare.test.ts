import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seedOf } from '@webdfs/base/testing';
import * as fc from 'fast-check';
import { compareHeld, pairs, RowRun } from './learner-compare.ts';

const record = (sequence: number): { sequence: number; tombstone: boolean } => ({ sequence, tombstone: false });
const tombstone = (sequence: number): { sequence: number; tombstone: boolean } => ({ sequence, tombstone: true });

test('what the primary has and the learner lacks is fetched, or buried where the primary has its tombstone', () => {
  assert.equal(compareHeld(record(5), undefined, 9), 'fetch');
  assert.equal(compareHeld(record(5), record(4), 9), 'fetch');
  assert.equal(compareHeld(record(5), tombstone(4), 9), 'fetch');
  assert.equal(compareHeld(tombstone(5), record(4), 9), 'bury');
  assert.equal(compareHeld(tombstone(5), undefined, 9), 'bury');
});

test('a key that the page lacks is removed, unless it is newer than the page', () => {
  assert.equal(compareHeld(undefined, record(9), 9), 'remove');
  assert.equal(compareHeld(undefined, record(10), 9), 'leave');
  assert.equal(compareHeld(undefined, tombstone(3), 9), 'same');
});

test('what came by the stream after the page was made is left alone, record or tombstone', () => {
  assert.equal(compareHeld(record(5), record(10), 9), 'leave');
  assert.equal(compareHeld(record(5), tombstone(10), 9), 'leave');
});

test('a version that the primary never committed shows another history', () => {
  assert.equal(compareHeld(record(5), record(7), 9), 'diverged');
  assert.equal(compareHeld(record(5), tombstone(5), 9), 'diverged');
  assert.equal(compareHeld(record(5), record(5), 9), 'same');
});

/** A side of the comparison: a number is a key. */
function runOf(keys: readonly number[], pageRows: number): RowRun<number, number> {
  return new RowRun(async (after) => {
    const first = after === undefined ? 0 : keys.findIndex((key) => key > after);
    const rows = first < 0 ? [] : keys.slice(first, first + pageRows);
    const isLast = first < 0 || first + pageRows >= keys.length;
    return { rows, next: isLast ? undefined : rows.at(-1) };
  });
}

test('pages of any size on either side pair every key once, with its like if there is one', async (t) => {
  const keys = fc.uniqueArray(fc.nat({ max: 60 })).map((some) => some.toSorted((a, b) => a - b));
  const size = fc.integer({ min: 1, max: 7 });
  const property = fc.asyncProperty(keys, keys, size, size, async (theirs, ours, pageRows, ownRows) => {
    const own = runOf(ours, ownRows);
    const found: string[] = [];
    for (let at = 0; at === 0 || at < theirs.length; at += pageRows) {
      const page = { rows: theirs.slice(at, at + pageRows), isLast: at + pageRows >= theirs.length };
      for await (const pair of pairs(page, own, (a, b) => a - b))
        found.push(`${pair.theirs ?? '-'} ${pair.ours ?? '-'}`);
    }
    const all = [...new Set([...theirs, ...ours])].toSorted((a, b) => a - b);
    const expected = all.map((key) => `${theirs.includes(key) ? key : '-'} ${ours.includes(key) ? key : '-'}`);
    assert.deepEqual(found, expected);
  });
  await fc.assert(property, { seed: seedOf(t) });
});
