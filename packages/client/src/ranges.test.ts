import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { seedOf } from '@webdfs/base/testing';
import { resolveRange } from './ranges.ts';

const inline = { type: 'inline' } as const;

test('a range gives the bytes that exist of those it names, or is refused', (t) => {
  fc.assert(
    fc.property(fc.nat(20), fc.nat(25), fc.option(fc.nat(30), { nil: undefined }), (size, first, last) => {
      const wanted = Array.from({ length: size }, (_, i) => i).slice(first, last === undefined ? size : last + 1);
      const range = { type: 'from', first, ...(last !== undefined && { last }) } as const;
      if (wanted.length === 0) {
        assert.throws(() => resolveRange(range, size, inline), { code: 'RANGE_NOT_SATISFIABLE', details: { size } });
      } else assert.deepEqual(resolveRange(range, size, inline), { offset: first, length: wanted.length });
    }),
    { seed: seedOf(t), numRuns: 500 },
  );
});

test('a suffix gives the last bytes, all of them if there are fewer', () => {
  assert.deepEqual(resolveRange({ type: 'suffix', count: 3 }, 10, inline), { offset: 7, length: 3 });
  assert.deepEqual(resolveRange({ type: 'suffix', count: 30 }, 10, inline), { offset: 0, length: 10 });
  assert.throws(() => resolveRange({ type: 'suffix', count: 0 }, 10, inline), { code: 'RANGE_NOT_SATISFIABLE' });
  assert.throws(() => resolveRange({ type: 'suffix', count: 1 }, 0, inline), { code: 'RANGE_NOT_SATISFIABLE' });
});

test('without a range it is the whole, even of nothing', () => {
  assert.deepEqual(resolveRange(undefined, 0, inline), { offset: 0, length: 0 });
});

test('a whole object has one part', () => {
  assert.deepEqual(resolveRange({ type: 'part', number: 1 }, 9, inline), { offset: 0, length: 9 });
  assert.throws(() => resolveRange({ type: 'part', number: 2 }, 9, inline), { code: 'RANGE_NOT_SATISFIABLE' });
});

test('numbers that are none are refused', () => {
  for (const first of [-1, 1.5, Number.NaN, 2 ** 60]) {
    assert.throws(() => resolveRange({ type: 'from', first }, 9, inline), { code: 'INVALID' });
  }
});
