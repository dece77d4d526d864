import type { Log } from '@webdfs/base';
import { WebdfsError } from '@webdfs/base/errors';
import { BlockMemory } from './block-memory.ts';
import type { Kernel, KernelName, SharedKernel } from './kernel.ts';
import { PlainKernel } from './plain-kernel.ts';
import { WasmKernel } from './wasm-kernel.ts';
import { supports, type WasmMemory } from './wasm/load.ts';

export interface KernelOptions {
  /** Which one; default: the fastest that this runtime has. */
  readonly name?: KernelName;
  /** Bytes for blocks of the caller's; default 1 MiB, of which nothing is used until it is written. */
  readonly memoryBytes?: number;
  /** Memory that threads can share (`kernel.share()`). In browsers only on pages that are cross-origin isolated. */
  readonly shared?: boolean;
  /** Told `erasure.no-simd` if the runtime leaves only the plain kernel. */
  readonly log?: Log;
}

const DEFAULT_MEMORY_BYTES = 1_048_576;
const MOST_MEMORY_BYTES = 2 ** 32 - 16 * 1_048_576;

/** The kernels that this runtime has, fastest first. */
export function availableKernels(): KernelName[] {
  return [...(['relaxed', 'simd'] as const).filter(supports), 'plain'];
}

/**
 * Opens a kernel with memory of its own.
 * @throws WebdfsError UNSUPPORTED if the runtime lacks the one named; INVALID if `memoryBytes` exceeds 4 GiB less 16 MiB
 */
export function openKernel(options: KernelOptions = {}): Kernel {
  const { memoryBytes = DEFAULT_MEMORY_BYTES, shared = false, log } = options;
  if (!Number.isInteger(memoryBytes) || memoryBytes < 0 || memoryBytes > MOST_MEMORY_BYTES) {
    throw new WebdfsError('INVALID', `memoryBytes is ${memoryBytes}; at most ${MOST_MEMORY_BYTES}`);
  }
  const available = availableKernels();
  const name = options.name ?? available[0]!;
  if (!available.includes(name)) {
    throw new WebdfsError('UNSUPPORTED', `this runtime has no kernel '${name}', only ${available.join(', ')}`);
  }
  if (name !== 'plain') return WasmKernel.open({ program: name, memoryBytes, shared });
  if (options.name === undefined) log?.warn('erasure.no-simd', { kernel: name });
  return PlainKernel.open({ memoryBytes, shared });
}

/**
 * Opens a kernel in another thread over the memory of the one that was shared. It has no blocks to give out: threads tell each
 * other offsets, and look at them with `kernel.memory.view`.
 */
export function joinKernel({ memory, offset }: SharedKernel): Kernel {
  if (memory instanceof SharedArrayBuffer) return new PlainKernel(new BlockMemory(memory, 0, 0));
  const wasmMemory = memory as WasmMemory;
  const [name] = availableKernels();
  if (name === undefined || name === 'plain') {
    throw new WebdfsError('UNSUPPORTED', 'this thread cannot run the program of the kernel that was shared');
  }
  return new WasmKernel(name, wasmMemory, offset, new BlockMemory(wasmMemory.buffer, 0, 0));
}
