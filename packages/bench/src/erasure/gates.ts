import type { KernelName } from '@webdfs/erasure';
import { atLeast, type Check } from '../report/check.ts';
import type { Cell } from './cell.ts';
import { NAMES } from './contestants.ts';

/** The size of shards that gates look at, bytes. */
export const GATE_SHARD = 65_536;

interface Gate {
  readonly shape: string;
  readonly what: string;
  readonly unit: 'GB/s' | '×';
  readonly least: number;
  readonly value: (rate: (name: string) => number) => number;
}

const GIGA = 1e9;

/** What the codec promises of rates in the memory of its fastest kernel; memory and table look-ups are measured in the same run. */
function gatesOf(fastest: KernelName): Gate[] {
  const encode = NAMES.encode(fastest, 'cauchy');
  const tables = NAMES.encode('plain', 'cauchy');
  const gate = (shape: string, what: string, name: string, least: number): Gate => ({
    shape,
    what,
    unit: 'GB/s',
    least,
    value: (rate) => rate(name) / GIGA,
  });
  const times = (shape: string, least: number): Gate => ({
    shape,
    what: 'encode beside fused tables in TypeScript',
    unit: '×',
    least,
    value: (rate) => rate(encode) / rate(tables),
  });
  return [
    gate('4+2', 'encode', encode, 6),
    times('4+2', 8),
    gate('4+2', 'encode, copied in and out', NAMES.copied, 3),
    gate('10+4', 'encode', encode, 3),
    times('10+4', 12),
    gate('10+4', 'encode, copied in and out', NAMES.copied, 1.5),
  ];
}

/** One lost shard by XOR: 20 GB/s read, or half of memcpy where memory is slower than that. */
function xorGate(shape: string, fastest: KernelName, rate: (name: string) => number): Check {
  const [xor, memcpy] = [rate(NAMES.xor(fastest)) / GIGA, rate(NAMES.memcpy) / GIGA];
  return atLeast(`${shape}: repair of one shard by XOR, or half of memcpy`, xor, Math.min(20, memcpy / 2), 'GB/s');
}

/** Checks of the shapes that were measured with shards of 64 KiB. */
export function checksOf(cells: readonly Cell[], fastest: KernelName): Check[] {
  return cells
    .filter((cell) => cell.shardBytes === GATE_SHARD)
    .flatMap((cell) => {
      const shape = `${cell.shape.data}+${cell.shape.parity}`;
      const rate = (name: string): number => cell.rates.find((found) => found.name === name)?.median ?? Number.NaN;
      const gates = gatesOf(fastest).filter((gate) => gate.shape === shape);
      const checks = gates.map((gate) => atLeast(`${shape}: ${gate.what}`, gate.value(rate), gate.least, gate.unit));
      return gates.length === 0 ? [] : [...checks, xorGate(shape, fastest, rate)];
    });
}
