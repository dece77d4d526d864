import type { SeededRandom } from '@webdfs/base';
import { type CodeName, type Kernel, type KernelName, ReedSolomon } from '@webdfs/erasure';
import { loadRonomon, ronomonEncode } from './ronomon.ts';
import type { Contestant } from './sampling.ts';
import { makeStripe, proveStripe, type Shape, type Stripe } from './stripe.ts';

export interface Field {
  readonly kernels: readonly Kernel[];
  readonly random: SeededRandom;
  /** Folder in which @ronomon/reed-solomon is installed. */
  readonly ronomon: string | undefined;
}

/** Names of what is measured; gates and charts find their figures by them. */
export const NAMES = {
  memcpy: 'memcpy of the data',
  encode: (kernel: KernelName, code: CodeName) => `${kernel}, encode ${code}`,
  copied: 'encode cauchy, copied in and out',
  delta: (kernel: KernelName) => `${kernel}, delta of one shard`,
  xor: (kernel: KernelName) => `${kernel}, repair 1 by XOR`,
  repair: (kernel: KernelName, lost: number) => `${kernel}, repair ${lost}`,
} as const;

interface Bench {
  readonly kernel: Kernel;
  readonly code: ReedSolomon;
  readonly stripe: Stripe;
  readonly slow: boolean;
}

function encode({ kernel, code, stripe, slow }: Bench, name: CodeName): Contestant {
  const bytes = code.data * stripe.data[0]!.length;
  return { name: NAMES.encode(kernel.name, name), bytes, slow, run: () => code.encode(stripe.data, stripe.parity) };
}

/** Every parity shard takes the change of the last data shard; it is its own delta here. */
function delta({ kernel, code, stripe, slow }: Bench): Contestant {
  const change = stripe.data.at(-1)!;
  const index = code.data - 1;
  return {
    name: NAMES.delta(kernel.name),
    bytes: change.length,
    slow,
    run: () => code.update(index, change, stripe.spare),
  };
}

/** Repair of the first `lost` data shards; rates count what is read. Without `byXor` the first parity is not to be had. */
function repair({ kernel, code, stripe, slow }: Bench, lost: number, byXor = false): Contestant {
  const shards = [...stripe.data, ...stripe.parity];
  const missing = Array.from({ length: lost }, (_, i) => code.data - 1 - i);
  const barred = lost === 1 && !byXor ? code.data : -1;
  const plan = code.plan(
    missing,
    shards.map((_, i) => i).filter((i) => !missing.includes(i) && i !== barred),
  );
  const sources = plan.reads.map((shard) => shards[shard]!);
  return {
    name: byXor ? NAMES.xor(kernel.name) : NAMES.repair(kernel.name, lost),
    bytes: code.data * stripe.data[0]!.length,
    slow,
    run: () => plan.repair(sources, stripe.spare.slice(0, lost)),
  };
}

function memcpy({ stripe, kernel }: Bench): { contestant: Contestant; free: () => void } {
  const copy = stripe.data.map((block) => kernel.memory.allocate(block.length));
  const bytes = stripe.data.length * stripe.data[0]!.length;
  const run = (): void => stripe.data.forEach((block, i) => copy[i]!.set(block));
  return { contestant: { name: NAMES.memcpy, bytes, run }, free: () => copy.forEach((b) => kernel.memory.free(b)) };
}

/**
 * Everything that is measured for one shape and size of shards, each proven right first. `free` gives the memory back.
 */
export function contestantsOf(
  field: Field,
  shape: Shape,
  shardBytes: number,
): { contestants: Contestant[]; free: () => void } {
  const contestants: Contestant[] = [];
  const frees: (() => void)[] = [];
  const benchOf = (kernel: Kernel): Bench => {
    const memory = kernel.name === 'plain' ? undefined : kernel.memory;
    const stripe = makeStripe(shape, shardBytes, field.random, memory);
    frees.push(() => stripe.free());
    const code = new ReedSolomon({ kernel, ...shape });
    return { kernel, code, stripe, slow: kernel.name === 'plain' };
  };
  for (const [i, kernel] of field.kernels.entries()) {
    const bench = benchOf(kernel);
    for (const name of ['doubling', 'cauchy16', 'cauchy'] as const) {
      const code = new ReedSolomon({ kernel, ...shape, code: name });
      proveStripe(NAMES.encode(kernel.name, name), code, bench.stripe);
      contestants.push(encode({ ...bench, code }, name));
    }
    contestants.push(delta(bench), repair(bench, 1, true));
    for (let lost = shape.parity > 1 ? 1 : 2; lost <= Math.min(shape.parity, shape.data); lost++) {
      contestants.push(repair(bench, lost));
    }
    if (i > 0) continue;
    const { contestant, free } = memcpy(bench);
    const outside = makeStripe(shape, shardBytes, field.random);
    proveStripe(NAMES.copied, bench.code, outside);
    contestants.push(contestant, { ...encode({ ...bench, stripe: outside }, 'cauchy'), name: NAMES.copied });
    frees.push(free);
  }
  if (field.ronomon !== undefined) contestants.push(ronomonEncode(loadRonomon(field.ronomon), shape, shardBytes));
  return { contestants, free: () => frees.forEach((free) => free()) };
}
