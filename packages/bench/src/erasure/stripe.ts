import type { SeededRandom } from '@webdfs/base';
import type { Kernel, ReedSolomon } from '@webdfs/erasure';

export interface Shape {
  readonly data: number;
  readonly parity: number;
}

/** Blocks of one stripe: data, parity, and as many spare ones to repair into. */
export interface Stripe {
  readonly data: readonly Uint8Array[];
  readonly parity: readonly Uint8Array[];
  readonly spare: readonly Uint8Array[];
  free(): void;
}

/** A stripe in the memory of a kernel, or without one anywhere; the data are random. */
export function makeStripe(shape: Shape, shardBytes: number, random: SeededRandom, memory?: Kernel['memory']): Stripe {
  const blocks = Array.from({ length: shape.data + 2 * shape.parity }, () =>
    memory === undefined ? new Uint8Array(shardBytes) : memory.allocate(shardBytes),
  );
  const data = blocks.slice(0, shape.data);
  for (const block of data) {
    const words = new Uint32Array(block.buffer, block.byteOffset, shardBytes >> 2);
    for (let i = 0; i < words.length; i++) words[i] = random.uint32();
  }
  return {
    data,
    parity: blocks.slice(shape.data, shape.data + shape.parity),
    spare: blocks.slice(shape.data + shape.parity),
    free: () => memory !== undefined && blocks.forEach((block) => memory.free(block)),
  };
}

/** Bytes of kernel memory that a stripe takes, and a copy of its data beside it. */
export function stripeBytes(shape: Shape, shardBytes: number): number {
  return (2 * shape.data + 2 * shape.parity) * (shardBytes + 64);
}

/** @throws Error if a code's parity is not the one expected, or a repair not what was lost: no figure means anything then */
export function proveStripe(name: string, code: ReedSolomon, { data, parity, spare }: Stripe): void {
  code.encode(data, parity);
  if (!code.verify([...data, ...parity])) throw new Error(`${name}: the parity does not fit the data`);
  const lost = parity.map((_, i) => i).slice(0, code.data);
  const plan = code.plan(lost);
  const whole = [...data, ...parity];
  plan.repair(
    plan.reads.map((shard) => whole[shard]),
    spare.slice(0, lost.length),
  );
  if (lost.some((shard, i) => Buffer.compare(spare[i]!, data[shard]!) !== 0)) {
    throw new Error(`${name}: what was repaired is not what was lost`);
  }
}
