import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runInThisContext } from 'node:vm';
import { openKernel, ReedSolomon } from './index.ts';

test('the five lines of the readme do what they say', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const lines = /```ts\n([^`]*)```/.exec(readme)![1]!;
  assert.equal(lines.trim().split('\n').length, 5);
  const data = [1, 2, 3, 4].map((byte) => new Uint8Array(100).fill(byte));
  const parity = [new Uint8Array(100), new Uint8Array(100)];
  const delta = new Uint8Array(100).fill(2 ^ 9);
  const program = `(openKernel, ReedSolomon, data, parity, delta) => { ${lines}; return { whole, code }; }`;
  const run = runInThisContext(program);
  const { whole, code } = run(openKernel, ReedSolomon, data, parity, delta) as {
    whole: Uint8Array[];
    code: ReedSolomon;
  };
  assert.deepEqual(whole[1], new Uint8Array(100).fill(9));
  assert.deepEqual(whole[4], parity[0]);
  assert.deepEqual(code.plan([1]).reads, [0, 2, 3, 4]);
  assert.equal(code.plan([1]).byXor, true);
});
