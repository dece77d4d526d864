import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testKernel } from './conformance.ts';
import { availableKernels, openKernel } from './open-kernel.ts';

for (const name of ['relaxed', 'simd', 'plain'] as const) {
  for (const shared of [false, true]) {
    testKernel(
      `${name}${shared ? ', shared memory' : ''}`,
      () => openKernel({ name, shared, memoryBytes: 2_000_000 }),
      150,
    );
  }
}

test('the fastest kernel is the default', () => {
  assert.deepEqual(availableKernels(), ['relaxed', 'simd', 'plain']);
  assert.equal(openKernel().name, 'relaxed');
});
