import { type Clock, SeededRandom } from '@webdfs/base';
import { availableKernels, type Kernel, openKernel } from '@webdfs/erasure';
import {
  environmentOf,
  numberColumn,
  type Report,
  type ReportChart,
  type ReportSection,
  textColumn,
} from '../report/report.ts';
import type { Cell } from './cell.ts';
import { comparison2004 } from './comparison-2004.ts';
import { contestantsOf, type Field, NAMES } from './contestants.ts';
import { checksOf, GATE_SHARD } from './gates.ts';
import { measureRates, type Sampling } from './sampling.ts';
import { type Shape, stripeBytes } from './stripe.ts';

/**
 * `webdfs bench erasure`: how many bytes the codec encodes, updates and repairs per second of CPU time, beside memcpy, tables in
 * plain TypeScript and, if it is there, a native addon. Every code is proven right on the blocks it is measured on.
 */
export interface ErasureBenchOptions {
  readonly shapes: readonly Shape[];
  /** Sizes of shards, bytes, multiples of 8. */
  readonly shardSizes: readonly number[];
  readonly seed: number;
  readonly sampling: Sampling;
  /** Folder in which @ronomon/reed-solomon is installed. */
  readonly ronomon?: string;
  readonly clock: Clock;
  /** The words that repeat the run. */
  readonly command: string;
  readonly onProgress: (what: string) => void;
}

/** `quick` is for a look. */
export const ERASURE_SAMPLING = {
  quick: { rounds: 5, sampleBytes: 6_000_000, slowBytes: 1_000_000 },
  full: { rounds: 15, sampleBytes: 16_000_000, slowBytes: 3_000_000 },
} as const satisfies Record<string, Sampling>;

const textOf = ({ data, parity }: Shape): string => `${data}+${parity}`;
const sizeOf = (bytes: number): string => (bytes < 1_048_576 ? `${bytes / 1024} KiB` : `${bytes / 1_048_576} MiB`);

async function measureCells(options: ErasureBenchOptions, field: Field, sampling: Sampling): Promise<Cell[]> {
  const cells: Cell[] = [];
  for (const shape of options.shapes) {
    for (const shardBytes of options.shardSizes) {
      options.onProgress(`${textOf(shape)}, ${sizeOf(shardBytes)}`);
      const { contestants, free } = contestantsOf(field, shape, shardBytes);
      cells.push({ shape, shardBytes, rates: await measureRates(contestants, sampling) });
      free();
    }
  }
  return cells;
}

/** Rates of some contestants by size of shard. */
function ratesChart(cells: readonly Cell[], id: string, title: string, names: readonly string[]): ReportChart {
  const known = names.filter((name) => cells[0]!.rates.some((rate) => rate.name === name));
  return {
    id,
    title,
    kind: 'line',
    x: { title: 'shard', scale: 'names' },
    y: { title: 'GB/s of CPU time', scale: 'log' },
    series: known.map((name) => ({
      name,
      points: cells.map(({ shardBytes, rates }): readonly [string, number] => [
        sizeOf(shardBytes),
        rates.find((rate) => rate.name === name)!.median / 1e9,
      ]),
      ...(name === NAMES.memcpy ? { reference: true as const } : {}),
    })),
  };
}

function shapeSection(cells: readonly Cell[], kernels: readonly Kernel[]): ReportSection {
  const { shape } = cells[0]!;
  const fastest = kernels[0]!.name;
  const encoders = kernels.map((kernel) => NAMES.encode(kernel.name, 'cauchy'));
  const repairs = Array.from({ length: shape.parity }, (_, i) => NAMES.repair(fastest, i + 1));
  return {
    id: `rs-${shape.data}-${shape.parity}`,
    title: `${shape.data} data and ${shape.parity} parity shards`,
    prose: [],
    charts: [
      ratesChart(cells, 'encode', 'Encode', [
        NAMES.memcpy,
        ...encoders,
        NAMES.encode(fastest, 'doubling'),
        NAMES.encode(fastest, 'cauchy16'),
        NAMES.copied,
        '@ronomon/reed-solomon, encode',
      ]),
      ratesChart(cells, 'repair', 'Delta and repair', [
        NAMES.memcpy,
        NAMES.xor(fastest),
        ...repairs,
        NAMES.delta(fastest),
      ]),
    ],
    tables: [
      {
        id: 'rates',
        title: 'GB/s of CPU time: median, least and most of the rounds',
        columns: [
          textColumn('contestant'),
          textColumn('shard'),
          numberColumn('GB/s', 2),
          numberColumn('least', 2),
          numberColumn('most', 2),
          numberColumn('of memcpy', 3),
        ],
        rows: cells.flatMap(({ shardBytes, rates }) => {
          const memcpy = rates.find((rate) => rate.name === NAMES.memcpy)!.median;
          return rates.map(({ name, median, least, most }) => [
            name,
            sizeOf(shardBytes),
            median / 1e9,
            least / 1e9,
            most / 1e9,
            median / memcpy,
          ]);
        }),
      },
    ],
  };
}

function summaryOf(cells: readonly Cell[], fastest: Kernel): string[] {
  return cells
    .filter((cell) => cell.shardBytes === GATE_SHARD)
    .map(({ shape, rates }) => {
      const rate = (name: string): string =>
        ((rates.find((found) => found.name === name)?.median ?? Number.NaN) / 1e9).toFixed(1);
      return (
        `${textOf(shape)} with shards of 64 KiB: ${rate(NAMES.encode(fastest.name, 'cauchy'))} GB/s encoded, ` +
        `${rate(NAMES.copied)} with copies in and out, ${rate(NAMES.xor(fastest.name))} read to repair one shard by XOR ` +
        `(memcpy ${rate(NAMES.memcpy)}, tables in TypeScript ${rate(NAMES.encode('plain', 'cauchy'))}).`
      );
    });
}

/** @throws Error if a code is wrong on the blocks it is measured on, or the addon does not load: the run is void */
export async function benchErasure(options: ErasureBenchOptions): Promise<Report> {
  const { sampling } = options;
  const environment = environmentOf(options);
  const random = new SeededRandom(options.seed);
  const sizes = options.shapes.flatMap((shape) => options.shardSizes.map((bytes) => stripeBytes(shape, bytes)));
  const memoryBytes = Math.max(...sizes, stripeBytes({ data: 4, parity: 3 }, GATE_SHARD));
  const kernels = availableKernels().map((name) =>
    openKernel({ name, memoryBytes: name === 'plain' ? 0 : memoryBytes }),
  );
  const cells = await measureCells(options, { kernels, random, ronomon: options.ronomon }, sampling);
  options.onProgress('XOR against Reed-Solomon');
  const comparison = await comparison2004(kernels, GATE_SHARD, sampling, random);
  const fastest = kernels[0]!;
  return {
    format: 'webdfs-report',
    version: 1,
    title: 'Erasure coding',
    summary: [
      ...summaryOf(cells, fastest),
      'Rates are bytes per second of CPU time of the process: bytes of data encoded, bytes of survivors read by a repair, bytes of the ' +
        `delta. ${fastest.name} is the fastest kernel of this runtime; plain is its fallback, fused tables in TypeScript.`,
    ],
    environment,
    sections: [
      ...options.shapes.map((shape) =>
        shapeSection(
          cells.filter((cell) => cell.shape === shape),
          kernels,
        ),
      ),
      comparison,
    ],
    checks: checksOf(cells, fastest.name),
  };
}
