import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RELAXED_BINARY, SHARED_FLAG_AT, SIMD_BINARY } from './binary.ts';
import { assembleProgram } from './program.ts';

for (const [name, binary, relaxed] of [
  ['simd', SIMD_BINARY, false],
  ['relaxed', RELAXED_BINARY, true],
] as const) {
  test(`${name}: the committed binary is what its source assembles to, byte by byte (else: npm run build:wasm)`, () => {
    const { bytes, sharedFlagAt } = assembleProgram(relaxed);
    assert.equal(Buffer.from(bytes).toString('base64'), binary);
    assert.equal(sharedFlagAt, SHARED_FLAG_AT);
    assert.deepEqual([...bytes.subarray(SHARED_FLAG_AT, SHARED_FLAG_AT + 2)], [1, 1]);
  });
}
