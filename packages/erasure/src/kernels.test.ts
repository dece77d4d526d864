import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf, makeLog } from '@webdfs/base';
import { testKernel } from './conformance.ts';
import { GF8 } from './field.ts';
import { availableKernels, openKernel } from './open-kernel.ts';
import { ReedSolomon } from './reed-solomon.ts';
import { RELAXED_BINARY } from './wasm/binary.ts';

/** The little that is used of it here. */
declare const WebAssembly: { readonly validate: (bytes: Uint8Array) => boolean };

for (const name of ['relaxed', 'simd', 'plain'] as const) {
  for (const shared of [false, true]) {
    testKernel(
      `${name}${shared ? ', shared memory' : ''}`,
      () => openKernel({ name, shared, memoryBytes: 2_000_000 }),
      shared ? 25 : 100,
    );
  }
}

test('the fastest kernel is the default', () => {
  assert.deepEqual(availableKernels(), ['relaxed', 'simd', 'plain']);
  assert.equal(openKernel().name, 'relaxed');
});

/** Runs with another `WebAssembly`, or without. */
function inRuntime<T>(webAssembly: object | undefined, run: () => T): T {
  const own = Object.getOwnPropertyDescriptor(globalThis, 'WebAssembly')!;
  Object.defineProperty(globalThis, 'WebAssembly', { ...own, value: webAssembly });
  try {
    return run();
  } finally {
    Object.defineProperty(globalThis, 'WebAssembly', own);
  }
}

test('without WebAssembly the plain kernel serves, and the log says so', () => {
  const lines: string[] = [];
  const log = makeLog({ write: (line) => lines.push(line), now: () => 0 });
  const kernel = inRuntime(undefined, () => openKernel({ log }));
  assert.equal(kernel.name, 'plain');
  assert.match(lines.join(), /"level":"warn","event":"erasure.no-simd"/);
  assert.equal(lines.length, 1);
  const parity = [new Uint8Array(1), new Uint8Array(1)];
  new ReedSolomon({ kernel, data: 2, parity: 2 }).encode([Uint8Array.of(1), Uint8Array.of(2)], parity);
  assert.deepEqual(parity, [Uint8Array.of(3), Uint8Array.of(1 ^ GF8.multiply(2, 0x59))]);
});

test('a runtime without relaxed swizzles takes the strict ones, and a kernel it lacks is refused', () => {
  const relaxed = atob(RELAXED_BINARY).length;
  const { validate } = WebAssembly;
  const strict = Object.create(WebAssembly, {
    validate: { value: (bytes: Uint8Array) => bytes.length !== relaxed && validate(bytes) },
  });
  inRuntime(strict, () => {
    assert.deepEqual(availableKernels(), ['simd', 'plain']);
    assert.equal(openKernel().name, 'simd');
    assert.throws(
      () => openKernel({ name: 'relaxed' }),
      (error) => codeOf(error) === 'UNSUPPORTED',
    );
  });
});

test('memory beyond what an address reaches is refused', () => {
  for (const memoryBytes of [-1, 0.5, 2 ** 32]) {
    assert.throws(
      () => openKernel({ memoryBytes }),
      (error) => codeOf(error) === 'INVALID',
    );
  }
});
