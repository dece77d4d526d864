import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTable } from './terminal.ts';

test('numbers stand to the right, words to the left, however short', () => {
  const table = formatTable(
    ['node', 'state', 'pid', 'bytes', ''],
    [
      ['1', 'up', '-', '1.5 MiB', 'catching up'],
      ['12', 'up', '4711', '20 B', ''],
    ],
  );
  assert.deepEqual(table.split('\n'), [
    'node  state   pid    bytes',
    '   1  up        -  1.5 MiB  catching up',
    '  12  up     4711     20 B',
  ]);
});
