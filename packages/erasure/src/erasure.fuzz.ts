/**
 * Random stripes through every kernel of this runtime, for as long as wanted; prints its seed first. Each case: any code and shape,
 * shards of any lengths at any offsets, inside the kernel's memory and outside, any repairable loss; the parity of all kernels is
 * that of the definition, byte by byte, and what is repaired is what was lost.
 *
 * npm exec -c 'node --conditions=webdfs:source packages/erasure/src/erasure.fuzz.ts [cases] [seed]'
 */
import { equalBytes, SeededRandom, SystemRandom, toHex } from '@webdfs/base';
import { type CodeName, CODES, parityMatrix } from './code.ts';
import { multiplySlowly } from './conformance.ts';
import type { Kernel } from './kernel.ts';
import { availableKernels, openKernel } from './open-kernel.ts';
import { ReedSolomon } from './reed-solomon.ts';

const NAMES = Object.keys(CODES) as CodeName[];
const cases = Number(process.argv[2] ?? 100_000);
const seed = Number(process.argv[3] ?? new SystemRandom().fraction() * 2 ** 31) >>> 0;
console.log(`seed ${seed}, ${cases} cases`);

function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** A copy of a block somewhere: in the kernel's memory or not, aligned or not. */
function placed(kernel: Kernel, block: Uint8Array, random: SeededRandom, taken: Uint8Array[]): Uint8Array {
  const shift = random.below(40);
  const room =
    random.below(2) === 0 ? new Uint8Array(block.length + shift) : kernel.memory.allocate(block.length + shift);
  if (kernel.memory.holds(room)) taken.push(room);
  const place = room.subarray(shift);
  place.set(block);
  return place;
}

function runCase(kernels: readonly Kernel[], random: SeededRandom): void {
  const name = NAMES[random.below(NAMES.length)]!;
  const { field, maxData, maxParity } = CODES[name];
  const shape = { data: 1 + random.below(maxData), parity: 1 + random.below(maxParity) };
  const longest = random.below(random.below(4) === 0 ? 700 : 70);
  const data = Array.from({ length: shape.data }, () =>
    random.bytes(random.below(3) === 0 ? random.below(longest + 1) : longest),
  );
  const parity = multiplySlowly(field, parityMatrix(CODES[name], shape.data, shape.parity), data);
  const order = [...data, ...parity].map((_, i) => i);
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  const lost = order.slice(0, random.below(shape.parity + 1));
  for (const kernel of kernels) {
    const taken: Uint8Array[] = [];
    const code = new ReedSolomon({ kernel, ...shape, code: name });
    const sources = data.map((block) => placed(kernel, block, random, taken));
    const targets = parity.map((block) => placed(kernel, random.bytes(block.length), random, taken));
    code.encode(sources, targets);
    const about = `${kernel.name} ${name} ${shape.data}+${shape.parity}, ${longest} bytes, lost ${lost.join()}`;
    check(
      parity.every((block, p) => equalBytes(block, targets[p]!)),
      `${about}: parity`,
    );
    const shards = [...sources, ...targets];
    check(code.verify(shards), `${about}: verify`);
    const whole = code.decode(shards.map((shard, i) => (lost.includes(i) ? undefined : shard)));
    for (const shard of lost) {
      const made = whole[shard]!.subarray(0, shards[shard]!.length);
      check(equalBytes(made, shards[shard]!), `${about}: shard ${shard} is ${toHex(made)}`);
    }
    for (const block of taken) kernel.memory.free(block);
  }
}

const kernels = availableKernels().map((name) => openKernel({ name }));
for (let i = 0; i < cases; i++) {
  try {
    runCase(kernels, new SeededRandom(seed + i));
  } catch (error) {
    console.error(`case with seed ${seed + i} failed (repeat: … erasure.fuzz.ts 1 ${seed + i})`);
    throw error;
  }
  if ((i + 1) % 10_000 === 0) console.log(`${i + 1} cases`);
}
console.log(`all equal: ${kernels.map(({ name }) => name).join(', ')}`);
